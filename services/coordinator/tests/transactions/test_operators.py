"""AbortTransaction and FenceProducer: what operators do, and nothing besides."""

import pytest
from joint_harness import JointHarness
from structlog.testing import capture_logs
from transactions_harness import A0, A1, TransactionsHarness, after
from transactions_requests import ask
from transactions_service_harness import Cluster

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    NotCoordinatorError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
)
from semel_common.ids import partition_for_id
from semel_coordinator.transactions.machine import (
    AbortReason,
    TransactionKey,
    TransactionState,
)
from semel_coordinator.transactions.machine.operator_decisions import OperatorAbort, OperatorFence


@pytest.fixture
def harness() -> TransactionsHarness:
    return TransactionsHarness()


def abort(
    harness: TransactionsHarness, key: TransactionKey, *, dry_run: bool = False
) -> OperatorAbort:
    machine = harness.machine
    return harness.run(
        machine.operators.abort_transaction("app", key, dry_run=dry_run, now_ms=harness.now_ms)
    )


def fence(
    harness: TransactionsHarness, instance_id: str = "operator", *, dry_run: bool = False
) -> OperatorFence:
    machine = harness.machine
    return harness.run(
        machine.operators.fence_producer("app", instance_id, dry_run=dry_run, now_ms=harness.now_ms)
    )


# -- abort


def test_an_operator_aborts_and_the_producer_is_told_and_goes_on(
    harness: TransactionsHarness,
) -> None:
    key = harness.init()
    harness.add(key, A0, A1)
    assert abort(harness, key) == OperatorAbort(participants=2)
    (decided,) = harness.machine.markers.pending()
    assert (decided.state, decided.reason) == (
        TransactionState.PREPARE_ABORT,
        AbortReason.OPERATOR,
    )
    with pytest.raises(TransactionAbortableError, match="OPERATOR") as caught:
        harness.commit(key, [A0, A1])
    assert caught.value.details == {"outcome": "ABORTED", "reason": "OPERATOR", "next_epoch": "1"}
    assert harness.commit(after(key), [A0]) == after(key, 2)


def test_a_repeated_or_late_abort_hits_no_other_transaction(harness: TransactionsHarness) -> None:
    key = harness.init()
    abort(harness, key)
    harness.add(after(key), A0)
    assert abort(harness, key) == OperatorAbort(already_aborted=True)
    assert harness.records == ()
    assert harness.states()[-1] is TransactionState.ONGOING


def test_a_transaction_that_nothing_is_known_of_is_aborted_too(
    harness: TransactionsHarness,
) -> None:
    """Its participants may not be registered yet: their inquiry is answered ABORTED."""
    key = harness.init()
    assert abort(harness, key) == OperatorAbort(participants=0)
    assert harness.machine.current_epoch(key.producer_id) == 1


def test_what_has_committed_or_was_never_given_cannot_be_aborted(
    harness: TransactionsHarness,
) -> None:
    key = current = harness.init()
    current = harness.commit(current)
    with pytest.raises(InvalidTxnStateError, match="is committed") as caught:
        abort(harness, key)
    assert caught.value.details["outcome"] == "COMMITTED"
    with pytest.raises(InvalidRequestError, match="never given out: the current one is 1"):
        abort(harness, after(key, 2))
    for _ in range(256):
        current = harness.commit(current)
    with pytest.raises(InvalidTxnStateError, match="not kept any more") as caught:
        abort(harness, key)
    assert "outcome" not in caught.value.details
    with pytest.raises(InvalidProducerIdMappingError):
        abort(harness, TransactionKey(key.producer_id + 1, 0))


def test_what_is_prepared_is_not_an_operators_to_abort_and_a_fence_keeps_it(
    harness: TransactionsHarness,
) -> None:
    key = harness.init()
    harness.prepare(key, [A0])
    with pytest.raises(InvalidTxnStateError, match="is prepared"):
        abort(harness, key)
    assert fence(harness).fenced_epoch == 1
    assert TransactionState.PREPARED in harness.states()


def test_a_dry_run_answers_the_same_and_does_nothing(harness: TransactionsHarness) -> None:
    key = harness.init()
    harness.add(key, A0)
    assert abort(harness, key, dry_run=True) == OperatorAbort(participants=1)
    assert harness.records == ()
    assert fence(harness, dry_run=True) == OperatorFence(
        producer_id=key.producer_id, fenced_epoch=0, participants=1
    )
    assert harness.records == ()
    assert harness.states() == [TransactionState.ONGOING]


# -- fence


def test_a_fenced_producer_can_do_nothing_and_the_next_one_has_the_id(
    harness: TransactionsHarness,
) -> None:
    key = harness.init()
    harness.add(key, A0)
    assert fence(harness) == OperatorFence(
        producer_id=key.producer_id, fenced_epoch=0, participants=1
    )
    assert harness.machine.markers.pending()[0].reason is AbortReason.FENCED
    with pytest.raises(ProducerFencedError):
        harness.commit(key, [A0])
    with pytest.raises(ProducerFencedError):
        harness.init(number=2)
    assert harness.init(instance="two") == after(key, 2)


def test_a_repeated_fence_fences_no_producer_again(harness: TransactionsHarness) -> None:
    key = harness.init()
    assert fence(harness) == fence(harness)
    assert harness.records == ()
    harness.init(instance="two")
    with pytest.raises(ProducerFencedError):
        fence(harness)
    assert harness.machine.current_epoch(key.producer_id) == 2
    assert fence(harness, "another").fenced_epoch == 2


