"""The records that end the transactions of all writers of a version, whatever decided it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from semel_common.errors import ProducerFencedError, SemelError, TransactionAbortableError
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    ParticipantSet,
    Producer,
    TransactionKey,
)
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome

Named = Mapping[int, ParticipantSet]
"""Participants by the producer id of a writer."""


class VersionSize(NamedTuple):
    """How much a decision on a version is."""

    transactions: int
    participants: int
    """The registered participants."""


def writers_aborted(
    state: TransactionsState,
    joint: Joint,
    *,
    reason: AbortReason,
    named: Named | None = None,
    traceparent: str = "",
    now_ms: int,
) -> list[TransactionsRecord]:
    """Abort the transactions of all live writers; `named`: who must be told besides."""
    records: list[TransactionsRecord] = []
    for producer_id in joint.live:
        records += aborted(
            state.producers[producer_id],
            state.ongoing.get(producer_id),
            reason=reason,
            named=NOBODY if named is None else named.get(producer_id, NOBODY),
            traceparent=traceparent,
            now_ms=now_ms,
        )
    return records


def version_timed_out(
    state: TransactionsState, joint: Joint, *, named: Named | None = None, now_ms: int
) -> list[TransactionsRecord]:
    """Abort the open version: its time is over."""
    records = writers_aborted(
        state, joint, reason=AbortReason.TIMED_OUT, named=named, now_ms=now_ms
    )
    return [*records, joint.known.ended(None, now_ms=now_ms)]


def size_of(state: TransactionsState, joint: Joint) -> VersionSize:
    """Return the size of the step that ends the open version, with its id's own state."""
    ongoing = (state.ongoing.get(producer_id) for producer_id in joint.live)
    return VersionSize(
        transactions=len(joint.live) + 1,
        participants=sum(len(each.participants) for each in ongoing if each is not None),
    )


def is_live(state: TransactionsState, joint: Joint, key: TransactionKey) -> bool:
    """Whether a transaction is that of a writer of the open version."""
    producer = state.producers.get(key.producer_id)
    return (
        producer is not None
        and producer.transactional_id == joint.known.transactional_id
        and producer.producer_epoch == key.producer_epoch
        and joint.is_live(key.producer_id)
    )


def live_writer(state: TransactionsState, joint: Joint, key: TransactionKey) -> Producer:
    """Return the producer of a writer that may still write.

    Raises TransactionAbortableError or ProducerFencedError, which never tell the producer's current
    epoch: it may belong to another writer.
    """
    if is_live(state, joint, key):
        return state.producers[key.producer_id]
    producer = state.producers.get(key.producer_id)
    outcome = None if producer is None else producer.outcome_of(key.producer_epoch)
    reason = _reason_of(state, key)
    facts = {"outcome": outcome and outcome.value, "reason": reason and reason.value}
    error = ProducerFencedError if reason is AbortReason.FENCED else TransactionAbortableError
    raise error(
        _not_live(joint, key, reason or outcome),
        **{name: value for name, value in facts.items() if value is not None},
    )


def dead_writer(state: TransactionsState, joint: Joint, key: TransactionKey) -> SemelError:
    """Make the error of a commit that names a writer that is not live: a definite abort."""
    reason = _reason_of(state, key)
    facts = {} if reason is None else {"reason": reason.value}
    return TransactionAbortableError(
        _not_live(joint, key, reason), outcome=Outcome.ABORTED.value, **facts
    )


def _reason_of(state: TransactionsState, key: TransactionKey) -> AbortReason | None:
    producer = state.producers.get(key.producer_id)
    return None if producer is None else producer.reason_of(key.producer_epoch)


def _not_live(joint: Joint, key: TransactionKey, why: StrEnum | None) -> str:
    known = "" if why is None else f": {why}"
    return (
        f"{joint.known.transactional_id!r}: producer id {key.producer_id} with epoch"
        f" {key.producer_epoch} is no live writer{known}"
    )
