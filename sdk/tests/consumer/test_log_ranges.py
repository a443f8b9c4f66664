"""Ranges of one log: all that is in them, once, and only of the log that was meant."""

import asyncio

import pytest
from consumer_harness import pass_time
from fake_cluster import FakeCluster

from aiosemel import (
    BatchOutcome,
    ClientOptions,
    ConsumerOptions,
    IsolationLevel,
    LogRange,
    LogRangeReader,
    SemelClient,
    TopicPartition,
    TopicsDescription,
)
from aiosemel.errors import (
    CorruptMessageError,
    InvalidRequestError,
    InvalidTopicError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1.broker_pb2 import FetchPartition, FetchRequest
from semel.common.v1.records_pb2 import Codec
from semel_common import ids

EVERYTHING = ConsumerOptions(isolation_level=IsolationLevel.READ_UNCOMMITTED)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 2)
    return fake


def client_of(fake: FakeCluster) -> SemelClient:
    options = ClientOptions(default_api_timeout_ms=5_000)
    return SemelClient("coordinator:1", connector=fake, options=options)


def range_of(fake: FakeCluster, start: int, end: int, partition: int = 0) -> LogRange:
    return LogRange(
        topic="orders",
        topic_id=fake.topics["orders"],
        partition=partition,
        start_offset=start,
        end_offset=end,
    )


async def read(reader: LogRangeReader) -> list[bytes | None]:
    found: list[bytes | None] = []
    while batches := await reader.read():
        found += [value for batch in batches for value in batch.values]
    return found


async def test_a_range_begins_and_ends_within_batches(fake: FakeCluster) -> None:
    fake.append("orders", 1, [b"0", b"1", b"2"])
    fake.append("orders", 1, [b"3", b"4"])
    fake.append("orders", 1, [b"5"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 1, 4, partition=1))
        assert await read(reader) == [b"1", b"2", b"3"]
        assert reader.position >= 4
        assert await reader.read() == ()


async def test_a_range_is_read_in_pieces_of_the_size_that_was_asked_for(fake: FakeCluster) -> None:
    for _ in range(4):
        fake.append("orders", 0, [b"x" * 100])
    options = ConsumerOptions(max_partition_fetch_bytes=250)
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 4), options)
        pieces = []
        while batches := await reader.read():
            pieces.append(sum(map(len, batches)))
    assert pieces == [2, 2]


async def test_what_is_compressed_is_opened_in_pieces_of_that_size_too(fake: FakeCluster) -> None:
    for _ in range(7):
        fake.append("orders", 0, [b"x" * 5_000, b"y" * 5_000], codec=Codec.CODEC_ZSTD)
    options = ConsumerOptions(max_partition_fetch_bytes=25_000)
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 14), options)
        pieces = []
        while batches := await reader.read():
            pieces.append((reader.position, [len(batch) for batch in batches]))
    assert pieces == [(6, [2, 2, 2]), (12, [2, 2, 2]), (14, [2])]
    assert len(fake.asked("Fetch")) == 1


async def test_what_was_aborted_is_left_out_and_crossed(fake: FakeCluster) -> None:
    fake.append_aborted("orders", 0, [b"aborted"])
    fake.append("orders", 0, [b"2"])
    fake.append_aborted("orders", 0, [b"aborted"])
    async with client_of(fake) as client:
        assert await read(client.read_range(range_of(fake, 0, 5))) == [b"2"]
        whole = client.read_range(range_of(fake, 0, 5), EVERYTHING)
        assert await read(whole) == [b"aborted", b"2", b"aborted"]


class TellingCluster(FakeCluster):
    """Tells the outcomes of batches to readers that ask."""

    def _read(
        self, address: str, asked: FetchPartition, request: FetchRequest
    ) -> broker.FetchPartitionResult:
        result = super()._read(address, asked, request)
        log = self.logs[ids.TopicPartition(asked.topic_id, asked.partition)]
        for batch in result.batches if request.batch_outcomes else ():
            result.batch_outcomes.append(
                broker.BATCH_OUTCOME_ABORTED
                if batch.control or batch.base_offset in log.hidden
                else broker.BATCH_OUTCOME_OPEN
                if batch.base_offset >= log.stable
                else broker.BATCH_OUTCOME_NOT_TRANSACTIONAL
            )
        return result


