"""A consume-transform-produce application, over all its lives."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from random import Random

from aiosemel import (
    ConsumerOptions,
    ConsumerRecord,
    OffsetReset,
    Outputs,
    ProducerOptions,
    TopicPartition,
    TransformOptions,
)
from aiosemel._transform.transform import transform
from simulation.named_records import source_header
from simulation.recorded import RecordedClient, RecordedProducer
from simulation.workloads import GROUP, TOPICS, Around


class Transformer:
    """One member of a group that makes one record of "out" from each record of "in".

    Static, if it has an instance id. With ``sessions`` it closes from time to time and comes back.
    """

    def __init__(
        self,
        transactional_id: str,
        around: Around,
        *,
        instance_id: str = "",
        sessions: bool = False,
    ) -> None:
        self._transactional_id = transactional_id
        self._around = around
        self._instance_id = instance_id
        self._sessions = sessions
        self.done = False

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Transform until killed, or until the session is over."""
        ends = self._sessions and not self._around.calm
        with suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0.5, 6) if ends else None):
                await self._transform(client, random)

    async def _transform(self, client: RecordedClient, random: Random) -> None:
        await transform(
            client,
            source=["in"],
            group=GROUP,
            transactional_id=self._transactional_id,
            handler=partial(self._handle, random, client.process),
            options=TransformOptions(
                max_records=random.choice((1, 3, 20)),
                poll_timeout_ms=2_000,
                retry_backoff_ms=20,
                retry_backoff_max_ms=500,
                take_over_when_fenced=True,
            ),
            consumer_options=ConsumerOptions(
                auto_offset_reset=OffsetReset.EARLIEST,
                fetch_max_wait_ms=2_000,
                max_poll_interval_ms=15_000,
                group_instance_id=self._instance_id,
                server_assignor=random.choice(("", "uniform", "range")),
            ),
            producer_options=ProducerOptions(
                request_timeout_ms=1_000,
                delivery_timeout_ms=5_000,
                max_block_ms=4_000,
                transaction_timeout_ms=6_000,
            ),
            random=random,
        )

    async def _handle(
        self, random: Random, process: str, records: Sequence[ConsumerRecord], outputs: Outputs
    ) -> None:
        around, producer = self._around, outputs._producer
        assert isinstance(producer, RecordedProducer)
        around.transactions += 1
        producer.consumed.clear()
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            producer.consumed.setdefault(place, record.offset)
            value = f"{process}-{next(around.records.numbers)}"
            partition = random.randrange(TOPICS["out"])
            headers = source_header(GROUP, record)
            await outputs.send("out", value.encode(), partition=partition, headers=headers)
