"""Records survive the disk as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transactions_harness import A0, A1, B0, GROUP, TransactionsSerde

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_common.ids import GroupId, TopicPartition
from semel_coordinator.transactions.machine import (
    NO_VERSION,
    AbortReason,
    Client,
    CoordinatorEpoch,
    DecidedTransaction,
    EndedTransactionsKept,
    JointEnd,
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointPoolGrown,
    JointPoolShrunk,
    JointWritersJoined,
    Operator,
    Outcome,
    ParticipantsAdded,
    PreparedTransaction,
    Producer,
    ProducerIdsGiven,
    TransactionalId,
    TransactionalIdExpired,
    TransactionCompleted,
    TransactionsRecord,
    TransactionState,
    in_order,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joints
from semel_coordinator.transactions.machine.state.entities import CompletedEpoch
from semel_coordinator.transactions.machine.state.transitions import REASON_NUMBERS

int64 = st.integers(0, (1 << 63) - 1)
int32 = st.integers(0, (1 << 31) - 1)
text = st.text(max_size=10)
name = st.text(min_size=1, max_size=10)
participants = st.lists(
    st.builds(TopicPartition, st.text(min_size=1, max_size=10), int32) | st.builds(GroupId, text),
    max_size=6,
    unique=True,
)
reasons = st.none() | st.sampled_from(AbortReason)
clients = st.none() | st.builds(Client, text, text, text)
ends = st.builds(
    JointEnd, end_id=text, owner=name, run=text, txn_version=int64, outcome=st.sampled_from(Outcome)
)

records: st.SearchStrategy[TransactionsRecord] = st.one_of(
    st.builds(CoordinatorEpoch, partition=int32, coordinator_epoch=int64),
    st.builds(ProducerIdsGiven, partition=int32, count=int64),
    st.builds(
        TransactionalId,
        transactional_id=text,
        producer_id=int64,
        timeout_ms=int32,
        instance_id=text,
        init_number=int64,
        init_epoch=int64,
        superseded=st.lists(text).map(tuple),
        principal=text,
        client_address=text,
        client_principal=text,
    ),
    st.builds(
        EndedTransactionsKept,
        partition=int32,
        committed=st.booleans(),
        first_number=int64,
        packed=st.lists(st.binary(max_size=10)).map(tuple),
        coordinator_epoch=int64,
    ),
    st.builds(
        Producer,
        producer_id=int64,
        transactional_id=text,
        producer_epoch=int64,
        outcomes=st.integers(0, (1 << 256) - 1),
        outcomes_known=st.integers(0, 256),
        abort_reason=reasons,
        last_update_ms=int64,
        abort_reasons=st.integers(0, (1 << 4 * 256) - 1),
        prepared=st.lists(int64).map(tuple),
        completed=st.lists(
            st.builds(CompletedEpoch, producer_epoch=int64, outcome=st.sampled_from(Outcome))
        ).map(tuple),
    ),
    st.builds(
        PreparedTransaction,
        producer_id=int64,
        producer_epoch=int64,
        start_ms=int64,
        prepared_ms=int64,
        committing=participants.map(in_order),
        aborting=participants.map(in_order),
        traceparent=text,
        client=clients,
    ),
    st.builds(TransactionalIdExpired, transactional_id=text, producer_id=int64),
    st.builds(
        DecidedTransaction,
        producer_id=int64,
        producer_epoch=int64,
        state=st.sampled_from([TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]),
        start_ms=int64,
        committing=participants.map(in_order),
        aborting=participants.map(in_order),
        reason=reasons,
        traceparent=text,
        decided_ms=int64,
        prepared_ms=int64,
        operator=st.none() | st.builds(Operator, text, text, text, text),
        client=clients,
        txn_version=st.none() | int64,
    ),
    st.builds(
        TransactionCompleted,
        producer_id=int64,
        producer_epoch=int64,
        state=st.sampled_from([TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]),
        completed_ms=int64,
        acknowledged_before_ms=st.lists(int64, max_size=5).map(tuple),
    ),
    st.builds(
        JointId,
        transactional_id=text,
        owner=text,
        run=text,
        superseded=st.lists(text).map(tuple),
        timeout_ms=int32,
        committed_version=st.just(NO_VERSION) | int64,
        open_version=st.just(NO_VERSION) | int64,
        start_ms=int64,
        last_end=st.none() | ends,
        last_update_ms=int64,
        one_shot=st.booleans(),
    ),
    st.builds(JointPoolShrunk, transactional_id=text, producer_ids=st.lists(int64).map(tuple)),
    st.builds(JointIdExpired, transactional_id=text),
    st.builds(JointEndsKept, transactional_id=text, ends=st.lists(ends, max_size=3).map(tuple)),
    st.builds(JointPoolGrown, transactional_id=text, producer_ids=st.lists(int64).map(tuple)),
    st.builds(JointWritersJoined, transactional_id=text, writers=st.lists(text).map(tuple)),
    st.builds(JointKeptAlive, transactional_id=text, kept_alive_ms=int64),
)


@given(records)
def test_written_records_are_read(record: TransactionsRecord) -> None:
    serde = TransactionsSerde()
    assert serde.decode(serde.encode(record)) == record


@given(participants)
def test_participants_keep_their_order(
    those: list[TopicPartition | GroupId],
) -> None:
    """C-109."""
    serde = TransactionsSerde()
    record = ParticipantsAdded(
        producer_id=1, producer_epoch=0, start_ms=5, traceparent="", participants=tuple(those)
    )
    assert serde.decode(serde.encode(record)) == record


def test_an_older_release_takes_a_part_of_the_history_for_its_coordinator_epoch() -> None:
    serde = TransactionsSerde()
    kept = EndedTransactionsKept(
        partition=3, committed=True, first_number=7, packed=(b"x",), coordinator_epoch=9
    )
    message = journal.TransactionsRecord.FromString(serde.encode(kept))
    message.ClearField("ended")
    assert serde.decode(message.SerializeToString()) == CoordinatorEpoch(
        partition=3, coordinator_epoch=9
    )


def test_partitions_of_one_topic_name_it_once() -> None:
    serde = TransactionsSerde()
    record = ParticipantsAdded(
        producer_id=1,
        producer_epoch=0,
        start_ms=5,
        traceparent="",
        participants=(A0, A1, B0, GROUP),
    )
    assert serde.encode(record).count(b"topic-a") == 1


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    """C-104: of a newer release; what it says must not be lost."""
    of_joint = journal.TransactionsRecord(joint=journal.JointRecord())
    for data in (b"", of_joint.SerializeToString()):
        with pytest.raises(ValueError, match="does not know"):
            TransactionsSerde().decode(data)


def test_a_reason_has_one_number_in_the_machine_and_on_disk() -> None:
    """It is written among those of the last epochs as it is."""
    on_disk = {name.removeprefix("ABORT_REASON_"): n for name, n in journal.AbortReason.items()}
    assert {reason.value: number for reason, number in REASON_NUMBERS.items()} == {
        name: number for name, number in on_disk.items() if number
    }


def test_a_joint_decision_of_an_earlier_release_is_that_of_the_owner_of_then() -> None:
    """An owner was not written: it was that of the id, or the decision was forgotten."""
    message = journal.TransactionsRecord()
    message.joint.id.transactional_id = "joint"
    message.joint.id.owner = "owner"
    message.joint.id.last_end.end_id = "end"
    message.joint.id.last_end.outcome = journal.OUTCOME_COMMITTED
    serde = TransactionsSerde()
    read = serde.decode(message.SerializeToString())
    assert isinstance(read, JointId)
    assert read.last_end is not None
    assert read.last_end.owner == "owner"
    joints = Joints()
    joints.replay(read)
    message = journal.TransactionsRecord()
    message.joint.ends_kept.transactional_id = "joint"
    for end_id in ("first", "end"):
        message.joint.ends_kept.ends.add(end_id=end_id, outcome=journal.OUTCOME_COMMITTED)
    kept = serde.decode(message.SerializeToString())
    assert isinstance(kept, JointEndsKept)
    joints.replay(kept)
    ends = joints.by_id["joint"].ends
    assert [(end.owner, end.end_id) for end in ends] == [("owner", "first"), ("owner", "end")]