async def outcomes_of(reader: LogRangeReader) -> list[tuple[bytes | None, BatchOutcome | None]]:
    found: list[tuple[bytes | None, BatchOutcome | None]] = []
    while batches := await reader.read():
        found += [(value, batch.outcome) for batch in batches for value in batch.values]
    return found


async def test_each_record_has_the_outcome_of_its_batch_for_a_reader_that_asks() -> None:
    fake = TellingCluster()
    fake.create_topic("orders", 1)
    fake.append("orders", 0, [b"0", b"1"])
    fake.append_aborted("orders", 0, [b"2"])
    fake.append("orders", 0, [b"4", b"5"])
    fake.log("orders", 0).open_from = 4
    async with client_of(fake) as client:
        asking = client.read_range(range_of(fake, 1, 5), EVERYTHING, with_outcomes=True)
        assert await outcomes_of(asking) == [
            (b"1", BatchOutcome.NOT_TRANSACTIONAL),
            (b"2", BatchOutcome.ABORTED),
            (b"4", BatchOutcome.OPEN),
        ]
        silent = client.read_range(range_of(fake, 1, 5), EVERYTHING)
        assert await outcomes_of(silent) == [(b"1", None), (b"2", None), (b"4", None)]


async def test_a_broker_of_an_older_release_tells_no_outcomes(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    fake.append("orders", 0, [b"1"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2), EVERYTHING, with_outcomes=True)
        assert await outcomes_of(reader) == [(b"0", None), (b"1", None)]


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 3)])
async def test_an_empty_range_makes_no_call(fake: FakeCluster, start: int, end: int) -> None:
    async with client_of(fake) as client:
        assert await client.read_range(range_of(fake, start, end)).read() == ()
    assert not fake.calls


async def test_another_leader_is_found(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        fake.refusals["Fetch"].append(NotLeaderOrFollowerError("moved"))
        assert await read(client.read_range(range_of(fake, 0, 1))) == [b"0"]


async def test_a_cancelled_read_has_moved_nothing(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    fake.log("orders").open_from = 0
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 1))
        reading = asyncio.ensure_future(reader.read())
        await pass_time(0.1)
        reading.cancel()
        await asyncio.wait([reading])
        fake.log("orders").open_from = None
        assert await read(reader) == [b"0"]


async def test_what_the_log_does_not_hold_any_more_is_said(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0", b"1"])
    fake.log("orders").start = 1
    async with client_of(fake) as client:
        with pytest.raises(OffsetOutOfRangeError):
            await client.read_range(range_of(fake, 0, 2)).read()


async def test_what_the_log_does_not_hold_yet_is_waited_for_but_not_for_ever(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2))
        assert [list(each.values) for each in await reader.read()] == [[b"0"]]
        asyncio.get_running_loop().call_later(1, fake.append, "orders", 0, [b"1"])
        assert await read(reader) == [b"1"]
        with pytest.raises(OffsetOutOfRangeError, match=r"nothing to read at offset 2.* goes to 3"):
            await client.read_range(range_of(fake, 2, 3)).read()


async def test_a_topic_that_was_created_again_is_not_read(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"old"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 1))
        await client.admin().describe_topics(["orders"])
        fake.delete_topic("orders")
        fake.create_topic("orders")
        fake.append("orders", 0, [b"new"])
        with pytest.raises(InvalidTopicError, match="id-orders-0 is gone, its id is id-orders-"):
            await reader.read()


