"""Fetch: the isolation filter, the bounds of an answer, and plain records."""

import asyncio

import pytest
from broker_harness import OTHER, PRODUCER
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    batch,
    code,
    compressed,
    plain,
    serving,
    turns,
)

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import ControlRecord, Header, Record
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_common.record_batches.batches import (
    Columns,
    check_crc,
    checksum,
    decode_records,
    encode_records,
)
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_common.wire.methods import FETCH
from semel_common.wire.status import from_value
from semel_runtime.authentication.principal import Origin
from semel_runtime.journal.contract import BATCH_MEMORY_BYTES
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.server.calls import Call, Written
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


def values(result: wire.FetchPartitionResult) -> list[bytes | None]:
    """Return the values of all records of an answer."""
    assert code(result) is None
    return [value for each in result.batches for value in decode_records(each).values]


async def test_committed_reads_see_neither_open_nor_aborted_records_nor_markers(
    broker: Broker,
) -> None:
    await broker.produce(plain(b"plain"))
    await broker.produce(batch(b"kept", epoch=0))
    await broker.produce(batch(b"dropped", producer_id=OTHER))
    await broker.end(ABORT, producer_id=OTHER)
    await broker.end(COMMIT, epoch=0)
    await broker.produce(batch(b"open", epoch=1))
    await broker.produce(plain(b"behind"))

    result = await broker.fetch()
    assert values(result) == [b"plain", b"kept"]
    assert (result.next_offset, result.last_stable_offset, result.high_watermark) == (5, 5, 7)

    await broker.end(COMMIT, epoch=1)
    rest = await broker.fetch(result.next_offset)
    assert values(rest) == [b"open", b"behind"]
    assert rest.next_offset == 8


async def test_uncommitted_reads_see_everything_with_its_flags(broker: Broker) -> None:
    await broker.produce(batch(b"dropped"))
    await broker.end(ABORT)
    await broker.produce(batch(b"open", epoch=1))
    result = await broker.fetch(isolation=READ_UNCOMMITTED)
    assert [(each.base_offset, each.control) for each in result.batches] == [
        (0, False),
        (1, True),
        (2, False),
    ]
    for each in result.batches:
        check_crc(each, each.payload)
    control = ControlRecord.FromString(result.batches[1].payload)
    assert (control.committed, control.coordinator_epoch) == (False, 1)
    assert result.next_offset == result.high_watermark == 3


async def test_the_next_offset_moves_past_what_is_left_out_at_the_end(broker: Broker) -> None:
    await broker.produce(batch(b"dropped"))
    await broker.end(ABORT)
    result = await broker.fetch()
    assert values(result) == []
    assert result.next_offset == 2


async def test_a_long_aborted_transaction_is_passed_in_bounded_steps(broker: Broker) -> None:
    for sequence in range(20):
        await broker.produce(batch(bytes(100), sequence=sequence))
    await broker.end(ABORT)
    await broker.produce(plain(b"behind"))
    offset, answers = 0, 0
    found: list[bytes | None] = []
    while not found:
        result = await broker.fetch(offset, max_bytes=1)
        assert result.next_offset > offset
        offset, answers, found = result.next_offset, answers + 1, values(result)
    assert found == [b"behind"]
    assert answers == 3


async def test_a_batch_that_begins_before_the_offset_is_answered_whole(broker: Broker) -> None:
    await broker.produce(plain(b"one", b"two", b"three"))
    result = await broker.fetch(2)
    assert values(result) == [b"one", b"two", b"three"]
    assert result.batches[0].base_offset == 0
    assert result.next_offset == 3


async def test_answers_are_bounded_but_never_stuck_at_a_large_batch(broker: Broker) -> None:
    for _ in range(3):
        await broker.produce(plain(bytes(1_000)))
    assert len((await broker.fetch(max_bytes=1)).batches) == 1
    assert len((await broker.fetch(max_bytes=3_000)).batches) == 2
    assert len((await broker.fetch()).batches) == 3


