"""The history of transactions that have ended: what it keeps, for how long, and how it is asked."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1, B0, GROUP, NOW_MS, TransactionsHarness, after, state_of
from transactions_on_the_move import MOVED, MOVING, Pair
from transactions_steps import Step, run_all, steps

from semel_common.ids import Participant, TopicPartition, transaction_log_partition_of
from semel_coordinator.transactions.machine import (
    AbortReason,
    Client,
    EndedTransaction,
    HistoryFilter,
    HistoryLimits,
    HistoryPosition,
    InitProducerId,
    Operator,
    Outcome,
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
)
from semel_coordinator.transactions.machine.history.ended_transaction import PARTICIPANTS_KEPT
from semel_coordinator.transactions.machine.history.history_queries import listed

ADA = Operator("ada", "it hangs", "User:ada", "10.0.0.1")


def entries(
    machine: TransactionsMachine,
    wanted: HistoryFilter = HistoryFilter(),  # noqa: B008 - it does not change
    *,
    behind: HistoryPosition | None = None,
    now_ms: int = NOW_MS,
) -> list[tuple[HistoryPosition, EndedTransaction]]:
    """Return what the filter wants, the last one first."""
    rings = machine.history.rings(wanted).response
    oldest_ms = machine.history.oldest_ms(wanted, now_ms=now_ms)
    return [
        (position, ended)
        for position, ended in listed(rings, wanted, behind=behind, oldest_ms=oldest_ms)
        if ended is not None
    ]


def ended_in(
    harness: TransactionsHarness,
    wanted: HistoryFilter = HistoryFilter(),  # noqa: B008 - it does not change
) -> list[EndedTransaction]:
    return [ended for _, ended in entries(harness.machine, wanted, now_ms=harness.now_ms)]


def end_many(harness: TransactionsHarness, count: int, *, commit: bool = True) -> TransactionKey:
    """End so many transactions of one id, a millisecond each; return the next one."""
    producer_id = harness.init().producer_id
    key = TransactionKey(producer_id, harness.machine.current_epoch(producer_id) or 0)
    for _ in range(count):
        harness.now_ms += 1
        if commit:
            harness.commit(key, [A0])
        else:
            harness.abort(key, [A0])
        harness.complete(key)
        key = after(key)
    return key


def limited(
    entries_max: int = 10_000, bytes_max: int = 1 << 20, age_max_ms: int = 86_400_000
) -> TransactionLimits:
    limits = HistoryLimits(entries_max=entries_max, bytes_max=bytes_max, age_max_ms=age_max_ms)
    return TransactionLimits(history=limits)


# -- what an entry says --------------------------------------------------------------------------


def test_a_committed_transaction_is_kept_with_its_times_and_participants() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0, GROUP, B0)
    harness.now_ms += 10
    harness.commit(key, [GROUP, A0])
    harness.now_ms += 20
    harness.run(
        harness.machine.markers.complete_txn(
            [key], earlier_ms={key: {A0: 7}}, now_ms=harness.now_ms
        )
    )
    ((position, ended),) = entries(harness.machine)
    assert (ended.transactional_id, ended.producer_id, ended.producer_epoch) == ("app", *key)
    assert (ended.outcome, ended.reason, ended.txn_version) == (Outcome.COMMITTED, None, None)
    assert (ended.start_ms, ended.decided_ms, ended.completed_ms) == (
        NOW_MS,
        NOW_MS + 10,
        NOW_MS + 30,
    )
    assert ended.prepared_ms == 0
    assert [
        (each.participant, each.commits, each.acknowledged_before_ms) for each in ended.participants
    ] == [
        (GROUP, True, 0),
        (A0, True, 7),
        (B0, False, 0),
    ]
    assert ended.participant_count == 3
    assert ended.traceparent == "of end"
    assert ended.client == Client("one")
    assert ended.operator is None
    assert position == (NOW_MS + 30, transaction_log_partition_of(key.producer_id), True, 0)


def test_a_prepared_transaction_is_kept_with_the_time_of_its_promise() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.prepare(key, [A0])
    harness.now_ms += 5
    harness.complete_prepared(key, after(key).producer_epoch)
    harness.complete(key)
    (ended,) = ended_in(harness)
    assert (ended.prepared_ms, ended.decided_ms) == (NOW_MS, NOW_MS + 5)


def test_a_prepared_transaction_without_participants_has_ended_with_its_decision() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.prepare(key, [])
    harness.complete_prepared(key, commit=False)
    (ended,) = ended_in(harness)
    assert (ended.outcome, ended.completed_ms) == (Outcome.ABORTED, NOW_MS)
    assert ended.participants == ()


def test_a_transaction_that_wrote_nothing_leaves_no_entry() -> None:
    harness = TransactionsHarness()
    key = harness.commit(harness.init())
    harness.abort(key)
    assert ended_in(harness) == []


def test_each_reason_of_an_abort_is_kept() -> None:
    harness = TransactionsHarness()
    client, timed_out, fenced, operator = (harness.init(name) for name in ("a", "b", "c", "d"))
    harness.add(timed_out, A0, transactional_id="b")
    harness.tick(after_ms=60_000)
    harness.abort(client, [A0], transactional_id="a")
    harness.add(fenced, A0, transactional_id="c")
    harness.init("c", "two")
    harness.add(operator, A0, transactional_id="d")
    harness.run(
        harness.machine.operators.abort_transaction(
            "d", operator, operator=ADA, dry_run=False, now_ms=harness.now_ms
        )
    )
    harness.complete(client, timed_out, fenced, operator)
    found = {ended.transactional_id: (ended.reason, ended.operator) for ended in ended_in(harness)}
    assert found == {
        "a": (AbortReason.CLIENT, None),
        "b": (AbortReason.TIMED_OUT, None),
        "c": (AbortReason.FENCED, None),
        "d": (AbortReason.OPERATOR, ADA),
    }


def test_a_fence_of_an_operator_is_kept_with_the_operator() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.run(
        harness.machine.operators.fence_producer(
            "app", "fence", operator=ADA, dry_run=False, now_ms=harness.now_ms
        )
    )
    harness.complete(key)
    (ended,) = ended_in(harness)
    assert (ended.reason, ended.operator, ended.client) == (AbortReason.FENCED, ADA, Client("one"))


def test_a_completion_from_outside_is_kept_with_its_caller() -> None:
    harness = TransactionsHarness()
    outside, own = harness.init("a"), harness.init("b")
    for name, key, epoch in (("a", outside, None), ("b", own, 1)):
        harness.prepare(key, [A0], transactional_id=name)
        harness.run(
            harness.machine.complete_prepared_txn(
                name, key, commit=True, producer_epoch=epoch, operator=ADA, now_ms=harness.now_ms
            )
        )
        harness.complete(key)
    found = {ended.transactional_id: ended.operator for ended in ended_in(harness)}
    assert found == {"a": ADA, "b": None}


def test_the_client_is_the_one_that_wrote_not_the_one_that_took_over() -> None:
    """Also where another has the id before the decision, or before the last marker."""
    harness = TransactionsHarness()

    def init(instance: str) -> TransactionKey:
        call = InitProducerId(
            transactional_id="app",
            instance_id=instance,
            init_number=1,
            timeout_ms=1_000,
            keep_prepared=True,
            principal=f"User:{instance}",
            address=f"at {instance}",
        )
        return harness.run(harness.machine.init_producer_id(call, now_ms=harness.now_ms))

    committed = init("one")
    prepared = harness.commit(committed, [A0])
    open_key = harness.prepare(prepared, [A0])
    harness.add(open_key, A0)
    init("two")
    harness.complete_prepared(prepared)
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    harness.machine = restored
    harness.complete(committed, prepared, open_key)
    one = Client("one", "at one", "User:one")
    assert {ended.producer_epoch: ended.client for ended in ended_in(harness)} == {
        committed.producer_epoch: one,
        prepared.producer_epoch: one,
        open_key.producer_epoch: one,
    }


def test_writers_of_a_joint_transaction_are_kept_with_its_version() -> None:
    harness = JointHarness()
    one, two = (harness.join(writer, name_of(4)) for writer in ("w-1", "w-2"))
    harness.commit_joint({one: [A0], two: [A1]}, name_of(4))
    harness.complete(one, two)
    found = {(ended.client and ended.client.name): ended for ended in ended_in(harness)}
    assert set(found) == {"w-1", "w-2"}
    assert {ended.txn_version for ended in found.values()} == {4}


def test_the_first_participants_of_many_are_kept_and_all_are_counted() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    many = [TopicPartition("topic-a", number) for number in range(PARTICIPANTS_KEPT + 5)]
    harness.commit(key, many)
    harness.complete(key)
    (ended,) = ended_in(harness)
    assert [each.participant for each in ended.participants] == many[:PARTICIPANTS_KEPT]
    assert ended.participant_count == len(many)


# -- how much is kept ----------------------------------------------------------------------------


def test_the_oldest_go_when_there_are_too_many() -> None:
    harness = TransactionsHarness(limits=limited(entries_max=16))
    end_many(harness, 50)
    epochs = [ended.producer_epoch for ended in ended_in(harness)]
    assert epochs == list(range(49, 49 - len(epochs), -1))
    assert 14 <= len(epochs) <= 16


def test_the_oldest_go_when_they_take_too_much() -> None:
    harness = TransactionsHarness(limits=limited(bytes_max=8_000))
    end_many(harness, 200)
    history = harness.machine._state.history
    assert 6_000 <= history.size_bytes <= 8_000
    assert ended_in(harness)[0].producer_epoch == 199


def test_the_oldest_go_when_they_are_too_old_also_if_no_transaction_ends() -> None:
    harness = TransactionsHarness(limits=limited(entries_max=8, age_max_ms=10))
    end_many(harness, 3)
    assert len(ended_in(harness)) == 3
    harness.now_ms += 9
    assert [ended.producer_epoch for ended in ended_in(harness)] == [2, 1]
    harness.now_ms += 2
    assert ended_in(harness) == []
    end_many(harness, 1, commit=False)
    end_many(harness, 1)
    assert harness.machine._state.history.count == 2


def test_many_commits_do_not_take_the_place_of_an_abort() -> None:
    harness = TransactionsHarness(limits=limited(entries_max=8))
    end_many(harness, 1, commit=False)
    end_many(harness, 50)
    aborted = HistoryFilter(outcome=Outcome.ABORTED)
    assert AbortReason.CLIENT in {ended.reason for ended in ended_in(harness, aborted)}


def test_no_history_is_kept_if_none_is_wanted() -> None:
    harness = TransactionsHarness(limits=limited(entries_max=0))
    end_many(harness, 3)
    assert ended_in(harness) == []
    assert harness.machine._state.history.count == 0


def test_a_clock_that_goes_back_changes_no_order() -> None:
    harness = TransactionsHarness()
    key = end_many(harness, 2)
    harness.now_ms -= 3_600_000
    harness.commit(key, [A0])
    harness.complete(key)
    found = entries(harness.machine, now_ms=NOW_MS)
    assert [ended.producer_epoch for _, ended in found] == [2, 1, 0]
    assert found[0][1].completed_ms == harness.now_ms
    texts = [str(position) for position, _ in found]
    assert texts == sorted(texts, reverse=True)
    assert [HistoryPosition.parsed(text) for text in texts] == [position for position, _ in found]


# -- how it is asked -----------------------------------------------------------------------------


def test_filters_fit_together() -> None:
    harness = TransactionsHarness()
    wrote: dict[str, list[Participant]] = {"app": [A0, GROUP], "other": [A1], "apple": [B0]}
    for name, those in wrote.items():
        key = harness.init(name)
        harness.now_ms += 1
        harness.commit(key, those, transactional_id=name)
        harness.complete(key)
    names = {
        "id": HistoryFilter(transactional_id="app"),
        "prefix": HistoryFilter(prefix="app"),
        "topic": HistoryFilter(topic_id="topic-a"),
        "partition": HistoryFilter(topic_id="topic-a", partition=1),
        "group": HistoryFilter(group_id="group-g"),
        "no such group": HistoryFilter(group_id="topic-a"),
        "topic and group": HistoryFilter(topic_id="topic-a", group_id="group-g"),
        "group, and a topic of others": HistoryFilter(topic_id="topic-b", group_id="group-g"),
        "from": HistoryFilter(from_ms=NOW_MS + 2),
        "before": HistoryFilter(before_ms=NOW_MS + 2),
        "aborted": HistoryFilter(outcome=Outcome.ABORTED),
        "reason": HistoryFilter(reasons=frozenset({AbortReason.CLIENT})),
        "epoch": HistoryFilter(prefix="o", producer_epoch=0),
        "other epoch": HistoryFilter(producer_epoch=1),
        "producer id": HistoryFilter(producer_id=harness.init("other", "two").producer_id),
    }
    found = {
        what: [ended.transactional_id for ended in ended_in(harness, wanted)]
        for what, wanted in names.items()
    }
    assert found == {
        "id": ["app"],
        "prefix": ["apple", "app"],
        "topic": ["other", "app"],
        "partition": ["other"],
        "group": ["app"],
        "no such group": [],
        "topic and group": ["app"],
        "group, and a topic of others": [],
        "from": ["apple", "other"],
        "before": ["app"],
        "aborted": [],
        "reason": [],
        "epoch": ["other"],
        "other epoch": [],
        "producer id": ["other"],
    }


@given(st.lists(st.sampled_from(["app", "other", "third"]), max_size=40), st.integers(1, 7))
def test_pages_together_are_the_whole_list(names: Sequence[str], size: int) -> None:
    harness = TransactionsHarness(limits=limited(entries_max=16))
    keys = {name: harness.init(name) for name in set(names)}
    for name in names:
        harness.commit(keys[name], [A0], transactional_id=name)
        harness.complete(keys[name])
        keys[name] = after(keys[name])
        harness.now_ms += len(name) % 2
    whole = entries(harness.machine, now_ms=harness.now_ms)
    paged: list[tuple[HistoryPosition, EndedTransaction]] = []
    while True:
        behind = paged[-1][0] if paged else None
        page = entries(harness.machine, behind=behind, now_ms=harness.now_ms)[:size]
        if not page:
            break
        paged += page
    assert paged == whole
    assert [position for position, _ in whole] == sorted(
        (position for position, _ in whole), reverse=True
    )


# -- restarts and moves --------------------------------------------------------------------------

SMALL = TransactionLimits(
    transactional_ids_max=3,
    history=HistoryLimits(entries_max=8, bytes_max=4_000, age_max_ms=90_000),
)


@settings(max_examples=50)
@given(st.lists(steps, max_size=60), st.lists(steps, max_size=30))
def test_a_restored_history_goes_on_as_the_live_one(
    before: list[Step], afterwards: list[Step]
) -> None:
    """From its journal, and from a snapshot; the limits are small, so that much of it has gone."""
    harness = TransactionsHarness(limits=SMALL)
    run_all(harness, before)
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    length = len(harness.journal)
    run_all(harness, afterwards)
    for offset, data in enumerate(harness.journal[length:], length):
        restored.replay(offset, harness.serde.decode(data))
    live = entries(harness.machine, now_ms=harness.now_ms)
    assert entries(restored, now_ms=harness.now_ms) == live
    assert entries(harness.replayed(harness.journal), now_ms=harness.now_ms) == live
    assert state_of(restored) == state_of(harness.machine)
    history = harness.machine._state.history
    rings = len({(position.partition, position.committed) for position, _ in live})
    assert history.count <= 8 * max(rings, 6)


def test_the_history_moves_with_its_partition_and_goes_on_there() -> None:
    pair = Pair()
    key = end_many(pair.old, 300)
    before = entries(pair.old.machine)
    pair.move()
    assert entries(pair.old.machine) == []
    assert entries(pair.new.machine) == before
    pair.new.now_ms = pair.old.now_ms + 1
    pair.new.commit(key, [A0])
    pair.new.complete(key)
    (position, ended), *rest = entries(pair.new.machine, now_ms=pair.new.now_ms)
    assert (ended.producer_epoch, position.number) == (300, 300)
    assert rest == before


def test_the_history_of_a_partition_that_moves_is_not_listed() -> None:
    pair = Pair()
    end_many(pair.old, 1)
    pair.led(MOVING)
    pair.old.run(pair.old.machine.moves.hand_over(pair.move_of()))
    assert entries(pair.old.machine) == []
    pair.led(MOVED)
    assert entries(pair.old.machine) == []
