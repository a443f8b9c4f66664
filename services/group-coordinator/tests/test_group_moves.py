"""A group moves from one group coordinator to another: machine to machine."""

from collections.abc import Callable

import pytest
from group_harness import (
    ABORT,
    COMMIT,
    GROUP,
    PRODUCER_ID,
    GroupHarness,
    codes,
    rebuilt,
    state_of,
)
from groups_on_the_move import MOVE, MOVED, MOVING, PARTITION, Pair, committed, known_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_group_replay import COMMANDS, Command

from semel_common.errors import (
    CorruptMessageError,
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    NotCoordinatorError,
    SemelError,
)
from semel_common.ids import partition_for_id
from semel_group.machine.records import GroupDeleted
from semel_group.machine.values import Committer
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import PartitionMove
from semel_runtime.participant.inquiry import InquiryOutcome
from semel_runtime.testing.plain import plain

GIVEN_UP = PartitionLeader(0, 1)
OTHER = next(f"g{n}" for n in range(999) if partition_for_id(f"g{n}", 50) != PARTITION)


@pytest.fixture
def pair() -> Pair:
    """A group with members, positions, and an open transaction."""
    pair = Pair()
    old = pair.old
    old.join("a", instance_id="s")
    old.join("b")
    old.commit({0: 5}, old.member("a"))
    old.txn_commit({0: 7}, old.member("a"), epoch=3)
    old.txn_commit({2: 7}, old.member("a"), epoch=0, producer_id=1)
    old.marker(COMMIT, epoch=0, producer_id=1)
    return pair


# -- all that belongs to a group comes along -------------------------------------------------------


def outcome(group: GroupHarness, act: Command) -> object:
    """Return what was answered, for comparing."""
    try:
        return plain(act(group))
    except SemelError as error:
        return repr(error)


def answers(group: GroupHarness) -> list[object]:
    """Return what everybody may ask."""
    questions: list[Command] = [
        lambda it: it.fetch(),
        lambda it: it.fetch(0, 1, 2, 3, stable=True),
        lambda it: it.describe(),
        lambda it: it.list(),
        lambda it: it.to_inquire(),
        lambda it: it.run(
            it.machine.transactions.open_transactions(open_since_ms=it.now_ms, limit=9)
        ),
        lambda it: it.run(it.machine.producers.participants()),
        lambda it: list(it.machine.groups.standing()),
    ]
    return [outcome(group, question) for question in questions]


@settings(max_examples=150)
@given(
    st.lists(COMMANDS, max_size=25),
    st.lists(COMMANDS, max_size=10),
    st.integers(1, 4),
)
def test_a_group_that_has_moved_is_as_if_it_had_not(
    before: list[Command], after: list[Command], pieces: int
) -> None:
    alone, pair = GroupHarness(), Pair()
    for act in before:
        assert outcome(alone, act) == outcome(pair.old, act)
    pair.new.topics(pair.old._named)
    pair.move(pieces=pieces)
    known = alone.machine.offsets.group(GROUP).producers.values()
    idle_from_now = [replace(each, last_ended_ms=alone.now_ms) for _, each in known]
    alone.run(Result(None, idle_from_now))
    assert known_of(pair.new.machine) == known_of(alone.machine)
    assert answers(pair.new) == answers(alone)
    for act in after:
        assert outcome(pair.new, act) == outcome(alone, act)
        assert answers(pair.new) == answers(alone)
    assert known_of(pair.new.machine) == known_of(alone.machine)
    for each in (pair.old, pair.new):
        live = state_of(each.machine)
        number = each.instance_id
        assert state_of(rebuilt(enumerate(each.journal), each.limits, number)) == live
        assert state_of(rebuilt(each.machine.snapshot(), each.limits, number)) == live


def test_a_fence_and_a_repeat_are_known_after_the_move(pair: Pair) -> None:
    pair.move()
    with pytest.raises(InvalidProducerEpochError):
        pair.new.txn_commit({0: 9}, pair.new.member("a"), epoch=0, sequence=1, producer_id=1)
    written = len(pair.new.journal)
    pair.new.txn_commit({0: 7}, pair.new.member("a"), epoch=3)
    assert pair.new.written(written) == []
    pair.new.marker(COMMIT, epoch=3)
    assert pair.new.committed(0) == 7


def test_what_was_committed_later_stays_later(pair: Pair) -> None:
    pair.old.commit({0: 8}, pair.old.member("a"))
    pair.move()
    pair.new.marker(COMMIT, epoch=3)
    assert pair.new.committed(0) == 8


