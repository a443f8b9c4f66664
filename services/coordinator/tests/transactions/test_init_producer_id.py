"""InitProducerId: ids and epochs, fencing, and repeats that take nothing from a successor."""

import pytest
from transactions_harness import (
    A0,
    B0,
    CLUSTER_ID,
    GROUP,
    NOW_MS,
    TransactionsHarness,
    after,
)

from semel_common.errors import (
    CoordinatorNotAvailableError,
    InvalidTransactionTimeoutError,
    NotCoordinatorError,
    ProducerFencedError,
    ThrottlingQuotaExceededError,
)
from semel_common.ids import (
    partition_for_id,
    producer_id_counter_of,
    producer_id_counters_start,
    producer_id_of,
    transaction_log_partition_of,
)
from semel_coordinator.transactions.machine import (
    InitProducerId,
    InquiryOutcome,
    ProducerIdsGiven,
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
    TransactionState,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.machine import Result


def call(*, transactional_id: str = "app", timeout_ms: int = 1_000) -> InitProducerId:
    return InitProducerId(
        transactional_id=transactional_id, instance_id="one", init_number=1, timeout_ms=timeout_ms
    )


def test_an_unknown_id_gets_a_new_producer_id_and_epoch_zero() -> None:
    """C-032, C-033: whatever the caller had before."""
    harness = TransactionsHarness()
    first, second = harness.init("app"), harness.init("other")
    assert (first.producer_epoch, second.producer_epoch) == (0, 0)
    assert first.producer_id != second.producer_id


def test_a_producer_id_names_the_partition_that_gave_it() -> None:
    harness = TransactionsHarness()
    key = harness.init("app")
    assert transaction_log_partition_of(key.producer_id) == partition_for_id("app", 10)


def test_no_producer_id_is_given_out_twice() -> None:
    """C-051, over restarts, to transactional and idempotent producers."""
    harness = TransactionsHarness()
    given = []
    for number in range(20):
        given.append(harness.init(f"id-{number}").producer_id)
        given.append(harness.run(harness.machine.give_producer_id()).producer_id)
        harness.restart()
    assert len(set(given)) == len(given)
    assert min(given) > 0


def test_the_producer_ids_of_a_cluster_begin_where_its_id_says() -> None:
    starts = set()
    for cluster_id in ("one", "two"):
        harness = TransactionsHarness(cluster_id=cluster_id)
        start = producer_id_counters_start(cluster_id)
        key = harness.run(harness.machine.give_producer_id())
        assert producer_id_counter_of(key.producer_id) == start + 1
        assert producer_id_counter_of(harness.init("app").producer_id) == start + 1
        harness.restart()
        key = harness.run(harness.machine.give_producer_id())
        assert producer_id_counter_of(key.producer_id) == start + 2
        starts.add(start)
    assert len(starts) == 2


def test_a_partition_that_counts_from_one_goes_on_with_that() -> None:
    """It has given out ids in a release whose counters all began at 1."""
    harness = TransactionsHarness()
    partition = partition_for_id("app", 10)
    harness.run(Result(None, [ProducerIdsGiven(partition=partition, count=41)]))
    assert producer_id_counter_of(harness.init("app").producer_id) == 42
    first, unknown, begun = (
        TransactionKey(producer_id_of(partition, counter), 7)
        for counter in (1, 43, producer_id_counters_start(CLUSTER_ID) + 1)
    )
    answers = harness.inquire((first, A0), (unknown, A0), (begun, A0))
    assert [answer.outcome for answer in answers] == [
        InquiryOutcome.ABORTED,
        InquiryOutcome.NEVER_GIVEN,
        InquiryOutcome.NEVER_GIVEN,
    ]


def test_ids_below_the_start_were_never_given() -> None:
    harness = TransactionsHarness()
    key = harness.run(harness.machine.give_producer_id())
    below = TransactionKey(key.producer_id - 1, 0)
    answers = harness.inquire((key, A0), (below, A0))
    assert [answer.outcome for answer in answers] == [
        InquiryOutcome.ABORTED,
        InquiryOutcome.NEVER_GIVEN,
    ]


def test_an_id_of_another_owner_is_refused() -> None:
    """C-035."""
    harness = TransactionsHarness(coordinators=2, instance_id=1)
    mine = next(each for each in map(str, range(99)) if partition_for_id(each, 10) % 2 == 1)
    other = next(each for each in map(str, range(99)) if partition_for_id(each, 10) % 2 == 0)
    assert harness.init(mine).producer_epoch == 0
    with pytest.raises(NotCoordinatorError, match="belongs to coordinator 0, this is 1"):
        harness.init(other)


def test_no_instance_is_in_charge_before_the_layout_is_known() -> None:
    machine = TransactionsMachine(instance_id=0, cluster=ClusterCopy(), limits=TransactionLimits())
    with pytest.raises(CoordinatorNotAvailableError):
        machine.claim()
    with pytest.raises(CoordinatorNotAvailableError):
        machine.init_producer_id(call(), now_ms=NOW_MS)


def test_an_instance_that_owns_nothing_gives_no_producer_id() -> None:
    harness = TransactionsHarness(coordinators=12, instance_id=11)
    with pytest.raises(NotCoordinatorError, match="owns no transaction-log partition"):
        harness.machine.give_producer_id()


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_a_time_out_that_is_not_possible_is_refused(timeout_ms: int) -> None:
    harness = TransactionsHarness()
    with pytest.raises(InvalidTransactionTimeoutError, match=f"is {timeout_ms}: must be 1 to"):
        harness.machine.init_producer_id(call(timeout_ms=timeout_ms), now_ms=NOW_MS)


def test_a_successor_raises_the_epoch_of_an_idle_id() -> None:
    """C-036: from EMPTY, COMPLETE_COMMIT and COMPLETE_ABORT."""
    harness = TransactionsHarness()
    key = harness.init(instance="one")
    assert harness.init(instance="two") == after(key, 1)
    harness.add(after(key, 1), A0)
    harness.complete(harness.commit(after(key, 1)), after(key, 1))
    assert harness.init(instance="three") == after(key, 3)
    harness.add(after(key, 3), A0)
    harness.abort(after(key, 3))
    harness.complete(after(key, 3))
    assert harness.init(instance="four") == after(key, 5)
    assert harness.states() == [TransactionState.EMPTY]


def test_a_successor_aborts_what_is_ongoing_in_one_write() -> None:
    """C-038, C-039: and is answered at once, with one epoch more."""
    harness = TransactionsHarness()
    key = harness.init(instance="one")
    harness.add(key, A0, GROUP)
    assert harness.init(instance="two") == after(key)
    assert harness.states() == [TransactionState.PREPARE_ABORT, TransactionState.EMPTY]
    (decided,) = harness.machine.markers.pending()
    assert (decided.key, set(decided.aborting), decided.reason) == (key, {A0, GROUP}, "FENCED")
    assert decided.traceparent == "of add"


def test_a_repeat_gets_the_same_answer_and_writes_nothing() -> None:
    """C-045, C-050: also after the producer has gone on."""
    harness = TransactionsHarness()
    key = harness.init(instance="one", number=1)
    assert harness.init(instance="one", number=1) == key
    assert not harness.records
    harness.add(key, A0)
    harness.commit(key)
    assert harness.init(instance="one", number=1) == key
    assert harness.states() == [TransactionState.PREPARE_COMMIT, TransactionState.EMPTY]


def test_a_second_call_of_an_instance_raises_the_epoch() -> None:
    """C-041, C-044: what it had open is aborted by itself, so its repeats are no fencing."""
    harness = TransactionsHarness()
    key = harness.init(number=1)
    harness.add(key, A0)
    assert harness.init(number=2) == after(key)
    assert harness.machine.markers.pending()[0].reason == "CLIENT"
    assert harness.abort(key) == after(key)


def test_an_older_call_of_the_instance_in_charge_takes_nothing() -> None:
    harness = TransactionsHarness()
    harness.init(number=1)
    key = harness.init(number=3)
    with pytest.raises(ProducerFencedError, match="init number 2 is older than 3"):
        harness.init(number=2)
    assert harness.commit(key) == after(key)


def test_a_delayed_call_of_a_superseded_instance_takes_nothing() -> None:
    """C-005, C-048: with a number that it has used, and with a new one."""
    harness = TransactionsHarness()
    harness.init(instance="one", number=1)
    key = harness.init(instance="two", number=1)
    for number in (1, 2):
        with pytest.raises(ProducerFencedError, match="a newer producer instance"):
            harness.init(instance="one", number=number)
    assert harness.commit(key) == after(key)


def test_the_last_sixteen_superseded_instances_are_kept() -> None:
    harness = TransactionsHarness()
    for number in range(18):
        harness.init(instance=f"instance-{number}")
    harness.restart()
    with pytest.raises(ProducerFencedError):
        harness.init(instance="instance-1")
    # Older than that: it counts as a new one.
    assert harness.init(instance="instance-0").producer_epoch == 18


def test_every_epoch_passed_over_has_an_outcome() -> None:
    harness = TransactionsHarness()
    key = harness.init(instance="one")
    for number in range(3):
        harness.init(instance=f"next-{number}")
    for epochs in range(3):
        (answer,) = harness.inquire((after(key, epochs), B0))
        assert answer.outcome == "ABORTED"


def test_a_new_time_out_counts_from_the_next_transaction() -> None:
    """C-036."""
    harness = TransactionsHarness()
    key = harness.init()
    shorter = InitProducerId(
        transactional_id="app", instance_id="two", init_number=1, timeout_ms=10
    )
    harness.run(harness.machine.init_producer_id(shorter, now_ms=harness.now_ms))
    harness.add(after(key), A0)
    assert [each.key for each in harness.tick(after_ms=10)] == [after(key)]


def test_transactional_ids_are_bounded() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(transactional_ids_max=2))
    key = harness.init("one")
    harness.init("two")
    with pytest.raises(ThrottlingQuotaExceededError, match="keeps 2 transactional ids already"):
        harness.init("three")
    assert harness.init("one", instance="successor") == after(key)