def test_only_ids_that_are_here_are_fenced() -> None:
    harness = TransactionsHarness(instance_id=partition_for_id("app", 10) % 2, coordinators=2)
    with pytest.raises(TransactionalIdNotFoundError):
        fence(harness)
    other = TransactionsHarness(instance_id=1 - partition_for_id("app", 10) % 2, coordinators=2)
    with pytest.raises(NotCoordinatorError):
        fence(other)


# -- joint transactions


@pytest.fixture
def joint() -> JointHarness:
    return JointHarness()


def abort_writer(
    joint: JointHarness, key: TransactionKey, *, dry_run: bool = False
) -> OperatorAbort:
    operators = joint.machine.operators
    return joint.run(
        operators.abort_transaction("joint", key, dry_run=dry_run, now_ms=joint.now_ms)
    )


def test_an_operator_who_aborts_one_writer_ends_the_version(joint: JointHarness) -> None:
    first, second = joint.join("a"), joint.join("b")
    joint.add_to(first, A0)
    joint.add_to(second, A1)
    assert abort_writer(joint, second, dry_run=True) == OperatorAbort(participants=2)
    assert joint.records == ()
    assert abort_writer(joint, second) == OperatorAbort(participants=2)
    assert {key: each.reason for key, each in joint.decided().items()} == dict.fromkeys(
        (first, second), AbortReason.OPERATOR
    )
    with pytest.raises(TransactionAbortableError) as caught:
        joint.commit_joint({first: [A0]})
    assert caught.value.details == {"outcome": "ABORTED", "reason": "OPERATOR"}


def test_a_repeated_abort_of_a_writer_hits_no_later_version(joint: JointHarness) -> None:
    key = joint.join("a")
    abort_writer(joint, key)
    again = joint.join("b")
    assert again == after(key)
    assert abort_writer(joint, key) == OperatorAbort(already_aborted=True)
    assert joint.described().known.open_version == 1


def test_an_epoch_that_no_writer_has_joined_with_is_aborted_alone(joint: JointHarness) -> None:
    first, second = joint.join("a"), joint.join("b")
    joint.abort_joint()
    joint.join("c")
    assert abort_writer(joint, after(second)) == OperatorAbort()
    assert joint.described().known.open_version == 1
    with pytest.raises(InvalidRequestError, match="never given out"):
        abort_writer(joint, after(first, 2))


def test_a_committed_version_is_not_aborted_and_no_other_id_s_writers_are(
    joint: JointHarness,
) -> None:
    key = joint.join("a")
    joint.commit_joint({key: [A0]})
    with pytest.raises(InvalidTxnStateError, match="is committed"):
        abort_writer(joint, key)
    other = joint.init()
    with pytest.raises(InvalidProducerIdMappingError, match="no writer"):
        abort_writer(joint, other)


def test_ids_of_joint_transactions_are_fenced_by_runs_and_by_no_operator(
    joint: JointHarness,
) -> None:
    joint.join("a")
    with pytest.raises(InvalidRequestError, match="a new run fences") as caught:
        joint.run(
            joint.machine.operators.fence_producer(
                "joint", "operator", dry_run=False, now_ms=joint.now_ms
            )
        )
    assert caught.value.details["field"] == "transactional_id"


# -- the service


async def test_what_operators_do_is_logged_with_who_and_why() -> None:
    cluster = Cluster()
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        operator = wire.Operator(name="alice", reason="its host is lost")
        with capture_logs() as logs:
            aborted = await ask(
                coordinator,
                wire.AbortTransactionRequest(
                    transactional_id="app",
                    producer_id=key.producer_id,
                    producer_epoch=0,
                    operator=operator,
                    dry_run=True,
                ),
            )
            fenced = await ask(
                coordinator,
                wire.FenceProducerRequest(
                    transactional_id="app", instance_id="x", operator=operator
                ),
            )
        assert aborted == wire.AbortTransactionResponse()
        assert fenced == wire.FenceProducerResponse(producer_id=key.producer_id)
        assert [(log["event"], log["dry_run"]) for log in logs] == [
            ("operator aborts transaction", True),
            ("operator fences producer", False),
        ]
        assert {(log["operator"], log["reason"]) for log in logs} == {("alice", "its host is lost")}
        again = await ask(
            coordinator,
            wire.AbortTransactionRequest(
                transactional_id="app",
                producer_id=key.producer_id,
                producer_epoch=0,
                operator=operator,
            ),
        )
        assert again == wire.AbortTransactionResponse(already_aborted=True)


@pytest.mark.parametrize(
    "operator",
    [wire.Operator(), wire.Operator(name="a"), wire.Operator(reason="b")],
    ids=["nothing", "who", "why"],
)
async def test_who_acts_must_say_who_and_why(operator: wire.Operator) -> None:
    cluster = Cluster()
    async with cluster.coordinator() as coordinator:
        await coordinator.init()
        with pytest.raises(InvalidRequestError, match="operator"):
            await ask(
                coordinator,
                wire.FenceProducerRequest(
                    transactional_id="app", instance_id="x", operator=operator
                ),
            )
        dry_run = wire.FenceProducerRequest(
            transactional_id="app", instance_id="x", operator=operator, dry_run=True
        )
        assert isinstance(await ask(coordinator, dry_run), wire.FenceProducerResponse)