async def test_small_batches_count_with_their_size_in_memory(broker: Broker) -> None:
    await broker.produce(*[plain(b"x")] * 100)
    assert len((await broker.fetch(max_bytes=10_000)).batches) < 10_000 // BATCH_MEMORY_BYTES
    enough = await broker.fetch(max_bytes=1 << 20, min_bytes=10_000)
    assert len(enough.batches) == 100


async def test_others_run_while_many_small_batches_are_answered(broker: Broker) -> None:
    for _ in range(10):
        await broker.produce(*[plain(b"x")] * 200)
    fetch = asyncio.create_task(broker.fetch(max_bytes=8 << 20))
    turns_of_others = 0
    while not fetch.done():
        await asyncio.sleep(0)
        turns_of_others += 1
    assert len((await fetch).batches) == 2_000
    assert turns_of_others > 2_000 // 300


async def test_all_partitions_of_a_call_share_its_bound(broker: Broker) -> None:
    for partition in (0, 1):
        for _ in range(3):
            await broker.produce(plain(bytes(1_000)), partition=partition)
    request = wire.FetchRequest(
        max_bytes=2_000,
        partitions=[
            wire.FetchPartition(topic="orders", partition=0, partition_max_bytes=1_500),
            wire.FetchPartition(topic="orders", partition=1),
            wire.FetchPartition(topic="orders", partition=1),
        ],
    )
    results = (await broker.call(FETCH, request)).partitions
    assert [len(result.batches) for result in results] == [1, 1, 0]
    assert [result.next_offset for result in results] == [1, 1, 0]


async def test_the_brokers_own_bound_holds_for_every_call(volume: MemoryVolume) -> None:
    async with serving(volume, fetch_max_bytes=1_500) as broker:
        for _ in range(3):
            await broker.produce(plain(bytes(1_000)))
        assert len((await broker.fetch(max_bytes=1 << 30)).batches) == 1


@pytest.mark.parametrize("offset", [4, 1 << 62])
async def test_an_offset_out_of_range_is_answered_with_the_range(
    broker: Broker, offset: int
) -> None:
    await broker.produce(plain(b"one", b"two", b"three"))
    result = await broker.fetch(offset, max_wait_ms=60_000)
    assert code(result) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert dict(result.error.metadata) == {"log_start_offset": "0", "high_watermark": "3"}


async def test_errors_of_one_partition_leave_the_others_alone(broker: Broker) -> None:
    await broker.produce(plain(b"one"))
    request = wire.FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1 << 20,
        partitions=[
            wire.FetchPartition(topic="orders", partition=0),
            wire.FetchPartition(topic="orders", partition=2),
            wire.FetchPartition(topic="gone", partition=0),
        ],
    )
    here, elsewhere, gone = (await broker.call(FETCH, request)).partitions
    assert values(here) == [b"one"]
    assert code(elsewhere) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code(gone) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


ORDERS = wire.FetchPartition(topic="orders")


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(wire.FetchRequest(), id="no partition"),
        pytest.param(
            wire.FetchRequest(isolation_level=9, partitions=[ORDERS]),  # type: ignore[arg-type]  # unknown
            id="isolation level",
        ),
        pytest.param(wire.FetchRequest(min_bytes=-1, partitions=[ORDERS]), id="min bytes"),
        pytest.param(wire.FetchRequest(max_bytes=-1, partitions=[ORDERS]), id="max bytes"),
        pytest.param(wire.FetchRequest(max_wait_ms=-1, partitions=[ORDERS]), id="max wait"),
        pytest.param(wire.FetchRequest(partitions=[wire.FetchPartition()]), id="no name"),
        pytest.param(
            wire.FetchRequest(partitions=[wire.FetchPartition(topic="orders", fetch_offset=-1)]),
            id="offset",
        ),
        pytest.param(
            wire.FetchRequest(partitions=[wire.FetchPartition(topic="orders", partition=-1)]),
            id="partition",
        ),
        pytest.param(
            wire.FetchRequest(
                partitions=[wire.FetchPartition(topic="orders", partition_max_bytes=-1)]
            ),
            id="partition max bytes",
        ),
    ],
)
async def test_a_malformed_call_is_refused(broker: Broker, request_: wire.FetchRequest) -> None:
    with pytest.raises(InvalidRequestError):
        await broker.call(FETCH, request_)


