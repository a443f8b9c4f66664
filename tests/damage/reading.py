"""Everything that a broker answers about its partitions, as any client may ask for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from damage.broker import TOPIC, Broker
from semel.broker.v1 import broker_pb2 as wire
from semel_common.record_batches.batches import decode_records
from semel_common.wire.methods import COUNT_RECORDS, FETCH, LIST_OFFSETS

READ_COMMITTED = wire.ISOLATION_LEVEL_READ_COMMITTED
_SEARCHES = 16
"""As many times are searched for, and as many counts begun, in each partition."""


@dataclass(slots=True)
class Partition:
    """The records that committed readers find in a partition."""

    start_offset: int
    end_offset: int
    plain: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """By offset, value and time as plain records."""
    batches: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """The same, as opened from batches."""
    counts: dict[int, int] = field(default_factory=dict)
    """How many records lie at or behind an offset."""
    times: dict[int, int] = field(default_factory=dict)
    """The offset of the first record that is as late as a time."""
    errors: list[str] = field(default_factory=list)

    def differs_from(self, truth: "Partition") -> str:
        """Return the wrong answers that came without an error; empty: none."""
        for name in ("plain", "batches", "counts", "times"):
            right: Mapping[int, object] = getattr(truth, name)
            for at, answer in getattr(self, name).items():
                if right.get(at) != answer:
                    return f"{name} at {at}: {answer!r:.60}, not {right.get(at)!r:.60}"
        return ""


async def read(broker: Broker, partition: int, truth: Partition | None = None) -> Partition:
    """Read all of a partition; where there is an error, go on behind it, as ``truth`` knows."""
    ends = await _ends(broker, partition)
    found = Partition(*ends)
    if truth is not None:
        found = Partition(truth.start_offset, truth.end_offset)
        if ends != (truth.start_offset, truth.end_offset):
            found.counts[-1] = ends[1]  # The ends are wrong: no answer of the truth is this one.
    await _fetch_all(broker, partition, found, truth, plain=True)
    await _fetch_all(broker, partition, found, truth, plain=False)
    step = max(1, (found.end_offset - found.start_offset) // _SEARCHES)
    for at in range(found.start_offset, found.end_offset, step):
        await _count(broker, partition, at, found)
    for time_ms in range(0, 14_000, 14_000 // _SEARCHES):
        await _search(broker, partition, time_ms, found)
    return found


async def _ends(broker: Broker, partition: int) -> tuple[int, int]:
    found = []
    for spec in (wire.OFFSET_SPEC_EARLIEST, wire.OFFSET_SPEC_LATEST):
        asked = wire.ListOffsetsPartition(topic=TOPIC, partition=partition, spec=spec)
        request = wire.ListOffsetsRequest(isolation_level=READ_COMMITTED, partitions=[asked])
        (result,) = (await broker.call(LIST_OFFSETS, request)).partitions
        assert not result.HasField("error"), result.error
        found.append(result.offset)
    return found[0], found[1]


async def _fetch_all(
    broker: Broker, partition: int, found: Partition, truth: Partition | None, *, plain: bool
) -> None:
    """Fetch from the start to the end. What is passed over without an error is no record."""
    at = found.start_offset
    while at < found.end_offset:
        asked = wire.FetchPartition(topic=TOPIC, partition=partition, fetch_offset=at)
        request = wire.FetchRequest(
            isolation_level=READ_COMMITTED, plain_records=plain, partitions=[asked]
        )
        (result,) = (await broker.call(FETCH, request)).partitions
        if result.HasField("error"):
            found.errors.append(result.error.message)
            at = _behind(at, truth)
            continue
        records = _plain(result) if plain else _opened(result)
        into = found.plain if plain else found.batches
        known = truth.plain if truth is not None else {}
        for offset in range(at, result.next_offset):
            if offset in records or offset in known:
                into[offset] = records.get(offset, (b"passed over", -1))
        at = result.next_offset


def _behind(at: int, truth: Partition | None) -> int:
    assert truth is not None, "a volume that is not damaged has no errors"
    return at + 1


def _plain(result: wire.FetchPartitionResult) -> dict[int, tuple[bytes, int]]:
    return {record.offset: (record.value, record.timestamp_ms) for record in result.records}


def _opened(result: wire.FetchPartitionResult) -> dict[int, tuple[bytes, int]]:
    found: dict[int, tuple[bytes, int]] = {}
    for batch in result.batches:
        if not batch.control:
            columns = decode_records(batch)
            offsets = columns.offsets(batch.base_offset)
            for offset, value, time_ms in zip(
                offsets, columns.values, columns.timestamps_ms, strict=True
            ):
                found[offset] = (value or b"", time_ms)
    return {at: each for at, each in found.items() if at < result.next_offset}


async def _count(broker: Broker, partition: int, at: int, found: Partition) -> None:
    total, offset = 0, at
    while offset < found.end_offset:
        asked = wire.CountRecordsPartition(topic=TOPIC, partition=partition, from_offset=offset)
        request = wire.CountRecordsRequest(isolation_level=READ_COMMITTED, partitions=[asked])
        (result,) = (await broker.call(COUNT_RECORDS, request)).partitions
        if result.HasField("error"):
            found.errors.append(result.error.message)
            return
        total += result.record_count
        offset = result.next_offset
    found.counts[at] = total


async def _search(broker: Broker, partition: int, time_ms: int, found: Partition) -> None:
    asked = wire.ListOffsetsPartition(topic=TOPIC, partition=partition, timestamp_ms=time_ms)
    request = wire.ListOffsetsRequest(isolation_level=READ_COMMITTED, partitions=[asked])
    (result,) = (await broker.call(LIST_OFFSETS, request)).partitions
    if result.HasField("error"):
        found.errors.append(result.error.message)
    else:
        found.times[time_ms] = result.offset
