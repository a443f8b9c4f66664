"""Positions and fetched records, without I/O."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiosemel import ColumnBatch, NoOffsetForPartitionError, OffsetReset, TopicPartition
from aiosemel._consumer.partition_state import Chunk, Opened, PositionState
from aiosemel._consumer.positions import FetchPosition, Positions, Ticket
from aiosemel.errors import CorruptMessageError, OffsetOutOfRangeError, UnknownServerError

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of consecutive offsets."""

    base_offset: int
    count: int
    corrupt: bool = False
    opened_bytes: int = 0


def opened(topic_partition: TopicPartition, batch: Batch) -> Opened:
    if batch.corrupt:
        raise CorruptMessageError("bits have flipped")
    offsets = range(batch.base_offset, batch.base_offset + batch.count)
    records = ColumnBatch(
        topic_partition=topic_partition,
        offsets=offsets,
        values=[b"%d" % offset for offset in offsets],
        keys=None,
        timestamps_ms=[0] * batch.count,
        headers={},
    )
    return Opened(records, batch.opened_bytes)


def chunk(
    base_offset: int, count: int, *, size: int = 10, corrupt: bool = False, opened_bytes: int = 0
) -> Chunk[Batch]:
    batch = Batch(base_offset, count, corrupt, opened_bytes)
    return Chunk(batch=batch, size_bytes=size, next_offset=base_offset + count)


def positions(policy: OffsetReset = OffsetReset.LATEST) -> Positions[Batch]:
    return Positions(opened, policy=policy, prefetch_max_bytes=1_000, partition_max_bytes=100)


def reading(offset: int = 0, policy: OffsetReset = OffsetReset.LATEST) -> Positions[Batch]:
    """Return the positions of a consumer that reads one partition."""
    made = positions(policy)
    made.assign(P0, "id")
    made.committed(made.awaiting(PositionState.AWAITING_COMMITTED)[0].ticket, offset)
    return made


def ask(at: Positions[Batch]) -> FetchPosition:
    """Begin the one fetch that there is to begin."""
    (asked,) = at.fetchable()
    at.asked([asked.ticket])
    return asked


def fetch(at: Positions[Batch], *chunks: Chunk[Batch], next_offset: int | None = None) -> None:
    """Let one fetch be answered."""
    asked = ask(at)
    end = chunks[-1].next_offset if chunks else asked.offset
    at.fetched(asked, chunks, end if next_offset is None else next_offset)
    at.given_up([asked.ticket])


def take(at: Positions[Batch], max_records: int = 100) -> list[int]:
    return [offset for batch in at.take(max_records) for offset in batch.offsets]


# -- finding a position --------------------------------------------------------------------------


def test_a_new_partition_asks_for_the_committed_offset_first() -> None:
    at = positions()
    at.assign(P0, "id")
    assert at.held() == {P0}
    assert at.position(P0) is None
    assert at.positions() == {}
    assert at.fetchable() == []
    (question,) = at.awaiting(PositionState.AWAITING_COMMITTED)
    assert question.topic_id == "id"
    at.committed(question.ticket, 42)
    assert at.position(P0) == 42
    assert ask(at).offset == 42


@pytest.mark.parametrize("policy", [OffsetReset.EARLIEST, OffsetReset.LATEST])
def test_without_a_committed_offset_the_policy_says_where_to_start(policy: OffsetReset) -> None:
    at = positions(policy)
    at.assign(P0, "id")
    at.committed(at.awaiting(PositionState.AWAITING_COMMITTED)[0].ticket, None)
    (question,) = at.awaiting(PositionState.AWAITING_RESET)
    assert question.reset is policy
    at.found(question.ticket, 7)
    assert at.positions() == {P0: 7}


