"""A transaction-log partition moves from one coordinator to another: machine to machine."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joint_harness import JointHarness, name_of
from joint_steps import JointStep, joint_steps
from transactions_harness import A0, A1, B0, TransactionsHarness, after, image, state_of
from transactions_on_the_move import (
    GIVEN_UP,
    MOVED,
    MOVING,
    OTHER,
    PARTITION,
    Pair,
    busy_pair,
    harness,
    use_now,
)
from transactions_steps import IDS, LIMITS, key_of, steps, told

from semel_common.errors import (
    CorruptMessageError,
    FencedLeaderEpochError,
    InvalidProducerIdMappingError,
    NotCoordinatorError,
    SemelError,
)
from semel_coordinator.transactions.machine import (
    FenceInquiry,
    InquiryOutcome,
    ListFilter,
    ProducerIdsGiven,
    TransactionKey,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionName,
    TransactionState,
)
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.machine import Result
from semel_runtime.testing.plain import plain

# -- all that belongs to a partition comes along ---------------------------------------------------

all_steps: st.SearchStrategy[JointStep] = steps | joint_steps


def outcome(it: JointHarness, act: JointStep) -> object:
    """Return what was answered, for comparing."""
    try:
        return plain(act(it))
    except SemelError as error:
        return repr(error)


def answers(it: JointHarness) -> list[object]:
    """Return what everybody may ask."""
    machine, now_ms = it.machine, it.now_ms
    names = [*IDS, "joint"]
    questions: list[JointStep] = [
        lambda h: h.run(machine.queries.describe_transactions(names)),
        lambda h: h.run(machine.queries.list_transactions(names, ListFilter(), now_ms=now_ms)),
        lambda h: h.run(machine.queries.list_candidates(ListFilter())),
        lambda _: told(machine),
        lambda _: machine.queries.standing(now_ms=now_ms),
        lambda _: machine.markers.serving(),
    ]
    for name, shift in product(IDS, (0, -1, -2)):
        questions += [partial(_outcome_at, name=name, shift=shift)]
    return [outcome(it, question) for question in questions]


def _outcome_at(h: TransactionsHarness, *, name: str, shift: int) -> object:
    return outcome_of(h, key_of(h, name, shift))


def outcome_of(h: TransactionsHarness, key: TransactionKey) -> object:
    """GetTransactionOutcome."""
    name = TransactionName(
        transactional_id=None, producer_id=key.producer_id, producer_epoch=key.producer_epoch
    )
    return h.run(h.machine.get_transaction_outcome(name, now_ms=h.now_ms))


@settings(max_examples=150)
@given(
    st.lists(all_steps, max_size=30),
    st.lists(all_steps, max_size=12),
    st.integers(1, 4),
)
def test_transactions_that_have_moved_are_as_if_they_had_not(
    before: list[JointStep], afterwards: list[JointStep], pieces: int
) -> None:
    alone = harness(limits=LIMITS, count=1)
    pair = Pair(limits=LIMITS, partition=0, count=1)
    for act in before:
        assert outcome(alone, act) == outcome(pair.old, act)
    pair.move(pieces=pieces)
    alone.run(alone.machine.claim())  # Which raises the coordinator epoch, as the move does.
    use_now(alone)
    assert state_of(pair.new.machine) == state_of(alone.machine)
    assert answers(pair.new) == answers(alone)
    for act in afterwards:
        assert outcome(pair.new, act) == outcome(alone, act)
        assert answers(pair.new) == answers(alone)
    assert state_of(pair.new.machine) == state_of(alone.machine)
    new, state = pair.new, alone.machine._state
    assert new.machine._state.participant_count == state.participant_count
    assert new.machine._state.joints.writer_count == state.joints.writer_count
    assert state_of(pair.old.machine) == []
    for each in (pair.old, pair.new):
        live = state_of(each.machine)
        assert state_of(each.replayed(each.journal)) == live
        restored = each.new_machine()
        for offset, record in each.machine.snapshot():
            restored.replay(offset, each.serde.decode(each.serde.encode(record)))
        assert state_of(restored) == live


@settings(max_examples=60)
@given(st.lists(all_steps, max_size=25), st.lists(all_steps, max_size=15), st.integers(1, 3))
def test_nothing_changes_what_was_handed_over(
    before: list[JointStep], afterwards: list[JointStep], pieces: int
) -> None:
    pair = Pair(limits=LIMITS, partition=0, count=1)
    for act in before:
        outcome(pair.old, act)
    pair.led(MOVING)
    handed_over = pair.hand_over()
    pair.take_over(handed_over[: len(handed_over) // pieces])
    live = {each: state_of(each.machine) for each in (pair.old, pair.new)}
    for each, state in live.items():
        for act in afterwards:
            outcome(each, act)
            assert state_of(each.machine) == state
        assert told(each.machine) == []
    assert pair.hand_over() == handed_over


@pytest.fixture
def pair() -> Pair:
    """Transactions in each of their states."""
    return busy_pair()


def test_what_was_begun_before_a_move_is_ended_after_it(pair: Pair) -> None:
    key = key_of(pair.old, "app", 0)
    expected = [
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARED,
        TransactionState.ONGOING,
    ]
    assert pair.old.states() == expected
    pair.move(pieces=3)
    new = pair.new
    assert new.states() == expected
    new.complete(after(key, -2))
    new.complete_prepared(after(key, -1), commit=True)
    assert new.commit(key, [B0]) == after(key)
    assert [marker.key for marker in new.machine.markers.pending()] == [after(key, -1), key]
    new.complete(after(key, -1), key)
    assert new.states() == [TransactionState.EMPTY]


def test_the_new_leader_alone_times_out_open_transactions(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over = pair.hand_over()
    assert pair.old.tick(after_ms=10**6) == ()
    pair.take_over(handed_over)
    pair.new.now_ms = pair.old.now_ms
    assert pair.new.tick() == ()
    pair.led(MOVED)
    assert [each.transactional_id for each in pair.new.tick()] == ["app"]


def test_the_coordinator_epoch_is_above_that_of_the_old_leader(pair: Pair) -> None:
    for _ in range(5):
        pair.old.run(pair.old.machine.claim())
    pair.move()
    assert pair.new.machine.markers.serving()[PARTITION] == 7
    assert PARTITION not in pair.old.machine.markers.serving()


def test_producer_ids_are_not_given_twice(pair: Pair) -> None:
    key = key_of(pair.old, "app", 0)
    pair.move()
    assert pair.new.init("app", "two", 1).producer_id == key.producer_id
    assert pair.new.run(pair.new.machine.give_producer_id()).producer_id == key.producer_id + 1
    assert pair.old.run(pair.old.machine.give_producer_id()).producer_id != key.producer_id + 1


# -- the old leader --------------------------------------------------------------------------------

REFUSED: dict[str, Callable[[JointHarness, TransactionKey], object]] = {
    "init": lambda it, _: it.init("app", "two"),
    "add": lambda it, key: it.add(key, A1),
    "commit": lambda it, key: it.commit(key),
    "abort": lambda it, key: it.abort(key),
    "prepare": lambda it, key: it.prepare(key),
    "complete prepared": lambda it, key: it.complete_prepared(after(key, -1)),
    "prepared before": lambda it, key: it.run(it.machine.prepared_before(key)),
    "outcome": lambda it, key: outcome_of(it, after(key, -2)),
    "abort of an operator": lambda it, key: it.run(
        it.machine.operators.abort_transaction("app", key, dry_run=False, now_ms=it.now_ms)
    ),
    "fence": lambda it, _: it.run(
        it.machine.operators.fence_producer("app", "i", dry_run=False, now_ms=it.now_ms)
    ),
    "is complete": lambda it, key: it.machine.markers.is_complete(key),
    "is complete below": lambda it, key: it.machine.markers.is_complete_below(*key),
}


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED)
def test_what_was_handed_over_is_served_no_more(
    pair: Pair, act: Callable[[JointHarness, TransactionKey], object], moved: bool
) -> None:
    key = key_of(pair.old, "app", 0)
    if moved:
        pair.move()
    else:
        pair.led(MOVING)
        pair.hand_over()
    with pytest.raises(NotCoordinatorError) as refused:
        act(pair.old, key)
    assert refused.value.details["coordinator"] in (1, "1")


def test_inquiries_about_handed_over_transactions_are_put_off(pair: Pair) -> None:
    old = pair.old
    key = key_of(old, "app", 0)
    pair.led(MOVING)
    pair.hand_over()
    told_later = old.inquire(
        (key, B0), (after(key, -1), A1), (after(key, -2), A0), (after(key), A0)
    )
    assert [each.outcome for each in told_later] == [InquiryOutcome.LATER] * 4
    assert all(isinstance(each.error, NotCoordinatorError) for each in told_later)
    assert list(old.records) == []
    fence = FenceInquiry(producer_id=key.producer_id, fence=9, participant=A0)
    (answer,) = old.run(old.machine.expiry.inquire_fences([fence]))
    assert not answer.is_needless
    assert isinstance(answer.error, NotCoordinatorError)


def test_joint_transactions_are_refused_too() -> None:
    pair = Pair(partition=0, count=1)
    old = pair.old
    key = old.join("w")
    old.add_to(key, A0)
    old.commit_joint({key: [A0]})
    open_one = old.join("w", name_of(2))
    pair.led(MOVING)
    pair.hand_over()
    acts: list[JointStep] = [
        lambda it: it.join("x", name_of(2)),
        lambda it: it.keep_alive(name_of(2)),
        lambda it: it.abort_joint(None, name_of(2)),
        lambda it: it.add_to(open_one, A1),
        lambda it: it.machine.joint.incomplete_writer("joint"),
        lambda it: it.run(
            it.machine.operators.abort_transaction("joint", open_one, dry_run=False, now_ms=0)
        ),
    ]
    for act in acts:
        with pytest.raises(NotCoordinatorError):
            act(old)
    assert old.tick_joint(after_ms=10**6) == ()
    assert (old.machine.queries.standing(now_ms=0).open_joint_transactions) == 0


def test_transactions_of_other_partitions_go_on(pair: Pair) -> None:
    old = pair.old
    key = old.init(OTHER)
    old.add(key, A0, transactional_id=OTHER)
    epochs = dict(old.machine.markers.serving())
    pair.move()
    assert old.commit(key, [A0], transactional_id=OTHER) == after(key)
    assert [marker.key for marker in old.machine.markers.pending()] == [key]
    del epochs[PARTITION]
    assert old.machine.markers.serving() == epochs
    assert old.expire(after_ms=10**10) == ()
    old.complete(key)
    assert old.expire() == (OTHER,)
    with pytest.raises(NotCoordinatorError):
        pair.new.init(OTHER)


def test_what_is_handed_over_is_not_claimed_by_a_start(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over = pair.hand_over()
    pair.old.restart()
    pair.old.run(pair.old.machine.claim())
    assert PARTITION not in pair.old.machine.markers.serving()
    assert pair.hand_over() == handed_over


def test_the_old_leader_serves_again_when_the_move_is_given_up(pair: Pair) -> None:
    key = key_of(pair.old, "app", 0)
    before = pair.old.machine.markers.serving()[PARTITION]
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    pair.led(GIVEN_UP)
    assert pair.old.machine.markers.serving()[PARTITION] == before + 1
    assert pair.old.commit(key, [B0]) == after(key)
    assert state_of(pair.new.machine) == []
    with pytest.raises(NotCoordinatorError):
        pair.new.commit(key, [B0])


def test_no_leader_hands_over_a_partition_that_does_not_move(pair: Pair) -> None:
    for leader in (PartitionLeader(0, 0), PartitionLeader(0, 0, moving_to=2), MOVED):
        pair.led(leader)
        with pytest.raises(NotCoordinatorError, match="does not move from here"):
            pair.hand_over()


def test_a_second_move_is_handed_over_under_its_own_epoch(pair: Pair) -> None:
    again = PartitionLeader(0, 1, moving_to=1)
    pair.led(MOVING)
    pair.hand_over()
    pair.led(again)
    pair.take_over(pair.hand_over(again), leader=again)
    pair.led(PartitionLeader(1, 2))
    assert pair.new.states()[-1] == TransactionState.ONGOING
    assert state_of(pair.old.machine)


# -- the new leader --------------------------------------------------------------------------------


def test_a_partition_that_is_not_served_yet_is_not_told(pair: Pair) -> None:
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    (arrival,) = pair.new.run(pair.new.machine.moves.arrivals())
    assert (arrival.leader_id, arrival.whole) == (0, True)
    pair.tell(pair.new, MOVING)
    pair.new.cluster.replay(0, image())
    assert pair.new.machine.markers.serving() == {}


def test_what_is_whole_is_not_taken_over_again(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over = pair.hand_over()
    pair.take_over(handed_over)
    with pytest.raises(FencedLeaderEpochError):
        pair.take_over(handed_over)


def test_a_take_over_may_begin_again(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over = pair.hand_over()
    move = pair.move_of()
    pair.new.run(pair.new.machine.moves.begin_take_over(move))
    pair.new.run(pair.new.machine.moves.take_over(move, handed_over[:3], whole=False, now_ms=0))
    pair.take_over(handed_over)
    pair.led(MOVED)
    assert len(pair.new.states()) == 3


def test_what_belongs_elsewhere_is_refused(pair: Pair) -> None:
    pair.led(MOVING)
    pair.hand_over()
    foreign = (
        ProducerIdsGiven(partition=PARTITION + 1, count=7),
        TransactionLogServed(partition=PARTITION, coordinator_epoch=3),
    )
    for record in foreign:
        with pytest.raises(CorruptMessageError):
            pair.take_over([record])


def test_a_partition_moves_there_and_back(pair: Pair) -> None:
    key = key_of(pair.old, "app", 0)
    pair.move()
    pair.new.commit(key, [B0])
    back = Pair()
    back.old, back.new = pair.new, pair.old
    home = PartitionLeader(1, 1, moving_to=0)
    back.led(home)
    back.take_over(back.hand_over(home), leader=home)
    back.led(PartitionLeader(0, 2))
    assert back.new.machine.markers.serving()[PARTITION] == 3
    assert len(back.new.machine.markers.pending()) == 2
    assert back.new.commit(after(key), [A0]) == after(key, 2)


# -- an older copy of a volume ---------------------------------------------------------------------


def test_an_older_volume_forgets_what_has_moved_since(pair: Pair) -> None:
    pair.tell(pair.old, MOVED)
    assert pair.old.records == (TransactionLogForgotten(partition=PARTITION, partition_count=10),)
    assert not pair.old.machine._state.is_known("app")


def test_the_recovery_of_an_older_volume_keeps_to_its_own_partitions(pair: Pair) -> None:
    old, key = pair.old, key_of(pair.old, "app", 0)
    pair.tell(old, MOVING)
    image_now = old.cluster.image
    assert image_now is not None
    floor = 1_000
    records = old.machine.raised(
        range(10), image=image_now, floor=floor, producer_ids_floor=1 << 46, now_ms=old.now_ms
    )
    old.run(Result(None, records))
    handed_over = TransactionLogHandedOver(partition=PARTITION, leader_epoch=0)
    assert handed_over in records
    with pytest.raises(NotCoordinatorError):
        old.commit(key)
    pair.tell(pair.new, MOVING)
    pair.take_over(pair.hand_over())
    pair.led(MOVED)
    assert pair.new.machine.markers.serving()[PARTITION] == floor + 1
    assert pair.new.run(pair.new.machine.give_producer_id())[0] > key.producer_id
    with pytest.raises(InvalidProducerIdMappingError):
        pair.new.commit(TransactionKey(key.producer_id + 1, 0))


def test_a_recovery_raises_nothing_of_what_moves_here(pair: Pair) -> None:
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    before = state_of(pair.new.machine)
    image_now = pair.new.cluster.image
    assert image_now is not None
    records = pair.new.machine.raised(
        (), image=image_now, floor=1_000, producer_ids_floor=1 << 46, now_ms=pair.new.now_ms
    )
    pair.new.run(Result(None, records))
    assert state_of(pair.new.machine) == before
