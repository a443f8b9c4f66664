"""A log kept by optimistic concurrency: read to the end, count one up, append there or not at all.

Several writers keep one partition, without any lock. Each value is a number, one more than that of
the last committed value before it, and a name. If two of them ever appended behind the same end, a
number would come twice; if one appended without having read all, a number would be missing.
"""

from collections.abc import Sequence
from random import Random

from semel_checker.operations import PolledRecord

from aiosemel import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    BaseOffsetMismatchError,
    ConsumerOptions,
    OffsetReset,
    ProducerOptions,
    RetriableError,
    TopicPartition,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel_runtime.testing.virtual_time import after
from simulation.recorded import RecordedClient
from simulation.workloads import Surroundings

COUNTED = TopicPartition("counted", 0)
_TRANSACTION_SHARE = 0.5


def uncounted(records: Sequence[PolledRecord]) -> list[str]:
    """Return where the numbers of a log do not follow one another."""
    numbers = [int(value.partition("-")[0]) for _, value in records]
    return [
        f"number {found} of {COUNTED} stands where {expected} was to come"
        for expected, found in enumerate(numbers)
        if found != expected
    ]


class Appender:
    """One of the writers."""

    def __init__(self, name: str, quota: int, around: Surroundings) -> None:
        self._name = name
        self._left = quota
        self._around = around

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Append again and again; after any error, read the records again."""
        while not self.done:
            try:
                await self._append(client, random)
            except (BaseOffsetMismatchError, TransactionAbortedError) as error:
                self._around.trace("not appended", client.process, type(error).__name__)
            except (
                RetriableError,
                AbortableTransactionError,
                ApplicationRecoverableError,
                TransactionOutcomeUnknownError,
            ) as error:
                self._around.trace("append failed", client.process, type(error).__name__)
                await after(random.uniform(0, 500))
            else:
                self._left -= 1
            if not self._around.calm:
                await after(random.expovariate(1 / 400))

    async def _append(self, client: RecordedClient, random: Random) -> None:
        last, end = await _read(client)
        values = [
            b"%d-%s-%d" % (last + n, client.process.encode(), next(self._around.records.numbers))
            for n in range(1, random.randint(2, 4))
        ]
        options = ProducerOptions(
            request_timeout_ms=1_000, delivery_timeout_ms=4_000, max_block_ms=4_000
        )
        if random.random() >= _TRANSACTION_SHARE:
            producer = client.client.producer(options)
            try:
                await producer.append(
                    COUNTED.topic, values, partition=COUNTED.partition, expected_base_offset=end
                )
            finally:
                await producer.close()
            return
        self._around.transactions += 1
        transactional = client.client.transactional_producer(self._name, options)
        try:
            await transactional.init_transactions()
            async with transactional.transaction() as transaction:
                await transaction.append(
                    COUNTED.topic, values, partition=COUNTED.partition, expected_base_offset=end
                )
        finally:
            await transactional.close()


async def _read(client: RecordedClient) -> tuple[int, int]:
    """Read all that is committed; return the last number, and where the next one belongs."""
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50)
    consumer = client.client.consumer(options=options)
    try:
        consumer.assign([COUNTED])
        end = (await consumer.end_offsets([COUNTED]))[COUNTED]
        last = -1
        while consumer.positions().get(COUNTED, 0) < end:
            for record in (await consumer.poll(500, 100)).get(COUNTED, ()):
                assert record.value is not None
                last = int(record.value.partition(b"-")[0])
        return last, consumer.positions().get(COUNTED, 0)
    finally:
        await consumer.close()