async def test_an_error_leaves_the_position_where_it_was(broker: Broker) -> None:
    assert (await broker.fetch(7)).next_offset == 7
    assert (await broker.fetch(7, partition=2)).next_offset == 7


class Unread:
    """Answers that are made and not written yet."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.written = [Written() for _ in range(9)]
        self.calls = iter(self.written)

    async def fetch(self, max_bytes: int) -> int:
        """Read partition 0; return the bytes of the batches."""
        endpoint = self.broker.app.handlers.find(FETCH.path)
        assert endpoint is not None
        partition = wire.FetchPartition(topic="orders", fetch_offset=0)
        request = wire.FetchRequest(partitions=[partition], max_bytes=max_bytes)
        call = Call(origin=Origin(listener="default"), written=next(self.calls))
        response = await endpoint.handler(request, call)
        assert isinstance(response, wire.FetchResponse)
        return sum(len(each.payload) for each in response.partitions[0].batches)


@in_virtual_time
async def test_answers_hold_their_room_until_they_are_written(volume: MemoryVolume) -> None:
    async with serving(volume, fetch_in_progress_max_bytes=4 << 20) as broker:
        for _ in range(9):
            await broker.produce(plain(bytes(999_500)))
        unread = Unread(broker)
        sizes = [await unread.fetch(3_000_000), await unread.fetch(3_000_000)]
        assert [round(size / 1_000_000) for size in sizes] == [3, 1], "the second gets what is left"
        with pytest.raises(ThrottlingQuotaExceededError, match="hold 39"):
            await unread.fetch(1)
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(unread.fetch(1_000_000)) for _ in range(3)]
            await after(500)
            unread.written[0].settle()
        assert [round(each.result() / 1_000_000) for each in waiting] == [1, 1, 1]
        for each in unread.written:
            each.settle()
        assert round(await unread.fetch(4 << 20) / 1_000_000) == 4


async def test_a_call_that_fails_holds_no_room(broker: Broker) -> None:
    await broker.produce(plain(b"one"))
    endpoint = broker.app.handlers.find(FETCH.path)
    assert endpoint is not None
    _, fetch = endpoint.handler.args  # type: ignore[attr-defined]  # behind the audit
    fetcher = fetch.__self__
    waiting = asyncio.create_task(broker.fetch(max_wait_ms=60_000, min_bytes=1_000))
    await turns()
    assert fetcher._budget.held_bytes > 0
    waiting.cancel()
    await asyncio.wait([waiting])
    assert fetcher._budget.held_bytes == 0


@in_virtual_time
async def test_no_call_waits_for_more_while_there_is_no_room(volume: MemoryVolume) -> None:
    async with serving(volume, fetch_in_progress_max_bytes=1 << 20) as broker:
        await broker.produce(plain(bytes(1_040_000)))
        full = await broker.fetch(max_wait_ms=60_000, min_bytes=8 << 20, max_bytes=8 << 20)
        assert len(full.batches) == 1


async def test_a_store_that_cannot_be_read_is_reported_as_retriable(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object, **_options: object) -> None:
        raise JournalError("medium is damaged")

    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await broker.produce(plain(b"one"))
        monkeypatch.setattr(broker.app._environment.journal.batches, "read", fail)
        result = await broker.fetch()
    assert code(result) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "medium is damaged" in result.error.message


# -- plain records -------------------------------------------------------------------------------


async def test_plain_records_have_offsets_and_all_fields(broker: Broker) -> None:
    records = [
        Record(timestamp_ms=7, key=b"k", value=b"v", headers=[Header(key="h", value=b"x")]),
        Record(timestamp_ms=8, value=b""),
        Record(timestamp_ms=9),
    ]
    await broker.produce(plain(b"before"))
    await broker.produce_as(
        wire.ProducePartition(topic="orders", records=wire.PlainRecords(records=records))
    )
    result = await broker.fetch(1, plain=True)
    for offset, record in enumerate(records, start=1):
        record.offset = offset
    assert list(result.records) == records
    assert not result.batches
    assert result.next_offset == 4


async def test_plain_records_begin_at_the_offset_that_was_asked_for(broker: Broker) -> None:
    await broker.produce(plain(b"one", b"two", b"three"))
    assert [record.value for record in (await broker.fetch(2, plain=True)).records] == [b"three"]


async def test_uncommitted_plain_reads_pass_over_markers(broker: Broker) -> None:
    await broker.produce(batch(b"one"))
    await broker.end(COMMIT)
    result = await broker.fetch(plain=True, isolation=READ_UNCOMMITTED)
    assert [record.value for record in result.records] == [b"one"]
    assert result.next_offset == 2


async def test_a_batch_that_cannot_be_opened_stops_plain_reads_only_there(broker: Broker) -> None:
    broken = plain(b"two")
    broken.record_count = 2
    broken.crc32c = checksum(broken, broken.payload)
    await broker.produce(plain(b"one"))
    await broker.produce(broken)
    first = await broker.fetch(plain=True, max_wait_ms=60_000, min_bytes=1 << 20)
    assert [record.value for record in first.records] == [b"one"]
    assert first.next_offset == 1
    second = await broker.fetch(first.next_offset, plain=True)
    assert code(second) == ErrorCode.CORRUPT_MESSAGE
    assert len((await broker.fetch(first.next_offset)).batches) == 1


async def test_plain_records_are_bounded_by_their_opened_size(broker: Broker) -> None:
    for first in range(0, 40, 20):
        numbers = [b"%d" % n for n in range(first, first + 20)]
        small = compressed(*(number.ljust(100_000) for number in numbers))
        assert len(small.payload) < 10_000
        await broker.produce(small)
    read: list[bytes] = []
    next_offset = answers = 0
    while len(read) < 40:
        result = await broker.fetch(next_offset, plain=True, max_bytes=1 << 20)
        assert result.ByteSize() < 1_200_000
        read += [record.value.rstrip() for record in result.records]
        next_offset, answers = result.next_offset, answers + 1
    assert read == [b"%d" % n for n in range(40)]
    assert answers == 4


async def test_a_batch_that_grows_too_large_when_opened_is_no_plain_record(broker: Broker) -> None:
    await broker.produce(plain(b"one"))
    await broker.produce(compressed(bytes(OPENED_MAX_BYTES)))
    await broker.produce(plain(b"three"))
    assert (await broker.fetch(plain=True)).next_offset == 1
    refused = await broker.fetch(1, plain=True)
    assert code(refused) == ErrorCode.MESSAGE_TOO_LARGE
    assert "orders-0: batch at offset 1" in refused.error.message
    assert "go on at offset 2 to skip the batch" in refused.error.message
    place = {"topic": "orders", "partition": "0", "offset": "1", "next_offset": "2"}
    assert place.items() <= from_value(refused.error).details.items()
    skipped = await broker.fetch(2, plain=True)
    assert [record.value for record in skipped.records] == [b"three"]
    assert len((await broker.fetch(1)).batches) == 2


async def test_plain_records_of_a_compacted_batch_have_their_own_offsets(broker: Broker) -> None:
    left = Columns(
        values=[b"b", b"d"], keys=None, timestamps_ms=[6, 8], headers={}, offset_deltas=[1, 3]
    )
    kept = plain(b"b", b"d")
    kept.record_count, kept.payload = 5, encode_records(left)
    kept.crc32c = checksum(kept, kept.payload)
    await broker.produce(kept)
    result = await broker.fetch(2, plain=True)
    assert [(record.offset, record.value) for record in result.records] == [(3, b"d")]
    assert result.next_offset == 5


async def test_producers_of_one_partition_are_filtered_each_for_itself(broker: Broker) -> None:
    for number in range(3):
        await broker.produce(
            batch(b"a%d" % number, producer_id=PRODUCER, sequence=number),
            batch(b"b%d" % number, producer_id=OTHER, sequence=number),
        )
    await broker.end(ABORT, producer_id=PRODUCER)
    await broker.end(COMMIT, producer_id=OTHER)
    assert values(await broker.fetch(isolation=READ_COMMITTED)) == [b"b0", b"b1", b"b2"]