def test_without_a_committed_offset_and_a_policy_the_user_is_told_each_time() -> None:
    at = positions(OffsetReset.NONE)
    at.assign(P0, "id")
    for _ in range(2):
        (question,) = at.awaiting(PositionState.AWAITING_COMMITTED)
        at.committed(question.ticket, None)
        assert at.awaiting(PositionState.AWAITING_COMMITTED) == []
        with pytest.raises(NoOffsetForPartitionError, match="orders-0") as raised:
            at.check(P0)
        assert raised.value.details == {"topic": "orders", "partition": "0"}
        with pytest.raises(NoOffsetForPartitionError):
            at.take(1)


def test_what_is_asked_is_not_asked_again_until_it_is_given_up() -> None:
    at = positions()
    at.assign(P0, "id")
    (question,) = at.awaiting(PositionState.AWAITING_COMMITTED)
    at.asked([question.ticket])
    assert at.awaiting(PositionState.AWAITING_COMMITTED) == []
    at.given_up([question.ticket])
    assert at.awaiting(PositionState.AWAITING_COMMITTED) == [question]


def test_a_topic_id_can_become_known_later() -> None:
    at = positions()
    at.assign(P0, "")
    (question,) = at.awaiting(PositionState.AWAITING_COMMITTED)
    at.identify(question.ticket, "id")
    assert at.topic_ids() == {P0: "id"}


def test_holding_a_partition_twice_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="orders-0 is held already"):
        reading().assign(P0, "id")


# -- fetching and taking -------------------------------------------------------------------------


def test_records_are_taken_in_order_and_the_position_follows() -> None:
    at = reading()
    assert take(at) == []
    fetch(at, chunk(0, 2), chunk(2, 3))
    assert at.position(P0) == 0
    assert take(at, 1) == [0]
    assert at.position(P0) == 1
    assert take(at, 3) == [1, 2, 3]
    assert at.position(P0) == 4
    assert take(at) == [4]
    assert at.position(P0) == 5
    assert take(at) == []


def test_the_next_fetch_goes_on_where_the_last_one_ended() -> None:
    at = reading()
    fetch(at, chunk(0, 2), next_offset=5)
    assert ask(at).offset == 5


def test_the_position_crosses_aborted_records_when_those_before_are_used_up() -> None:
    at = reading()
    fetch(at, chunk(0, 2), next_offset=9)
    assert take(at, 1) == [0]
    assert at.position(P0) == 1
    assert take(at) == [1]
    assert at.position(P0) == 9


def test_the_position_crosses_a_gap_at_once_when_nothing_is_before_it() -> None:
    at = reading()
    fetch(at, next_offset=4)
    assert at.position(P0) == 4
    assert take(at) == []
    marker: Chunk[Batch] = Chunk(batch=None, size_bytes=5, next_offset=5)
    fetch(at, marker, chunk(5, 1))
    assert at.position(P0) == 5
    assert take(at) == [5]


def test_records_below_the_wanted_offset_are_skipped() -> None:
    at = reading(offset=3)
    fetch(at, chunk(0, 5))
    assert take(at) == [3, 4]


def test_a_batch_wholly_below_the_wanted_offset_is_skipped() -> None:
    at = reading(offset=3)
    fetch(at, chunk(0, 2), chunk(3, 1))
    assert take(at) == [3]


def test_a_broker_that_answers_less_than_was_asked_moves_nothing_back() -> None:
    at = reading(offset=8)
    fetch(at, next_offset=3)
    assert ask(at).offset == 8


def test_an_answer_that_was_given_twice_counts_once() -> None:
    at = reading()
    asked = ask(at)
    for _ in range(2):
        at.fetched(asked, [chunk(0, 2)], 2)
    assert take(at) == [0, 1]


def test_partitions_take_turns_in_being_first() -> None:
    at = positions()
    for each in (P0, P1):
        at.assign(each, "id")
    for question in at.awaiting(PositionState.AWAITING_COMMITTED):
        at.committed(question.ticket, 0)
    for asked in at.fetchable():
        at.fetched(asked, [chunk(0, 4)], 4)
    assert [batch.topic_partition for _ in range(4) for batch in at.take(1)] == [P0, P1, P0, P1]
    first, second = at.take(3)
    assert (first.topic_partition, list(first.offsets)) == (P0, [2, 3])
    assert (second.topic_partition, list(second.offsets)) == (P1, [2])


