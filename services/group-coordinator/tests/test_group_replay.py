"""The records make the same machine again, from any prefix and from any snapshot."""

from collections.abc import Callable
from contextlib import suppress

from group_harness import ABORT, COMMIT, GROUP, GroupHarness, orders, rebuilt, state_of
from hypothesis import given, settings
from hypothesis import strategies as st

from semel_common.errors import SemelError
from semel_group.machine.records import OffsetRemoved
from semel_group.machine.values import Committer
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import InquiryOutcome

Command = Callable[[GroupHarness], object]

MEMBERS = st.sampled_from("ab")
EPOCHS = st.integers(0, 3)
PRODUCERS = st.sampled_from([1, (7 << 48) | 5])
OFFSETS = st.dictionaries(st.integers(0, 4), st.integers(0, 9), min_size=1, max_size=3)
OWNED = st.none() | st.frozensets(st.integers(0, 3)).map(lambda numbers: orders(*numbers))


def command(name: str, **arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Command]:
    """Return calls of one of the harness's methods."""

    def call(values: dict[str, object]) -> Command:
        positional = values.pop("_", ())
        assert isinstance(positional, tuple)
        return lambda group: getattr(group, name)(*positional, **values)

    return st.fixed_dictionaries(dict(arguments)).map(call)


def nobody_or_member(group: GroupHarness, member_id: str) -> Committer | None:
    return group.member(member_id) if (GROUP, member_id) in group._epochs else None


def txn_commit(
    member_id: str, offsets: dict[int, int], epoch: int, sequence: int, producer_id: int
) -> Command:
    return lambda group: group.txn_commit(
        offsets,
        nobody_or_member(group, member_id),
        epoch=epoch,
        sequence=sequence,
        producer_id=producer_id,
    )


def remove(number: int) -> Command:
    removed = [OffsetRemoved(group_id=GROUP, partition=order) for order in orders(number)]
    return lambda group: group.run(Result(None, removed))


COMMANDS = st.one_of(
    command("join", _=st.tuples(MEMBERS)),
    command("heartbeat", _=st.tuples(MEMBERS), owned=OWNED),
    command("leave", _=st.tuples(MEMBERS)),
    command("expire", _=st.tuples(MEMBERS)),
    command("commit", _=st.tuples(OFFSETS)),
    st.builds(txn_commit, MEMBERS, OFFSETS, EPOCHS, st.integers(0, 1), PRODUCERS),
    command(
        "marker",
        _=st.tuples(st.sampled_from([COMMIT, ABORT])),
        epoch=EPOCHS,
        producer_id=PRODUCERS,
        coordinator_epoch=st.integers(1, 2),
    ),
    command(
        "answer",
        _=st.tuples(st.sampled_from(InquiryOutcome)),
        epoch=EPOCHS,
        producer_id=PRODUCERS,
        coordinator_epoch=st.integers(1, 2),
        current_epoch=EPOCHS,
    ),
    command("forget", after_ms=st.sampled_from([0, 86_400_000])),
    st.builds(remove, st.integers(0, 3)),
    command("topics", _=st.tuples(st.sampled_from([{"orders": 4}, {"orders": 5}, {}]))),
    command("delete"),
    command("forget_deleted_topics", _=st.tuples(st.just(2))),
)


def attempt(group: GroupHarness, act: Command) -> None:
    with suppress(SemelError):
        act(group)


@settings(max_examples=150)
@given(st.lists(COMMANDS, max_size=30))
def test_any_prefix_and_any_snapshot_replay_to_the_live_state(acts: list[Command]) -> None:
    group = GroupHarness()
    for act in acts:
        attempt(group, act)
        live = state_of(group.machine)
        assert state_of(rebuilt(enumerate(group.journal), group.limits)) == live
        assert state_of(rebuilt(group.machine.snapshot(), group.limits)) == live


@settings(max_examples=100)
@given(st.lists(COMMANDS, max_size=20), st.lists(COMMANDS, max_size=10))
def test_a_snapshot_does_not_change_when_the_machine_goes_on(
    before: list[Command], after: list[Command]
) -> None:
    group = GroupHarness()
    for act in before:
        attempt(group, act)
    expected, taken = list(group.machine.snapshot()), group.machine.snapshot()
    for act in after:
        attempt(group, act)
    assert list(taken) == expected


@settings(max_examples=100)
@given(st.lists(COMMANDS, max_size=20), st.lists(COMMANDS, max_size=10))
def test_a_machine_from_a_snapshot_decides_as_the_old_one_would(
    before: list[Command], after: list[Command]
) -> None:
    old = GroupHarness()
    for act in before:
        attempt(old, act)
    new = GroupHarness()
    new.machine = rebuilt(old.machine.snapshot(), old.limits)
    new.journal = list(old.journal)
    new._epochs = dict(old._epochs)
    new.now_ms = old.now_ms
    for act in after:
        attempt(old, act)
        attempt(new, act)
    assert new.journal == old.journal
    assert state_of(new.machine) == state_of(old.machine)
