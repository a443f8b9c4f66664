"""A topic that keeps little: retention deletes its old records, and an operator deletes more."""

from collections.abc import Mapping
from random import Random

from semel_checker.names import Outcome, Partition
from semel_checker.operations import DeleteRecords

from aiosemel import IsolationLevel, OffsetSpec, RetriableError, SemelClient, TopicPartition
from aiosemel.errors import OffsetOutOfRangeError
from semel_runtime.testing.virtual_time import after
from simulation.recorded import RecordedClient, Records

CUT_TOPIC = "cut"
CUT_PARTITIONS = 2
CUT_CONFIGS: Mapping[str, int] = {"retention.ms": 2_500, "segment.bytes": 1_024, "segment.ms": 400}
RETENTION_CHECK_INTERVAL_MS = 300


class Cutter:
    """Deletes the oldest records of the topic, somewhere below what is stable."""

    def __init__(self, quota: int, records: Records) -> None:
        self._left = quota
        self._records = records
        self.deleted: dict[TopicPartition, int] = {}
        """Below which offset everything was said to be gone."""

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Delete now and then; an error says nothing, the next deletion is another one."""
        while not self.done:
            self._left -= 1
            place = TopicPartition(CUT_TOPIC, random.randrange(CUT_PARTITIONS))
            try:
                await self._delete(client, place, random)
            except RetriableError:
                continue
            await after(random.expovariate(1 / 900))

    async def _delete(self, client: RecordedClient, place: TopicPartition, random: Random) -> None:
        admin = client.client.admin()
        start = await offset_of(client.client, place, OffsetSpec.EARLIEST)
        stable = await offset_of(client.client, place, OffsetSpec.LATEST)
        before = random.randint(min(start, stable), stable)
        recorder = self._records.recorder
        operation = DeleteRecords(partition=Partition(*place), before_offset=before)
        op = recorder.invoked(client.process, operation)
        try:
            deleted = await admin.delete_records({place: before})
        except OffsetOutOfRangeError:
            recorder.returned(client.process, op, Outcome.FAILED)
            raise AssertionError(f"{before} of {place} was stable, and is so no longer") from None
        except RetriableError:
            recorder.returned(client.process, op, Outcome.UNKNOWN)
            raise
        recorder.returned(client.process, op, Outcome.OK)
        below = deleted[place].log_start_offset
        self.deleted[place] = max(self.deleted.get(place, 0), below)
        start = await offset_of(client.client, place, OffsetSpec.EARLIEST)
        assert start >= below, f"{place} starts at {start}, all below {below} was deleted"

    def problems(self, starts: Mapping[TopicPartition, int]) -> list[str]:
        """Return the records that were deleted and are there in the end."""
        return [
            f"{place} starts at {starts[place]}, everything below {below} was deleted"
            for place, below in self.deleted.items()
            if starts[place] < below
        ]


async def offset_of(client: SemelClient, place: TopicPartition, spec: OffsetSpec) -> int:
    """Return where the committed part of a partition begins or ends."""
    found = await client.admin().list_offsets(
        {place: spec}, isolation_level=IsolationLevel.READ_COMMITTED
    )
    at = found[place]
    assert at is not None
    return at.offset


async def keep_all(operator: SemelClient) -> dict[TopicPartition, int]:
    """End the topic's retention; return the log start offsets once all brokers know of it."""
    await operator.admin().incremental_alter_configs(
        CUT_TOPIC, set_configs={"retention.ms": -1}, reset=["segment.ms"]
    )
    # Every broker knows of it by then, and has ended its deletion.
    await after(5_000)
    places = [TopicPartition(CUT_TOPIC, at) for at in range(CUT_PARTITIONS)]
    return {place: await offset_of(operator, place, OffsetSpec.EARLIEST) for place in places}
