"""Questions: completeness, descriptions and lists."""

from transactions_harness import A0, B0, TIMEOUT_MS, TransactionsHarness, after

from semel_common.ids import partition_for_id
from semel_coordinator.transactions.machine import ListFilter, TransactionState


def listed(harness: TransactionsHarness, wanted: ListFilter) -> list[str]:
    return [f"{each.transactional_id} {each.state}" for each in harness.listed(wanted)]


def busy() -> TransactionsHarness:
    harness = TransactionsHarness()
    keys = {name: harness.init(name) for name in ("idle", "open", "done", "aborted")}
    harness.add(keys["open"], A0, transactional_id="open")
    harness.now_ms += 1_000
    harness.commit(keys["done"], [A0], transactional_id="done")
    harness.abort(keys["aborted"], [A0], transactional_id="aborted")
    return harness


def test_completeness_is_that_of_all_older_transactions() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for epochs in range(3):
        harness.commit(after(key, epochs), [A0])
    harness.complete(after(key))
    is_complete_below = harness.machine.markers.is_complete_below
    assert [is_complete_below(key.producer_id, epoch) for epoch in range(4)] == [
        *(True, False, False, False)
    ]
    harness.complete(key)
    assert [is_complete_below(key.producer_id, epoch) for epoch in range(4)] == [
        *(True, True, True, False)
    ]
    assert harness.machine.markers.is_complete(key)
    assert not harness.machine.markers.is_complete(after(key, 2))
    harness.complete(after(key, 2))
    assert is_complete_below(key.producer_id, 99)


def test_completing_twice_writes_once() -> None:
    """C-116."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    harness.complete(key, key)
    assert len(harness.records) == 1
    harness.complete(key)
    assert not harness.records


def test_the_current_epoch_is_known_of_transactional_producers_only() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key)
    assert harness.machine.current_epoch(key.producer_id) == 1
    assert harness.machine.current_epoch(harness.machine.give_producer_id().response[0]) is None


def test_a_description_has_all_transactions_that_are_not_complete() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.abort(key)
    harness.commit(after(key), [A0, B0])
    (described,) = harness.run(harness.machine.queries.describe_transactions(["app"]))
    assert (described.producer_id, described.producer_epoch) == after(key, 2)
    assert described.timeout_ms == TIMEOUT_MS
    aborted, committed, current = described.transactions
    assert (aborted.key, aborted.state, aborted.reason) == (key, "PrepareAbort", "CLIENT")
    assert (committed.state, set(committed.participants)) == ("PrepareCommit", {A0, B0})
    assert (current.key, current.state, current.start_ms) == (after(key, 2), "Empty", 0)


def test_a_description_of_an_ongoing_transaction_does_not_grow_later() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    (described,) = harness.run(harness.machine.queries.describe_transactions(["app"]))
    harness.add(key, B0)
    assert set(described.transactions[0].participants) == {A0}
    assert described.transactions[0].traceparent == "of add"


def test_a_description_tells_why_there_is_none() -> None:
    harness = TransactionsHarness(coordinators=2)
    names = [f"id-{number}" for number in range(20)]
    mine = next(name for name in names if partition_for_id(name, 10) % 2 == 0)
    other = next(name for name in names if partition_for_id(name, 10) % 2 == 1)
    described = harness.run(harness.machine.queries.describe_transactions([mine, other]))
    assert [
        description.error.code.name for description in described if description.error is not None
    ] == [
        "TRANSACTIONAL_ID_NOT_FOUND",
        "NOT_COORDINATOR",
    ]


def test_a_list_has_everything_without_a_filter() -> None:
    """C-107."""
    assert listed(busy(), ListFilter()) == [
        "idle Empty",
        "open Ongoing",
        "done PrepareCommit",
        "aborted PrepareAbort",
    ]


def test_a_list_is_filtered_by_state() -> None:
    """C-107."""
    wanted = ListFilter(states=frozenset({TransactionState.ONGOING}))
    assert listed(busy(), wanted) == ["open Ongoing"]
    wanted = ListFilter(states=frozenset({TransactionState.EMPTY}))
    assert listed(busy(), wanted) == ["idle Empty"]
    wanted = ListFilter(states=frozenset({TransactionState.COMPLETE_COMMIT}))
    assert listed(busy(), wanted) == []


def test_a_list_is_filtered_by_producer_id() -> None:
    """C-107."""
    harness = busy()
    producer_id = harness.init("idle").producer_id
    wanted = ListFilter(producer_ids=frozenset({producer_id, 12_345}))
    assert listed(harness, wanted) == ["idle Empty"]


def test_a_list_is_filtered_by_how_long_transactions_run() -> None:
    """C-107, without Kafka's quirk by which idle ids pass every such filter."""
    assert listed(busy(), ListFilter(running_longer_than_ms=999)) == ["open Ongoing"]
    assert listed(busy(), ListFilter(running_longer_than_ms=1_000)) == []


def test_a_list_shows_the_last_transaction_that_is_not_complete() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.abort(key, [A0])
    harness.commit(after(key), [A0])
    assert listed(harness, ListFilter()) == ["app PrepareCommit"]
    assert listed(harness, ListFilter(running_longer_than_ms=0)) == []