def test_a_deposed_coordinator_is_refused_after_the_move_too(pair: Pair) -> None:
    pair.old.marker(ABORT, producer_id=PRODUCER_ID + 1, coordinator_epoch=5, groups=[GROUP])
    pair.move()
    assert codes(pair.new.marker(COMMIT, epoch=3, coordinator_epoch=4)) == [
        "TRANSACTION_COORDINATOR_FENCED"
    ]


def test_the_newest_coordinator_epoch_of_the_new_leader_does_not_go_back(pair: Pair) -> None:
    pair.new.marker(ABORT, producer_id=PRODUCER_ID, coordinator_epoch=9, groups=[OTHER])
    pair.old.marker(ABORT, producer_id=PRODUCER_ID + 1, coordinator_epoch=5, groups=[GROUP])
    pair.move()
    assert pair.new.machine.offsets.coordinator_epochs.newest(7) == 9


def test_the_member_epochs_of_the_new_leader_do_not_go_back(pair: Pair) -> None:
    image = pair.new.machine.cluster.image
    assert image is not None
    pair.new.run(pair.new.machine.raise_epochs(image, 1 << 50, now_ms=pair.new.now_ms))
    pair.old.run(pair.old.machine.raise_epochs(image, 1 << 40, now_ms=pair.old.now_ms))
    pair.move()
    (given,) = pair.new.machine.membership.epochs_given()
    assert given.group_epoch == 1 << 50


def test_a_group_that_is_made_again_goes_on_above_its_epochs(pair: Pair) -> None:
    old = pair.old
    old.leave("a")
    old.leave("b")
    epoch = old.machine.membership.groups[GROUP].group.group_epoch
    assert old.delete() == [""]
    pair.move()
    assert pair.new.join("c").member_epoch > epoch


# -- the old leader --------------------------------------------------------------------------------

REFUSED: dict[str, Command] = {
    "join": lambda it: it.join("c"),
    "heartbeat": lambda it: it.heartbeat("a"),
    "leave": lambda it: it.leave("a"),
    "commit": lambda it: it.commit({0: 9}, it.member("a")),
    "txn_commit": lambda it: it.txn_commit({0: 9}, it.member("a"), epoch=3, sequence=1),
    "fetch": lambda it: it.fetch(0),
    "delete": lambda it: it.delete_offsets(0),
}


@pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED)
def test_what_was_handed_over_is_served_no_more(pair: Pair, act: Command) -> None:
    pair.led(MOVING)
    pair.old.heartbeat("a")
    pair.hand_over()
    with pytest.raises(NotCoordinatorError, match="handed over to group coordinator 1"):
        act(pair.old)


def test_nothing_changes_what_was_handed_over(pair: Pair) -> None:
    old = pair.old
    pair.led(MOVING)
    pair.hand_over()
    before = known_of(old.machine)
    assert codes(old.marker(COMMIT, epoch=3)) == ["NOT_COORDINATOR"]
    assert not old.answer(InquiryOutcome.COMMITTED, epoch=3)
    assert not old.expire("a")
    assert old.delete() == ["NOT_COORDINATOR"]
    old.topics({})
    assert old.forget_deleted_topics() == 0
    assert old.forget() == 0
    assert old.expire_offsets() == 0
    assert isinstance(old.describe(), NotCoordinatorError)
    assert (old.list(), old.to_inquire()) == ((), [])
    assert list(old.machine.groups.standing()) == []
    assert old.run(old.machine.producers.participants()) == []
    assert (
        old.run(old.machine.transactions.open_transactions(open_since_ms=old.now_ms, limit=9)) == []
    )
    assert known_of(old.machine)[1:4] == before[1:4]


def test_what_was_found_before_the_hand_over_is_not_forgotten_after_it() -> None:
    pair = Pair()
    old, machine = pair.old, pair.old.machine
    old.commit({0: 5})
    old.txn_commit({1: 5})
    old.marker(ABORT)
    old.now_ms += 30 * 86_400_000
    (participant,) = old.run(machine.producers.participants())
    known = old.run(machine.producers.producer_ids(participant))
    idle = old.run(machine.producers.idle_producers(participant, known, now_ms=old.now_ms))
    group_ids = machine.groups.group_ids()
    pair.led(MOVING)
    pair.hand_over()
    assert (len(idle), group_ids) == (1, [GROUP])
    assert old.run(machine.producers.forget_producers(idle, now_ms=old.now_ms)) == 0
    assert old.run(machine.deletion.expire_offsets(group_ids, 9, now_ms=old.now_ms)) == 0


