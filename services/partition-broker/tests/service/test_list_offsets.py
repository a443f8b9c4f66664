"""ListOffsets: named offsets, and the search by time."""

from collections.abc import Sequence

import pytest
from broker_harness import OTHER
from broker_service import (
    ABORT,
    COMMIT,
    READ_UNCOMMITTED,
    Broker,
    batch,
    code,
    compressed,
    plain,
    serving,
)

from semel.broker.v1 import broker_pb2 as wire
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError
from semel_common.record_batches.batches import checksum
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_common.wire.methods import DELETE_RECORDS, LIST_OFFSETS
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.testing.volume import MemoryVolume

EARLIEST = wire.OFFSET_SPEC_EARLIEST
NEWEST = wire.OFFSET_SPEC_MAX_TIMESTAMP
LATEST = wire.OFFSET_SPEC_LATEST


async def test_the_latest_offset_depends_on_the_isolation_level(broker: Broker) -> None:
    await broker.produce(plain(b"one"))
    await broker.produce(batch(b"open"))
    assert (await broker.list_offset(spec=EARLIEST)).offset == 0
    assert (await broker.list_offset(spec=LATEST)).offset == 1
    latest = await broker.list_offset(spec=LATEST, isolation=READ_UNCOMMITTED)
    assert (latest.offset, latest.timestamp_ms) == (2, -1)


@pytest.mark.parametrize(
    ("timestamp_ms", "offset", "found_ms"),
    [(0, 0, 10), (10, 0, 10), (11, 1, 20), (25, 3, 30), (30, 3, 30), (31, -1, -1)],
)
async def test_the_first_record_at_or_after_a_time_is_found(
    broker: Broker, timestamp_ms: int, offset: int, found_ms: int
) -> None:
    await broker.produce(plain(b"a", b"b", timestamps_ms=[10, 20]))
    await broker.produce(plain(b"c", b"d", timestamps_ms=[5, 30]))
    result = await broker.list_offset(timestamp_ms=timestamp_ms)
    assert (result.offset, result.timestamp_ms) == (offset, found_ms)


async def test_the_newest_record_need_not_be_the_last_one(broker: Broker) -> None:
    nothing = await broker.list_offset(spec=NEWEST)
    assert (nothing.offset, nothing.timestamp_ms) == (-1, -1)
    for times_ms in ([5, 9], [70, 10, 70], [8], [70], *([each] for each in range(7))):
        await broker.produce(plain(*(b"x" for _ in times_ms), timestamps_ms=times_ms))
    found = await broker.list_offset(spec=NEWEST)
    assert (found.offset, found.timestamp_ms) == (2, 70)


async def test_the_newest_committed_record_is_neither_open_nor_aborted(broker: Broker) -> None:
    await broker.produce(plain(b"kept", timestamps_ms=[5]))
    await broker.produce(batch(b"dropped", timestamps_ms=[50]))
    await broker.end(ABORT)
    await broker.produce(batch(b"open", producer_id=OTHER, timestamps_ms=[60]))
    assert (await broker.list_offset(spec=NEWEST)).offset == 0
    found = await broker.list_offset(spec=NEWEST, isolation=READ_UNCOMMITTED)
    assert (found.offset, found.timestamp_ms) == (3, 60)


async def test_committed_searches_pass_over_aborted_records_and_markers(broker: Broker) -> None:
    await broker.produce(batch(b"dropped", timestamps_ms=[50]))
    await broker.end(ABORT)
    await broker.produce(plain(b"early", timestamps_ms=[1]))
    await broker.produce(batch(b"kept", producer_id=OTHER, timestamps_ms=[60]))
    await broker.end(COMMIT, producer_id=OTHER)
    assert (await broker.list_offset(timestamp_ms=40)).offset == 3
    found = await broker.list_offset(timestamp_ms=40, isolation=READ_UNCOMMITTED)
    assert found.offset == 0


async def test_a_committed_search_ends_at_the_last_stable_offset(broker: Broker) -> None:
    await broker.produce(batch(b"open", timestamps_ms=[50]))
    assert (await broker.list_offset(timestamp_ms=40)).offset == -1


async def test_only_dropped_records_are_late_enough(broker: Broker) -> None:
    await broker.produce(batch(b"dropped", timestamps_ms=[50]))
    await broker.end(ABORT)
    assert (await broker.list_offset(timestamp_ms=40)).offset == -1


async def test_of_a_batch_that_cannot_be_opened_the_first_offset_is_answered(
    broker: Broker,
) -> None:
    broken = plain(b"a", b"b", timestamps_ms=[10, 20])
    broken.record_count = 3
    broken.crc32c = checksum(broken, broken.payload)
    await broker.produce(plain(b"before", timestamps_ms=[1]))
    await broker.produce(broken)
    result = await broker.list_offset(timestamp_ms=15)
    assert (result.offset, result.timestamp_ms) == (1, 20)


