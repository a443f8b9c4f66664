"""Replay: at every prefix of a journal, and over a snapshot, the same state comes out."""

import contextlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from transactions_harness import A0, A1, B0, GROUP, TransactionsHarness, after

from semel_common.errors import SemelError
from semel_coordinator.transactions.machine import (
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
    TransactionsRecord,
)

LIMITS = TransactionLimits(
    transactional_ids_max=3,
    transactions_max=6,
    incomplete_transactions_max=3,
    participants_max=3,
    all_participants_max=12,
    timeouts_per_tick_max=2,
)
IDS = ("app", "other", "third", "fourth")

Step = Callable[[TransactionsHarness], object]


def state_of(machine: TransactionsMachine) -> list[TransactionsRecord]:
    """All of a machine's state, in its order."""
    return [record for _, record in machine.snapshot()]


def key_of(harness: TransactionsHarness, transactional_id: str, shift: int) -> TransactionKey:
    """The current transaction of an id, or one some epochs away."""
    (described,) = harness.machine.describe_transactions([transactional_id]).response
    return TransactionKey(described.producer_id, max(0, described.producer_epoch + shift))


ids = st.sampled_from(IDS)
shifts = st.sampled_from([0, 0, 0, 0, -1, -2, 1])
some_participants = st.lists(st.sampled_from([A0, A1, B0, GROUP]), max_size=4)

steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda name, instance, number: lambda h: h.init(name, instance, number),
        *(ids, st.sampled_from("abc"), st.integers(1, 3)),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.add(key_of(h, name, shift), *those, transactional_id=name)
        ),
        *(ids, shifts, some_participants),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.commit(key_of(h, name, shift), those, transactional_id=name)
        ),
        *(ids, shifts, st.none() | some_participants),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.abort(key_of(h, name, shift), those, transactional_id=name)
        ),
        *(ids, shifts, st.none() | some_participants),
    ),
    st.builds(
        lambda name, shift, who: lambda h: h.inquire((key_of(h, name, shift), who)),
        *(ids, shifts, st.sampled_from([A0, GROUP])),
    ),
    st.builds(lambda name, shift: lambda h: h.complete(key_of(h, name, shift)), ids, shifts),
    st.builds(
        lambda count: (
            lambda h: h.complete(*(each.key for each in h.machine.pending_markers()[:count]))
        ),
        st.integers(1, 3),
    ),
    st.builds(lambda ms: lambda h: h.tick(after_ms=ms), st.sampled_from([0, 30_000, 60_000])),
    st.just(lambda h: h.run(h.machine.give_producer_id())),
    st.just(lambda h: h.run(h.machine.claim())),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=40))
def test_every_prefix_of_the_journal_gives_the_state_that_was_live(taken: list[Step]) -> None:
    """C-100, C-110."""
    harness = TransactionsHarness(limits=LIMITS)
    live = [(len(harness.journal), state_of(harness.machine))]
    for step in taken:
        with contextlib.suppress(SemelError):
            step(harness)
        live.append((len(harness.journal), state_of(harness.machine)))
    for length, state in live:
        assert state_of(harness.replayed(harness.journal[:length])) == state


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=40), st.lists(steps, max_size=15))
def test_a_snapshot_and_what_follows_gives_the_state_that_was_live(
    before: list[Step], afterwards: list[Step]
) -> None:
    harness = TransactionsHarness(limits=LIMITS)
    run_all(harness, before)
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    assert state_of(restored) == state_of(harness.machine)
    length = len(harness.journal)
    run_all(harness, afterwards)
    for offset, data in enumerate(harness.journal[length:], length):
        restored.replay(offset, harness.serde.decode(data))
    assert state_of(restored) == state_of(harness.machine)
    assert restored.pending_markers() == harness.machine.pending_markers()


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=60))
def test_indexes_say_what_the_transactions_say(taken: list[Step]) -> None:
    """C-110: legal states only, and nobody waits for what is complete."""
    harness = TransactionsHarness(limits=LIMITS)
    run_all(harness, taken)
    state = harness.machine._state
    for producer_id, producer in state.producers.items():
        incomplete = [each.producer_epoch for each in state.incomplete_of(producer_id)]
        assert incomplete == sorted(incomplete)
        assert incomplete == [
            key.producer_epoch for key in state.decided if key.producer_id == producer_id
        ]
        assert all(epoch < producer.producer_epoch for epoch in incomplete)
        assert state.incomplete_count(producer_id) == len(incomplete)
        ongoing = state.ongoing.get(producer_id)
        assert ongoing is None or ongoing.producer_epoch == producer.producer_epoch
    assert state.participant_count == (
        sum(len(each.participants) for each in state.ongoing.values())
        + sum(len(each.participants) for each in state.decided.values())
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=40))
def test_handlers_change_nothing_themselves(taken: list[Step]) -> None:
    harness = TransactionsHarness(limits=LIMITS)
    run_all(harness, taken)
    before = state_of(harness.machine)
    machine = harness.machine
    for name in IDS[:3]:
        try:
            key = key_of(harness, name, 0)
            machine.add_partitions_to_txn(name, key, (A0, B0), now_ms=harness.now_ms)
            machine.end_txn(name, key, commit=True, participants=None, now_ms=harness.now_ms)
        except SemelError:
            pass
    machine.tick(harness.now_ms + 10**9)
    machine.complete_txn([each.key for each in machine.pending_markers()])
    assert state_of(machine) == before


def run_all(harness: TransactionsHarness, taken: list[Step]) -> None:
    """Take steps, whatever is answered."""
    for step in taken:
        with contextlib.suppress(SemelError):
            step(harness)


def test_pending_markers_come_in_the_order_of_their_decisions_after_a_restart() -> None:
    """C-101, C-117: from the journal and from a snapshot."""
    harness = TransactionsHarness()
    keys = {name: harness.init(name) for name in ("z", "a", "m")}
    for name in ("m", "z", "a"):
        harness.commit(keys[name], [A0], transactional_id=name)
    harness.abort(after(keys["m"]), [B0], transactional_id="m")
    expected = [keys["m"], keys["z"], keys["a"], after(keys["m"])]
    harness.restart()
    assert [each.key for each in harness.machine.pending_markers()] == expected
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, record)
    assert [each.key for each in restored.pending_markers()] == expected


def test_a_snapshot_does_not_change_when_the_machine_goes_on() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    taken = list(harness.machine.snapshot())
    copied = [harness.serde.encode(record) for _, record in taken]
    harness.add(key, A1)
    harness.commit(key)
    assert [harness.serde.encode(record) for _, record in taken] == copied
