"""An older copy of a coordinator's volume: what it gives out after `semel recover`."""

from collections.abc import Sequence

import pytest
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1, TransactionsHarness, image

from semel_common.errors import ProducerFencedError, SemelError
from semel_common.ids import partition_for_id, producer_id_counter_of
from semel_coordinator.transactions.machine import (
    InquiryOutcome,
    KnownOutcome,
    TransactionKey,
    TransactionName,
    TransactionState,
)
from semel_runtime.machine import Result

FLOOR = 1 << 50
PRODUCER_IDS_FLOOR = 1 << 46


def recover(harness: TransactionsHarness, partitions: Sequence[int] = range(10)) -> None:
    """Raise everything in these partitions, and start again from the journal."""
    raised = harness.machine.raised(
        partitions,
        image=image(),
        floor=FLOOR,
        producer_ids_floor=PRODUCER_IDS_FLOOR,
        now_ms=harness.now_ms,
    )
    harness.run(Result(None, raised))
    harness.restart()
    harness.run(harness.machine.claim())


def outcome(harness: TransactionsHarness, key: TransactionKey) -> KnownOutcome:
    """GetTransactionOutcome."""
    name = TransactionName(
        transactional_id=None, producer_id=key.producer_id, producer_epoch=key.producer_epoch
    )
    return harness.run(harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms)).outcome


def test_everything_that_is_given_out_is_above_the_floors() -> None:
    harness = TransactionsHarness()
    before = harness.init()
    recover(harness)
    after = harness.init(instance="two")
    assert after == (before.producer_id, FLOOR + 1)
    new = harness.init("another")
    assert producer_id_counter_of(new.producer_id) == PRODUCER_IDS_FLOOR + 1
    assert all(harness.machine.markers.serving()[each] == FLOOR + 1 for each in range(10))


def test_an_undecided_transaction_ends_and_no_caller_is_told_an_outcome() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    recover(harness)
    assert harness.states()[0] is TransactionState.PREPARE_ABORT
    assert outcome(harness, key) is KnownOutcome.TOO_OLD_TO_KNOW
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome is InquiryOutcome.ABORTED
    for end in (harness.commit, harness.abort):
        with pytest.raises(ProducerFencedError) as fenced:
            end(key)
        assert "outcome" not in fenced.value.details


@pytest.mark.parametrize("epochs_since", [0, 1, 7, FLOOR - 1])
def test_epochs_since_the_copy_are_over(epochs_since: int) -> None:
    harness = TransactionsHarness()
    key = harness.init()
    recover(harness)
    since = TransactionKey(key.producer_id, key.producer_epoch + epochs_since)
    (answer,) = harness.inquire((since, A0))
    assert answer.outcome is InquiryOutcome.ABORTED
    with pytest.raises(ProducerFencedError):
        harness.commit(since, [A0])


def test_ids_since_the_copy_were_given_out_and_are_over() -> None:
    harness = TransactionsHarness()
    lost = harness.init("lost")
    harness = TransactionsHarness()
    recover(harness)
    (answer,) = harness.inquire((lost, A0))
    assert answer.outcome is InquiryOutcome.ABORTED
    assert outcome(harness, lost) is KnownOutcome.TOO_OLD_TO_KNOW


def test_what_was_decided_stays_so_until_all_have_heard_of_it() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    recover(harness)
    answers = harness.inquire((key, A0), (key, A1))
    assert [answer.outcome for answer in answers] == [
        InquiryOutcome.COMMITTED,
        InquiryOutcome.ABORTED,
    ]
    harness.complete(key)
    assert harness.states() == [TransactionState.EMPTY]


@pytest.mark.parametrize("commit", [True, False])
def test_what_is_prepared_is_left_to_its_owner(*, commit: bool) -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.prepare(key, [A0])
    recover(harness)
    assert outcome(harness, key) is KnownOutcome.PREPARED
    harness.complete_prepared(key, commit=commit)
    decided = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    assert harness.states()[0] is decided


def test_a_joint_transaction_goes_on_after_a_reset_only() -> None:
    harness = JointHarness()
    before = harness.join("writer")
    assert before is not None
    harness.add_to(before, A0)
    recover(harness)
    assert not harness.described().known.open_version > 0
    again = name_of(2, run="another")
    with pytest.raises(SemelError, match="before the recovery"):
        harness.join("writer", again)
    after = harness.join("writer", again, reset=True)
    assert after == (before.producer_id, FLOOR)


def test_a_joint_transaction_that_another_coordinator_owns_is_left_to_it() -> None:
    harness = JointHarness()
    harness.join("writer")
    own = partition_for_id("joint", image().layout.transaction_log_partitions)
    recover(harness, [each for each in range(10) if each != own])
    assert harness.described().known.open_version == 1


def test_a_second_recovery_raises_everything_again() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    recover(harness)
    harness.init(instance="two")
    raised = harness.machine.raised(
        range(10),
        image=image(),
        floor=FLOOR + 1_000,
        producer_ids_floor=PRODUCER_IDS_FLOOR + 1_000,
        now_ms=harness.now_ms,
    )
    harness.run(Result(None, raised))
    assert harness.init(instance="three") == (key.producer_id, FLOOR + 1_001)
