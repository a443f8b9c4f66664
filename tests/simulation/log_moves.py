"""Invariants of moves of transactions: the new leader has the state of the old one.

The records about transactions form one story over all journals, because no two coordinators ever
serve a transaction-log partition. Only the copy that a new leader stores is no part of it: it is
compared. A coordinator that writes records of a partition has raised its coordinator epoch in this
life, and has not handed it over since.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from semel_common.ids import partition_for_id, transaction_log_partition_of
from semel_coordinator.transactions.machine.history.ended_transaction import unpacked
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointId,
    JointIdExpired,
    JointPoolShrunk,
)
from semel_coordinator.transactions.machine.state.entities import Producer
from semel_coordinator.transactions.machine.state.record_partitions import partition_of
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    EndedTransactionsKept,
    TransactionalIdExpired,
    TransactionCompleted,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
)
from semel_coordinator.transactions.machine.state.transitions import Outcome, TransactionState
from semel_local.layout import ServiceName
from simulation.durable import Durable
from simulation.normal import normal

TRANSACTION_LOG_PARTITIONS = 5
"""As many as the simulated cluster has."""

Check = Callable[[bool, str], None]


class LogMovesWatch:
    """The watch over the moves of all transaction-log partitions."""

    def __init__(self) -> None:
        self._facts = Durable()
        self._copies: dict[str, dict[int, int]] = {}
        """Partitions that move to each service, with the leader epoch that they leave."""
        self._known: dict[tuple[int, int], list[object]] = {}
        """The state of a partition when it was handed over, by leader epoch."""
        self.completed = 0

    def durable(self) -> Durable:
        """Return the store of coordinators' facts: all of them share the facts of transactions."""
        facts = self._facts
        return Durable(
            epochs=facts.epochs,
            coordinator_epochs=facts.coordinator_epochs,
            versions=facts.versions,
        )

    def is_copy(self, name: ServiceName, record: object) -> bool:
        """See a durable record; returns whether it only repeats a record of the old leader."""
        copies = self._copies.setdefault(str(name), {})
        match record:
            case TransactionLogTakenOver():
                copies[record.partition] = record.leader_epoch
            case TransactionLogServed() | TransactionLogForgotten():
                copies.pop(record.partition, None)
            case _:
                return _partition_of(record) in copies
        return False

    def on_durable(self, claimed: set[int], record: object, check: Check) -> None:
        """See a durable record that is no copy; ``claimed``: the partitions served in this life."""
        match record:
            case CoordinatorEpoch() | TransactionLogServed():
                epochs = self._facts.coordinator_epochs
                before = epochs.get(record.partition, -1)
                check(record.coordinator_epoch > before, f"{record} after {before}")
                epochs[record.partition] = record.coordinator_epoch
                claimed.add(record.partition)
            case TransactionLogHandedOver():
                claimed.discard(record.partition)
            case _:
                partition = _partition_of(record)
                served = partition is None or partition in claimed
                check(served, f"{record}, but {partition} is not served")

    def replayed(
        self,
        name: ServiceName,
        machine: Any,  # noqa: ANN401 - of three kinds
        record: object,
        check: Check,
    ) -> None:
        """See a record as soon as it is replayed."""
        match record:
            case TransactionLogHandedOver():
                known = _known_of(machine, record.partition)
                self._known[record.partition, record.leader_epoch] = known
            case TransactionLogServed():
                epoch = self._copies.get(str(name), {}).get(record.partition)
                if epoch is not None:
                    known = _known_of(machine, record.partition)
                    before = self._known.get((record.partition, epoch))
                    check(known == before, f"{name} serves {known}, but was given {before}")
                    self.completed += 1
            case TransactionCompleted():
                _check_history(machine, record, check)
            case _:
                pass


def _partition_of(record: Any) -> int | None:  # noqa: ANN401 - of any service
    match record:
        case TransactionCompleted() | TransactionalIdExpired():
            return transaction_log_partition_of(record.producer_id)
        case JointPoolShrunk() | JointIdExpired():
            return partition_for_id(record.transactional_id, TRANSACTION_LOG_PARTITIONS)
        case _:
            return partition_of(record, partition_count=TRANSACTION_LOG_PARTITIONS)


def _known_of(machine: Any, partition: int) -> list[object]:  # noqa: ANN401 - of three kinds
    """Return the state of a partition, without its coordinator epoch and the use times of ids."""
    state = machine.transactions._state
    known = state.known_of(partition, partition_count=TRANSACTION_LOG_PARTITIONS)
    return [normal(_timeless(each)) for each in known if not isinstance(each, CoordinatorEpoch)]


def _timeless(record: Any) -> object:  # noqa: ANN401 - of any kind
    match record:
        case Producer() | JointId():
            return replace(record, last_update_ms=0)
        case EndedTransactionsKept():
            return replace(record, coordinator_epoch=0)
        case _:
            return record


def _check_history(machine: Any, completed: TransactionCompleted, check: Check) -> None:  # noqa: ANN401 - of three kinds
    """Check that a completed transaction is the last entry of its history, with its outcome."""
    partition = transaction_log_partition_of(completed.producer_id)
    committed = completed.state is TransactionState.COMPLETE_COMMIT
    rings = machine.transactions._state.history.rings_of([partition], committed=committed)
    last = unpacked(rings[0][-1].packed[-1]) if rings else None
    key = (completed.producer_id, completed.producer_epoch)
    told = last is not None and (last.producer_id, last.producer_epoch) == key
    check(told, f"the history ends with {last} after {completed}")
    if last is not None:
        check((last.outcome is Outcome.COMMITTED) == committed, f"{last} after {completed}")