async def test_a_client_that_knows_the_old_topic_only_reads_the_new_one(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        await client.admin().describe_topics(["orders"])
        fake.delete_topic("orders")
        fake.create_topic("orders")
        fake.append("orders", 0, [b"new"])
        assert await read(client.read_range(range_of(fake, 0, 1))) == [b"new"]


async def test_a_partition_that_was_added_since_is_found(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        await client.admin().describe_topics(["orders"])
        fake.create_partitions("orders", 3)
        fake.append("orders", 2, [b"new"])
        assert await read(client.read_range(range_of(fake, 0, 1, partition=2))) == [b"new"]
        with pytest.raises(UnknownTopicOrPartitionError, match="3 partitions, no partition 3"):
            await read(client.read_range(range_of(fake, 0, 1, partition=3)))


async def test_a_topic_that_is_gone_is_not_waited_for_for_ever(fake: FakeCluster) -> None:
    reader_range = range_of(fake, 0, 1)
    fake.delete_topic("orders")
    async with client_of(fake) as client:
        with pytest.raises(UnknownTopicOrPartitionError):
            await client.read_range(reader_range).read()


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (6, 5)])
def test_a_malformed_range_is_refused(start: int, end: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"start_offset is {start}, not within 0 to 5"):
        LogRange(topic="t", topic_id="i", partition=0, start_offset=start, end_offset=end)


# -- asked ahead ----------------------------------------------------------------------------------


async def test_the_next_fetch_is_asked_for_before_the_last_is_opened(fake: FakeCluster) -> None:
    for value in (b"0" * 100, b"1" * 100):
        fake.append("orders", 0, [value])
    options = ConsumerOptions(max_partition_fetch_bytes=100)
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2), options)
        for position in (1, 2):
            await reader.read()
            assert reader.position == position
            assert [each.fetch_offset for each in _fetched(fake)] == [0, 1]


async def test_an_error_of_a_fetch_asked_ahead_is_raised_by_the_read_that_needs_it(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 3))
        await reader.read()
        fake.log("orders").start = 2
        fake.append("orders", 0, [b"1", b"2"])
        await pass_time(0.1)
        assert fake.parked == 0, "the fetch ahead has failed"
        with pytest.raises(OffsetOutOfRangeError, match="offset 1 is not within 2 to 3"):
            await reader.read()


async def test_what_a_fetch_asked_ahead_has_failed_with_may_be_over(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2))
        await reader.read()
        fake.log("orders").start = 2
        fake.append("orders", 0, [b"1"])
        await pass_time(0.1)
        fake.log("orders").start = 0
        assert await read(reader) == [b"1"]


async def test_a_cancelled_wait_for_a_prefetched_call_loses_nothing(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2))
        await reader.read()
        reading = asyncio.ensure_future(reader.read())
        await pass_time(0.1)
        reading.cancel()
        await asyncio.wait([reading])
        fake.append("orders", 0, [b"1"])
        assert await read(reader) == [b"1"]
    assert [each.fetch_offset for each in _fetched(fake)] == [0, 1]


async def test_a_read_that_is_cancelled_while_the_next_leaves_has_moved_nothing(
    fake: FakeCluster,
) -> None:
    for value in (b"0" * 100, b"1" * 100):
        fake.append("orders", 0, [value])
    options = ConsumerOptions(max_partition_fetch_bytes=100)
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 2), options)
        reading = asyncio.ensure_future(reader.read())
        while len(fake.asked("Fetch")) < 2:  # noqa: ASYNC110 - turn by turn
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
        assert reader.position == 0
        assert await read(reader) == [b"0" * 100, b"1" * 100]


async def test_a_reader_that_is_forgotten_leaves_nothing_behind(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"0"])
    async with client_of(fake) as client:
        await client.read_range(range_of(fake, 0, 2)).read()
        assert fake.parked == 1
        assert len(asyncio.all_tasks()) > 1
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert fake.parked == 0


async def test_a_damaged_batch_is_told_of_after_those_before_it_and_fetched_again(
    fake: FakeCluster,
) -> None:
    for value in (b"0", b"1", b"2"):
        fake.append("orders", 0, [value])
    damaged = fake.log("orders").batches[1]
    damaged.crc32c += 1
    async with client_of(fake) as client:
        reader = client.read_range(range_of(fake, 0, 3))
        assert [each.values for each in await reader.read()] == [[b"0"]]
        with pytest.raises(CorruptMessageError):
            await reader.read()
        damaged.crc32c -= 1
        assert await read(reader) == [b"1", b"2"]


