"""What a coordinator does to an older copy of its volume before it serves. Pure.

Theory of operation. A decision in the copy stands: its markers are sent again, and participants
take them as repeats. A transaction that is undecided in the copy may have been decided since, and
newer epochs were given out. So every producer goes on at an epoch that was never given out, and
every lower epoch is over, with an unknown outcome: a client that asks for it is told so, and a
participant that has it open still is told ABORTED, as for every unknown transaction (protocol.md,
section 6). A prepared transaction stays prepared: its owner knows the outcome, and says it again.
Versions of joint transactions may have been committed since; their ids change owners, so that no
program goes on with them without a reset, which says that an operator has looked.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from semel_common.ids import transaction_log_partition_of
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.joint.decisions import writers_aborted
from semel_coordinator.transactions.machine.joint.joint_entities import JointId
from semel_coordinator.transactions.machine.state.record_partitions import partition_for_id
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    ProducerIdsGiven,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason


def raised(
    state: TransactionsState,
    partitions: Sequence[int],
    *,
    partition_count: int,
    floor: int,
    producer_ids_floor: int,
    now_ms: int,
) -> Iterator[TransactionsRecord]:
    """Yield what ends all that is open, and raises all that is given out in these partitions.

    The known state of others has moved, or moves here: this instance does not serve it.
    """
    for name, joint in state.joints.by_id.items():
        if partition_for_id(name, partition_count) not in partitions:
            continue
        yield from writers_aborted(state, joint, reason=AbortReason.OPERATOR, now_ms=now_ms)
        yield _disowned(joint.known.ended(None, now_ms=now_ms))
    for producer_id, ongoing in state.ongoing.items():
        if transaction_log_partition_of(producer_id) not in partitions:
            continue
        producer = state.producers[producer_id]
        if producer.transactional_id not in state.joints.by_id:
            yield from aborted(producer, ongoing, reason=AbortReason.OPERATOR, now_ms=now_ms)
    for producer in state.producers.values():
        if transaction_log_partition_of(producer.producer_id) in partitions:
            yield producer.raised(floor, now_ms)
    for partition in partitions:
        yield CoordinatorEpoch(partition=partition, coordinator_epoch=floor)
        known = state.producer_ids_given.get(partition)
        # All ids up to the floor may have been given out, so they all count as given.
        start = 0 if known is None else known.start
        yield ProducerIdsGiven(partition=partition, count=producer_ids_floor, start=start)


def _disowned(known: JointId) -> JointId:
    return replace(known, owner=f"{known.owner} before the recovery")