# -- bounds --------------------------------------------------------------------------------------


def test_a_partition_with_enough_ahead_is_not_fetched() -> None:
    at = reading()
    assert at.partition_max_bytes == 100
    fetch(at, chunk(0, 1, size=99))
    fetch(at, chunk(1, 1, size=1))
    assert at.fetchable() == []
    assert take(at, 1) == [0]
    assert ask(at).offset == 2


def test_many_partitions_share_the_bound() -> None:
    at = positions()
    assert at.partition_max_bytes == 100
    for number in range(50):
        at.assign(TopicPartition("orders", number), "id")
    assert at.partition_max_bytes == 10
    for number in range(50, 5_000):
        at.assign(TopicPartition("orders", number), "id")
    assert at.partition_max_bytes == 1


def test_what_grows_when_it_is_opened_is_opened_up_to_the_bound() -> None:
    at = reading()
    fetch(at, *[chunk(base, 2, opened_bytes=400) for base in (0, 2, 4, 6)])
    assert take(at) == [0, 1, 2, 3, 4, 5]
    assert at.position(P0) == 6
    assert take(at, 1) == [6]
    assert take(at) == [7]


# -- stale answers -------------------------------------------------------------------------------


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    at = reading()
    before = ask(at)
    at.seek(P0, 50)
    assert not at.is_current(before.ticket)
    at.fetched(before, [chunk(0, 2)], 2)
    at.failed(before.ticket, UnknownServerError("late"))
    assert take(at) == []
    assert at.position(P0) == 50
    assert ask(at).offset == 50, "a seek does not wait for the fetch that was under way"
    at.given_up([before.ticket])
    assert at.fetchable() == []


def test_a_seek_throws_away_what_was_fetched_ahead() -> None:
    at = reading()
    fetch(at, chunk(0, 3))
    take(at, 1)
    at.seek(P0, 0)
    assert take(at) == []
    fetch(at, chunk(0, 3))
    assert take(at) == [0, 1, 2]


def test_an_answer_from_before_a_rebalance_is_dropped() -> None:
    at = reading()
    before = ask(at)
    at.unassign(P0)
    assert P0 not in at
    at.fetched(before, [chunk(0, 2)], 2)
    at.assign(P0, "id")
    at.fetched(before, [chunk(0, 2)], 2)
    at.found(before.ticket, 3)
    at.committed(before.ticket, 3)
    at.identify(before.ticket, "other")
    at.asked([before.ticket])
    assert at.position(P0) is None
    assert len(at.awaiting(PositionState.AWAITING_COMMITTED)) == 1
    assert at.topic_ids() == {P0: "id"}


def test_seeking_to_an_end_forgets_the_position_until_it_is_found() -> None:
    at = reading()
    fetch(at, chunk(0, 3))
    at.seek_to(P0, OffsetReset.EARLIEST)
    assert at.position(P0) is None
    assert at.fetchable() == []
    (question,) = at.awaiting(PositionState.AWAITING_RESET)
    assert question.reset is OffsetReset.EARLIEST
    at.found(question.ticket, 0)
    assert ask(at).offset == 0


def test_seeking_to_the_committed_offset_asks_for_it_again() -> None:
    at = reading(offset=5)
    at.seek_to_committed(P0)
    assert at.position(P0) is None
    assert len(at.awaiting(PositionState.AWAITING_COMMITTED)) == 1


# -- faults --------------------------------------------------------------------------------------


def test_an_offset_out_of_range_is_put_right_after_what_was_read_before() -> None:
    at = reading(policy=OffsetReset.EARLIEST)
    fetch(at, chunk(0, 2))
    at.failed(ask(at).ticket, OffsetOutOfRangeError("offset 2 is not in 5 to 9"))
    at.check(P0)
    assert take(at) == [0, 1]
    assert at.awaiting(PositionState.AWAITING_RESET) == []
    assert take(at) == []
    (question,) = at.awaiting(PositionState.AWAITING_RESET)
    assert question.reset is OffsetReset.EARLIEST