# -- offsets and reads ----------------------------------------------------------------------------


async def test_described_topics_are_the_present_ones(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        admin = client.admin()
        described = await admin.describe_topics(["orders", "nowhere"])
        assert described.cluster_id == "c"
        assert list(described.topics) == ["orders"]
        fake.delete_topic("orders")
        fake.create_topic("orders", 3)
        described = await admin.describe_topics(["orders"])
        assert described.topics["orders"].topic_id == fake.topics["orders"]
        assert len(described.topics["orders"].partitions) == 3
        await admin.wait_for_records({("orders", 2): 0}, max_wait_ms=10)
    (asked,) = {each.topic_id for each in _fetched(fake)}
    assert asked == fake.topics["orders"], "the client knows it from then on"


async def test_an_answer_that_lags_behind_known_metadata_is_not_taken(fake: FakeCluster) -> None:
    """Coordinators follow the cluster's metadata: one of them may not have heard yet."""
    loop = asyncio.get_running_loop()
    async with client_of(fake) as client:
        admin = client.admin()
        newest = await admin.describe_topics(["orders"])
        fake.version -= 1
        old = fake.topics.pop("orders")

        def catch_up() -> None:
            fake.version += 1
            fake.topics["orders"] = old

        for ask in (admin.describe_topics(["orders"]), admin.list_topics()):
            loop.call_later(0.3, catch_up)
            answer = await ask
            found = answer.topics.values() if isinstance(answer, TopicsDescription) else answer
            assert list(found) == list(newest.topics.values())
            fake.version -= 1
            fake.topics.pop("orders")


@pytest.mark.parametrize("partition", [0, 1])
async def test_the_first_record_at_any_broker_ends_a_wait(
    fake: FakeCluster, partition: int
) -> None:
    loop = asyncio.get_running_loop()
    async with client_of(fake) as client:
        begun = loop.time()
        loop.call_later(1, fake.append, "orders", partition, [b"x"])
        await client.admin().wait_for_records({P0: 0, P1: 0}, max_wait_ms=60_000)
        assert 1 <= loop.time() - begun < 1.1
        assert fake.parked == 0, "nobody is asked any longer"


async def test_a_wait_ends_when_its_time_is_over(fake: FakeCluster) -> None:
    loop = asyncio.get_running_loop()
    fake.append("orders", 0, [b"x"])
    fake.log("orders").open_from = 0
    async with client_of(fake) as client:
        for ends in ({P0: 0, P1: 0}, {}):
            before = loop.time()
            await client.admin().wait_for_records(ends, max_wait_ms=2_000)
            assert 2 <= loop.time() - before < 2.1
        begun = loop.time()
        await client.admin().wait_for_records(
            {P0: 0}, max_wait_ms=60_000, isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        assert loop.time() - begun < 0.1


async def test_what_fails_ends_a_wait_after_a_pause(fake: FakeCluster) -> None:
    loop = asyncio.get_running_loop()
    async with client_of(fake) as client:
        await client.admin().wait_for_records({P0: 0}, max_wait_ms=1)
        fake.faults["Fetch"].append(NotLeaderOrFollowerError("moved"))
        begun = loop.time()
        await client.admin().wait_for_records({P0: 0}, max_wait_ms=2_000)
        assert 0.1 <= loop.time() - begun < 0.2
        begun = loop.time()
        await client.admin().wait_for_records({("nowhere", 0): 0}, max_wait_ms=2_000)
        assert 0.1 <= loop.time() - begun < 4


def _fetched(fake: FakeCluster) -> list[FetchPartition]:
    requests = [question for question in fake.asked("Fetch") if isinstance(question, FetchRequest)]
    return [partition for request in requests for partition in request.partitions]
