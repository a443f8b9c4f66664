"""Everything is restarted, one after the other, each at another address, under load.

Nothing reaches the application but `TransactionAbortedError`, which `client.transform` handles by
itself, and no call takes longer than `delivery_timeout_ms`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from aiosemel import (
    ConsumerOptions,
    ConsumerRecord,
    OffsetReset,
    Outputs,
    ProducerOptions,
    SaslAuthenticationError,
    Security,
    SemelClient,
    TopicPartition,
    TransactionAbortedError,
)
from chaos.secured import Secured
from chaos.stage import Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PARTITIONS = 4
TIMEOUT_MS = 30_000
OPTIONS = ProducerOptions(
    request_timeout_ms=10_000, delivery_timeout_ms=TIMEOUT_MS, max_block_ms=TIMEOUT_MS
)
EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
T = TypeVar("T")


@dataclass
class Load:
    """An application: a transactional and an idempotent producer, and two transformers."""

    client: SemelClient
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    committed: list[bytes] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    aborted: int = 0
    longest_s: float = 0.0

    async def produce(self) -> None:
        """Commit transactions of two records each, until told to stop."""
        producer = self.client.transactional_producer("load", OPTIONS)
        await self.timed(producer.init_transactions())
        number = 0
        while not self.stop.is_set():
            values = [f"transaction {number} {part}".encode() for part in range(2)]
            number += 1
            try:
                async with producer.transaction() as transaction:
                    for value in values:
                        await self.timed(transaction.send("in", value, key=value))
                    began = asyncio.get_running_loop().time()
                self._took(began)
                self.committed += values
            except TransactionAbortedError:
                self.aborted += 1
            await asyncio.sleep(0.02)

    async def produce_plainly(self) -> None:
        """Send records outside of transactions, until told to stop."""
        producer = self.client.producer(OPTIONS)
        number = 0
        while not self.stop.is_set():
            value = f"record {number}".encode()
            number += 1
            await self.timed(producer.send_and_wait("in", value, key=value))
            self.sent.append(value)
            await asyncio.sleep(0.02)

    async def transform(self, name: str) -> None:
        """Copy "in" to "out", until cancelled."""
        await self.client.transform(
            source=["in"],
            group="copiers",
            transactional_id=name,
            handler=_copy,
            consumer_options=EARLIEST,
            producer_options=OPTIONS,
        )

    async def timed(self, call: Awaitable[T]) -> T:
        """Note how long a call takes."""
        began = asyncio.get_running_loop().time()
        result = await call
        self._took(began)
        return result

    def _took(self, began: float) -> None:
        self.longest_s = max(self.longest_s, asyncio.get_running_loop().time() - began)


async def _copy(records: Sequence[ConsumerRecord], outputs: Outputs) -> None:
    for record in records:
        await outputs.send("out", record.value, key=record.key)


@asynccontextmanager
async def under_load(stage: Stage, security: Security | None = None) -> AsyncIterator[Load]:
    """Let an application work meanwhile; then all that went in must have come out, once."""
    async with SemelClient(stage.bootstrap, security=security) as client:
        for topic in ("in", "out"):
            await client.admin().create_topic(topic, partitions=PARTITIONS)
        load = Load(client)
        async with asyncio.TaskGroup() as group:
            transformers = [group.create_task(load.transform(f"copier-{n}")) for n in range(2)]
            producers = [
                group.create_task(load.produce()),
                group.create_task(load.produce_plainly()),
            ]
            yield load
            load.stop.set()
            await asyncio.wait(producers)
            expected = sorted([*load.committed, *load.sent])
            assert sorted(await read(client, "out", len(expected))) == expected
            for transformer in transformers:
                transformer.cancel()
        assert load.longest_s < TIMEOUT_MS / 1000


async def read(client: SemelClient, topic: str, count: int) -> list[bytes]:
    """Read so many records, and what else there is right behind them."""
    consumer = client.consumer(options=EARLIEST)
    consumer.assign([(topic, partition) for partition in range(PARTITIONS)])
    values: list[bytes] = []
    polled: dict[TopicPartition, list[ConsumerRecord]] = {}
    while polled or len(values) < count:
        polled = await consumer.poll(timeout_ms=500)
        values += [record.value or b"" for records in polled.values() for record in records]
    await consumer.close()
    return values


@pytest_asyncio.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Stage(tmp_path) as stage:
        yield stage
        assert not stage.problems


async def test_an_application_survives_a_rolling_restart_at_new_addresses(stage: Stage) -> None:
    """C-022."""
    async with under_load(stage) as load:
        for name in stage.names:
            before = len(load.committed)
            assert await stage.restart_in_order(name, move=True)
            while len(load.committed) == before:  # noqa: ASYNC110 - the load goes on by itself
                await asyncio.sleep(0.01)


async def test_tls_and_tokens_are_no_reason_to_fail_in_a_rolling_restart(tmp_path: Path) -> None:
    """Tokens expire every few seconds and certificates are exchanged, all the while."""
    secured = Secured(tmp_path / "secrets")
    async with Stage(tmp_path, secured=secured) as stage:
        async with under_load(stage, secured.client) as load:
            for number, name in enumerate(stage.names, start=1):
                before = len(load.committed)
                secured.exchange_certificates()
                assert await stage.restart_in_order(name, move=True)
                # Each goes on under a token of its own: one before it has expired.
                while len(load.committed) == before or len(secured.tokens) <= number:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
        assert not stage.problems
        assert len(secured.tokens) > len(stage.names)
        async with SemelClient(stage.bootstrap, security=secured.nobody) as nobody:
            with pytest.raises(SaslAuthenticationError, match="no token"):
                await nobody.admin().list_topics()
        await assert_nothing_is_told(stage, secured)


async def assert_nothing_is_told(stage: Stage, secured: Secured) -> None:
    """No token and no key is in a log, nor where `ps` shows it."""
    ps = await asyncio.create_subprocess_exec(
        "ps", "axeww", "-o", "args=", stdout=asyncio.subprocess.PIPE
    )
    shown, _ = await ps.communicate()
    told = {"ps": shown.decode(errors="replace")}
    told |= {name: path.read_text() for name, path in stage.log_paths().items()}
    assert "semel_broker" in told["ps"]
    signatures = [token.rpartition(".")[2] for token in secured.tokens]
    for where, text in told.items():
        for secret in (*signatures, *secured.private_keys()):
            assert secret not in text, where


async def test_an_application_finds_instances_at_the_addresses_of_others(stage: Stage) -> None:
    """Addresses are given to others, of the same role and of another one."""
    async with under_load(stage):
        await stage.rotate_addresses("broker-0", "group-coordinator-0", "coordinator-1")
        await stage.rotate_addresses("broker-1", "broker-2")