def test_producers_are_idle_from_the_move_on_by_the_new_leaders_clock() -> None:
    pair = Pair()
    expiration_ms = pair.new.limits.producer_expiration_ms
    pair.old.txn_commit({1: 5})
    pair.old.marker(ABORT)
    pair.led(MOVING)
    pair.new.now_ms = pair.old.now_ms + expiration_ms
    pair.take_over(pair.hand_over())
    pair.new.led(MOVED)
    assert pair.new.forget(after_ms=expiration_ms - 1) == 0
    assert pair.new.forget(after_ms=1) == 1


def test_groups_of_other_partitions_go_on(pair: Pair) -> None:
    old = pair.old
    old.join("c", group_id=OTHER)
    old.commit({1: 4}, old.member("c", group_id=OTHER))
    pair.move()
    assert old.heartbeat("c", group_id=OTHER).member_epoch
    assert [each.group_id for each in old.list()] == [OTHER]
    assert [each.group_id for each in pair.new.list()] == [GROUP]
    assert old.expire("c", OTHER)


def test_the_old_leader_forgets_what_another_one_leads(pair: Pair) -> None:
    pair.move()
    nothing = known_of(GroupHarness().machine)
    assert known_of(pair.old.machine)[:5] == nothing[:5]
    with pytest.raises(NotCoordinatorError, match="group coordinator 1 is in charge"):
        pair.old.fetch(0)


def test_what_is_handed_over_does_not_change_until_the_move_is_given_up(pair: Pair) -> None:
    pair.led(MOVING)
    first = pair.hand_over()
    written = len(pair.old.journal)
    assert pair.hand_over() == first
    assert pair.old.written(written) == []
    live = pair.old.machine
    pair.old.machine = rebuilt(live.snapshot(), pair.old.limits)
    assert state_of(pair.old.machine) == state_of(live)
    assert pair.hand_over() == first
    with pytest.raises(NotCoordinatorError):
        pair.old.fetch(0)


def test_a_move_that_is_given_up_leaves_the_group_where_it_is(pair: Pair) -> None:
    before = known_of(pair.old.machine)
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    pair.led(GIVEN_UP)
    assert known_of(pair.old.machine) == before
    assert pair.old.heartbeat("a").member_epoch
    assert pair.old.marker(COMMIT, epoch=3) == ()
    assert pair.old.committed(0) == 7
    assert pair.new.machine.membership.groups == {}
    with pytest.raises(NotCoordinatorError, match="group coordinator 0 is in charge"):
        pair.new.fetch(0)


def test_a_move_that_is_given_up_and_begins_again_is_another_one(pair: Pair) -> None:
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    pair.led(GIVEN_UP)
    pair.old.commit({1: 9}, pair.old.member("a"))
    pair.led(replace(GIVEN_UP, moving_to=1))
    with pytest.raises(NotCoordinatorError, match="do not move from here"):
        pair.hand_over()
    again = replace(MOVE, leader_epoch=1)
    pair.take_over(pair.hand_over(again), move=again)
    pair.led(PartitionLeader(1, 2))
    assert (pair.new.committed(0), pair.new.committed(1)) == (5, 9)


@pytest.mark.parametrize(
    ("leader", "move"),
    [
        (PartitionLeader(0, 0), MOVE),
        (MOVING, replace(MOVE, leader_epoch=1)),
        (MOVING, replace(MOVE, moving_to=2)),
        (MOVING, replace(MOVE, partition=PARTITION + 1)),
        (MOVED, MOVE),
    ],
)
def test_only_what_moves_is_handed_over(
    pair: Pair, leader: PartitionLeader, move: PartitionMove
) -> None:
    pair.led(leader)
    with pytest.raises(NotCoordinatorError, match="do not move from here"):
        pair.hand_over(move)


# -- the new leader --------------------------------------------------------------------------------


def test_what_was_taken_over_is_served_when_the_metadata_say_so(pair: Pair) -> None:
    pair.led(MOVING)
    pair.take_over(pair.hand_over())
    new = pair.new
    with pytest.raises(NotCoordinatorError, match="group coordinator 0 is in charge"):
        new.fetch(0)
    assert (new.list(), new.to_inquire(), new.forget()) == ((), [], 0)
    assert not new.expire("a")
    new.led(MOVED)
    assert new.committed(0) == 5
    assert len(new.to_inquire()) == 1