def test_an_offset_out_of_range_is_raised_each_time_without_a_policy() -> None:
    at = reading(policy=OffsetReset.NONE)
    for _ in range(2):
        at.failed(ask(at).ticket, OffsetOutOfRangeError("offset 0 is not in 5 to 9"))
        with pytest.raises(OffsetOutOfRangeError):
            take(at)
        at.given_up([at.fetchable()[0].ticket] if at.fetchable() else [Ticket(P0, 1)])
    at.seek(P0, 5)
    assert ask(at).offset == 5


def test_a_corrupt_batch_is_raised_after_what_is_before_it_and_read_again() -> None:
    at = reading()
    fetch(at, chunk(0, 2), chunk(2, 2, corrupt=True), chunk(4, 2))
    assert take(at) == [0, 1]
    with pytest.raises(CorruptMessageError, match="bits have flipped"):
        take(at)
    assert at.position(P0) == 2
    fetch(at, chunk(2, 2), chunk(4, 2))
    assert take(at) == [2, 3, 4, 5]


def test_a_corrupt_batch_at_the_position_is_raised_at_once() -> None:
    at = reading()
    fetch(at, chunk(0, 2, corrupt=True))
    with pytest.raises(CorruptMessageError):
        take(at)


def test_a_fault_of_one_partition_does_not_hold_up_the_records_of_another() -> None:
    at = reading()
    at.failed(ask(at).ticket, UnknownServerError("broken"))
    at.assign(P1, "id")
    at.committed(at.awaiting(PositionState.AWAITING_COMMITTED)[0].ticket, 0)
    fetch(at, chunk(0, 1))
    assert take(at) == [0]
    with pytest.raises(UnknownServerError):
        take(at)


# -- everything ----------------------------------------------------------------------------------


@dataclass
class Reader:
    """Reads one log of records and gaps, as a consumer would, with answers that come late."""

    log: list[int]
    """Offsets that hold records."""
    end: int
    at: Positions[Batch] = field(default_factory=reading)
    under_way: list[FetchPosition] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    expected_from: int = 0

    def ask(self) -> None:
        for asked in self.at.fetchable():
            self.at.asked([asked.ticket])
            self.under_way.append(asked)

    def answer(self, index: int, length: int) -> None:
        if not self.under_way:
            return
        asked = self.under_way.pop(index % len(self.under_way))
        found = [offset for offset in self.log if offset >= asked.offset][:length]
        end = found[-1] + 1 if found else self.end
        self.at.fetched(asked, [chunk(offset, 1, size=40) for offset in found], end)
        self.at.given_up([asked.ticket])

    def take(self, max_records: int) -> None:
        self.read += take(self.at, max_records)

    def seek(self, offset: int) -> None:
        self.at.seek(P0, offset)
        self.read = []
        self.expected_from = offset


@given(
    log=st.sets(st.integers(0, 30)),
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "answer", "take", "seek"]), st.integers(0, 31)),
        max_size=60,
    ),
)
def test_every_record_is_read_once_and_in_order_from_the_last_seek_on(
    log: set[int], steps: list[tuple[str, int]]
) -> None:
    reader = Reader(log=sorted(log), end=31)
    for what, number in steps:
        match what:
            case "ask":
                reader.ask()
            case "answer":
                reader.answer(number, 1 + number % 3)
            case "take":
                reader.take(1 + number % 3)
            case _:
                reader.seek(number)
        position = reader.at.position(P0)
        assert position is not None
        expected = [o for o in reader.log if reader.expected_from <= o < position]
        assert reader.read == expected
    for _ in range(40):
        reader.ask()
        reader.answer(0, 2)
        reader.take(100)
    assert reader.read == [o for o in reader.log if o >= reader.expected_from]
    assert reader.at.position(P0) == 31
