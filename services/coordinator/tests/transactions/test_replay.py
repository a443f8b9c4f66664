"""Replay: at every prefix of a journal, and over a snapshot, the same state comes out."""

import contextlib
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from transactions_harness import A0, A1, B0, GROUP, TransactionsHarness, after, state_of
from transactions_steps import IDS, LIMITS, Step, key_of, run_all, steps, told

from semel_common.errors import SemelError
from semel_common.ids import Participant


@settings(max_examples=100)
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


@settings(max_examples=100)
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
    assert told(restored) == told(harness.machine)


@settings(max_examples=100)
@given(st.lists(steps, max_size=60))
def test_indexes_say_what_the_transactions_say(taken: list[Step]) -> None:
    """C-110: legal states only, and no call waits for a complete transaction."""
    harness = TransactionsHarness(limits=LIMITS)
    run_all(harness, taken)
    state = harness.machine._state
    for producer_id, producer in state.producers.items():
        incomplete = [each.producer_epoch for each in state.incomplete_of(producer_id)]
        assert incomplete == sorted(incomplete)
        assert incomplete == sorted(
            key.producer_epoch for key in state.decided if key.producer_id == producer_id
        )
        assert state.is_complete_below(producer_id, min(incomplete, default=0))
        assert not incomplete or not state.is_complete_below(producer_id, incomplete[0] + 1)
        assert list(producer.prepared) == sorted(
            key.producer_epoch for key in state.prepared if key.producer_id == producer_id
        )
        assert all(producer.outcome_of(epoch) is None for epoch in producer.prepared)
        assert all(epoch < producer.producer_epoch for epoch in incomplete)
        assert state.incomplete_count(producer_id) == len(incomplete)
        ongoing = state.ongoing.get(producer_id)
        assert ongoing is None or ongoing.producer_epoch == producer.producer_epoch
    assert state.participant_count == (
        sum(len(each.participants) for each in state.ongoing.values())
        + sum(len(each.participants) for each in state.prepared.values())
        + sum(len(each.participants) for each in state.decided.values())
    )


@settings(max_examples=100)
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
            machine.prepare_txn(name, key, participants=None, now_ms=harness.now_ms)
            for prepared in list(harness.machine._state.prepared_of(key.producer_id)):
                machine.complete_prepared_txn(
                    name, prepared.key, commit=True, producer_epoch=None, now_ms=harness.now_ms
                )
        except SemelError:
            pass
    machine.tick(harness.now_ms + 10**9)
    machine.markers.complete_txn(
        [marker.key for marker in machine.markers.pending()], now_ms=harness.now_ms
    )
    assert state_of(machine) == before


def test_pending_markers_come_in_the_order_of_their_decisions_after_a_restart() -> None:
    """C-101, C-117: from the journal and from a snapshot."""
    harness = TransactionsHarness()
    keys = {name: harness.init(name) for name in ("z", "a", "m")}
    for name in ("m", "z", "a"):
        harness.commit(keys[name], [A0], transactional_id=name)
    harness.abort(after(keys["m"]), [B0], transactional_id="m")
    expected = [keys["m"], keys["z"], keys["a"], after(keys["m"])]
    harness.restart()
    assert [marker.key for marker in harness.machine.markers.pending()] == expected
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, record)
    assert [marker.key for marker in restored.markers.pending()] == expected


def test_a_snapshot_does_not_change_when_the_machine_goes_on() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    snapshot, encode = harness.machine.snapshot, harness.serde.encode
    copied = [(offset, encode(record)) for offset, record in snapshot()]
    taken = snapshot()
    harness.add(key, A1)
    harness.commit(key)
    assert [(offset, encode(record)) for offset, record in taken] == copied


def test_participants_stay_in_the_order_in_which_they_came() -> None:
    """In records, in their replay, and in snapshots: never that of a set."""
    harness = TransactionsHarness()
    committed, aborted, ongoing = (harness.init(name) for name in ("one", "two", "three"))
    everybody: tuple[Participant, ...] = (A0, A1, B0, GROUP)
    orders = list(permutations(everybody))
    for order in orders:
        harness.commit(committed, order, transactional_id="one")
        harness.add(aborted, *order[:2], transactional_id="two")
        harness.abort(aborted, order, transactional_id="two")
        committed, aborted = after(committed), after(aborted)
    for each in (B0, GROUP, A1, A0):
        harness.add(ongoing, each, transactional_id="three")
    expected = [list(order) for order in orders for _ in ("one", "two")]
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    for machine in (harness.machine, harness.replayed(harness.journal), restored):
        assert [participants for _, participants in told(machine)] == expected
        (described,) = machine.queries.describe_transactions(["three"]).response
        assert list(described.transactions[-1].participants) == [B0, GROUP, A1, A0]


def test_a_registered_participant_that_is_not_named_comes_in_the_order_of_registration() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, B0, GROUP, A1, A0)
    harness.commit(key, [A1])
    (decided,) = harness.machine.markers.pending()
    assert list(decided.aborting) == [B0, GROUP, A0]
    assert list(decided.participants) == [A1, B0, GROUP, A0]