async def test_a_batch_that_grows_too_large_when_opened_is_not_opened(broker: Broker) -> None:
    await broker.produce(plain(b"before", timestamps_ms=[1]))
    await broker.produce(compressed(b"a", bytes(OPENED_MAX_BYTES), timestamps_ms=[10, 20]))
    result = await broker.list_offset(timestamp_ms=15)
    assert (result.offset, result.timestamp_ms) == (1, 20)


async def test_a_search_in_a_log_that_is_being_purged_finds_nothing(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(*_args: object, **_options: object) -> tuple[()]:
        log.drop()
        return ()

    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await broker.produce(plain(b"one", timestamps_ms=[10]))
        (log, *_) = broker.app._machine._logs
        monkeypatch.setattr(broker.app._environment.journal.batches, "read", read)
        assert (await broker.list_offset(timestamp_ms=5)).offset == -1
        assert not (await broker.fetch()).batches


async def test_a_search_passes_over_many_dropped_records(broker: Broker) -> None:
    for sequence in range(250):
        await broker.produce(batch(b"dropped", sequence=sequence, timestamps_ms=[50]))
    await broker.end(ABORT)
    await broker.produce(plain(b"kept", timestamps_ms=[60]))
    assert (await broker.list_offset(timestamp_ms=40)).offset == 251


async def test_a_search_opens_no_payload_but_the_one_that_it_answers(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await broker.produce(plain(b"early", timestamps_ms=[1]))
        await broker.produce(batch(b"dropped", timestamps_ms=[50]))
        await broker.end(ABORT)
        for _ in range(9):
            await broker.produce(*[plain(b"early", timestamps_ms=[1])] * 100)
        await broker.produce(plain(b"late", timestamps_ms=[60]), plain(b"last", timestamps_ms=[70]))
        opened = _reads(broker, monkeypatch)
        assert (await broker.list_offset(timestamp_ms=40)).offset == 903
        assert opened == [903]
        assert (await broker.list_offset(timestamp_ms=80)).offset == -1
        assert opened == [903]


async def test_a_search_begins_within_the_batch_that_is_cut_in_half(broker: Broker) -> None:
    await broker.produce(plain(b"a", b"b", b"c", timestamps_ms=[10, 20, 30]))
    await broker.produce(plain(b"d", timestamps_ms=[40]))
    cut = wire.DeleteRecordsPartition(topic="orders", partition=0, before_offset=2)
    await broker.call(DELETE_RECORDS, wire.DeleteRecordsRequest(partitions=[cut]))
    assert (await broker.list_offset(timestamp_ms=5)).offset == 2
    assert (await broker.list_offset(timestamp_ms=35)).offset == 3


def _reads(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where payloads are read from now on."""
    store = broker.app._environment.journal.batches
    read, offsets = store.read, list[int]()

    async def noted(
        partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        found = await read(partition, offset, max_bytes=max_bytes, upto=upto)
        offsets.extend(each.base_offset for each in found)
        return found

    monkeypatch.setattr(store, "read", noted)
    return offsets


async def test_unknown_partitions_are_answered_one_by_one(broker: Broker) -> None:
    request = wire.ListOffsetsRequest(
        partitions=[
            wire.ListOffsetsPartition(topic="gone", spec=LATEST),
            wire.ListOffsetsPartition(topic_id="id-orders", partition=2, spec=LATEST),
            wire.ListOffsetsPartition(topic_id="id-orders", partition=1, spec=LATEST),
        ]
    )
    results = (await broker.call(LIST_OFFSETS, request)).partitions
    assert [code(result) for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        None,
    ]


@pytest.mark.parametrize(
    "partition",
    [
        wire.ListOffsetsPartition(topic="orders"),
        wire.ListOffsetsPartition(topic="orders", timestamp_ms=-1),
        wire.ListOffsetsPartition(topic="orders", spec=wire.OFFSET_SPEC_UNSPECIFIED),
        wire.ListOffsetsPartition(topic="orders", partition=-2, spec=LATEST),
    ],
    ids=str,
)
async def test_a_malformed_question_is_refused(
    broker: Broker, partition: wire.ListOffsetsPartition
) -> None:
    with pytest.raises(InvalidRequestError):
        await broker.call(LIST_OFFSETS, wire.ListOffsetsRequest(partitions=[partition]))


async def test_a_store_that_cannot_be_searched_is_reported_as_retriable(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object, **_options: object) -> None:
        raise JournalError("medium is damaged")

    await broker.produce(plain(b"early", timestamps_ms=[0]), plain(b"x", timestamps_ms=[1]))
    monkeypatch.setattr(broker.app._environment.journal.batches, "first_at", fail)
    result = await broker.list_offset(timestamp_ms=1)
    assert code(result) == ErrorCode.KAFKA_STORAGE_ERROR