def test_what_was_taken_over_in_part_is_taken_over_again(pair: Pair) -> None:
    pair.led(MOVING)
    known = pair.hand_over()
    new = pair.new.machine
    pair.new.now_ms = 0
    pair.new.run(new.moves.begin_take_over(MOVE))
    pair.new.run(new.moves.take_over(MOVE, known[:3], whole=False, now_ms=0))
    assert [each.whole for each in pair.new.run(new.moves.arrivals())] == [False]
    assert state_of(rebuilt(new.snapshot(), pair.new.limits, 1)) == state_of(new)
    pair.take_over(known, pieces=2)
    assert [each.whole for each in pair.new.run(new.moves.arrivals())] == [True]
    pair.new.led(MOVED)
    members, committed_, pending, producers, *rest = known_of(pair.old.machine)
    assert isinstance(producers, dict)
    idle_from_then = {name: replace(each, last_ended_ms=0) for name, each in producers.items()}
    assert known_of(new) == (members, committed_, pending, idle_from_then, *rest)


def test_what_an_older_piece_said_is_forgotten(pair: Pair) -> None:
    pair.led(MOVING)
    pair.new.run(pair.new.machine.moves.begin_take_over(MOVE))
    pair.new.run(
        pair.new.machine.moves.take_over(MOVE, [committed(3, GROUP)], whole=False, now_ms=0)
    )
    pair.take_over(pair.hand_over())
    pair.new.led(MOVED)
    assert pair.new.committed(3) == -1


def test_what_was_taken_over_wholly_is_not_taken_over_again(pair: Pair) -> None:
    pair.led(MOVING)
    known = pair.hand_over()
    pair.take_over(known)
    acts: list[Callable[[], object]] = [
        lambda: pair.new.machine.moves.begin_take_over(MOVE),
        lambda: pair.new.machine.moves.take_over(MOVE, known, whole=True, now_ms=0),
    ]
    for act in acts:
        with pytest.raises(FencedLeaderEpochError):
            act()


def test_what_does_not_move_here_any_more_is_not_taken_over(pair: Pair) -> None:
    pair.led(MOVING)
    known = pair.hand_over()
    pair.led(GIVEN_UP)
    with pytest.raises(FencedLeaderEpochError, match="do not move here"):
        pair.take_over(known)


def test_records_of_other_groups_and_of_other_kinds_are_refused(pair: Pair) -> None:
    pair.led(MOVING)
    for foreign in (committed(0, OTHER), GroupDeleted(group_id=GROUP)):
        with pytest.raises(CorruptMessageError, match="is not of a group of partition"):
            pair.take_over([foreign])


def test_a_group_may_move_back(pair: Pair) -> None:
    pair.move()
    pair.new.marker(COMMIT, epoch=3)
    back = Pair(old=pair.new, new=pair.old)
    move = PartitionMove(partition=PARTITION, leader_epoch=1, moving_to=0)
    back.led(PartitionLeader(1, 1, moving_to=0))
    back.take_over(back.hand_over(move), move=move)
    back.led(PartitionLeader(0, 2))
    assert pair.old.committed(0) == 7
    assert pair.old.fetch(0, by=Committer(group_id=GROUP)).offsets


# -- older copies of volumes -----------------------------------------------------------------------


def test_an_older_copy_of_the_old_leader_does_not_serve_what_moves_away(pair: Pair) -> None:
    pair.old._leader = MOVING
    image = pair.old.next_image()
    pair.old.run(pair.old.machine.raise_epochs(image, 1 << 50, now_ms=pair.old.now_ms))
    with pytest.raises(NotCoordinatorError, match="handed over"):
        pair.old.fetch(0)
    pair.old.led(GIVEN_UP)
    assert pair.old.committed(0) == 5


def test_an_older_copy_of_the_new_leader_serves_what_has_moved_to_it(pair: Pair) -> None:
    pair.move()
    image = pair.new.next_image()
    pair.new.run(pair.new.machine.raise_epochs(image, 1 << 50, now_ms=pair.new.now_ms))
    assert pair.new.committed(0) == 5


def test_an_older_copy_of_the_old_leader_forgets_what_has_moved_away(pair: Pair) -> None:
    pair.old.led(MOVED)
    assert pair.old.machine.membership.groups == {}
