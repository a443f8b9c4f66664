"""The entry of a transaction that has ended, as a value and as bytes.

Bytes take a fifth of the memory of values, and their length is known. They are in snapshots and
move with their partition, so fields are only ever added, each at the end and with a default.
"""

from typing import NamedTuple

from msgspec import Struct, msgpack

from semel_common.ids import GroupId, Participant, TopicPartition
from semel_coordinator.transactions.machine.state.entities import DecidedTransaction
from semel_coordinator.transactions.machine.state.people import Client, Operator
from semel_coordinator.transactions.machine.state.records import TransactionCompleted
from semel_coordinator.transactions.machine.state.transitions import (
    REASON_NUMBERS,
    AbortReason,
    Outcome,
)

PARTICIPANTS_KEPT = 100
"""How many participants of a transaction are kept, the first ones."""

_REASONS = {number: reason for reason, number in REASON_NUMBERS.items()}


class EndedParticipant(NamedTuple):
    """One participant; which kind it is says which of the names is empty."""

    topic_id: str
    partition: int
    group_id: str
    commits: bool
    acknowledged_before_ms: int
    """How long before the completion, in milliseconds."""

    @property
    def participant(self) -> Participant:
        """Its name."""
        if self.group_id:
            return GroupId(self.group_id)
        return TopicPartition(self.topic_id, self.partition)


class EndedTransaction(Struct, frozen=True, array_like=True):
    """A transaction whose markers are all written."""

    position_ms: int
    """When it was completed; never before those before it in its partition, wherever the clock
    went. Lists are in this order."""
    transactional_id: str
    producer_id: int
    producer_epoch: int
    reason_number: int
    """0: it is committed; else as in `REASON_NUMBERS`."""
    start_ms: int
    prepared_ms: int
    """0: it was not prepared."""
    decided_ms: int
    """0: not known."""
    completed_ms: int
    """0: not known."""
    participants: tuple[EndedParticipant, ...]
    """The first ones."""
    participant_count: int
    """All of them."""
    traceparent: str
    client: Client | None
    operator: Operator | None
    txn_version: int | None = None
    """Of a joint transaction."""

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return Outcome.ABORTED if self.reason_number else Outcome.COMMITTED

    @property
    def reason(self) -> AbortReason | None:
        """Why it was aborted."""
        return _REASONS.get(self.reason_number)


def packed(
    decided: DecidedTransaction,
    completed: TransactionCompleted,
    *,
    transactional_id: str,
    client: Client | None,
    position_ms: int,
) -> bytes:
    """Return the entry of a transaction that is completed now."""
    return _ENCODER.encode(
        # The fields of EndedTransaction, in their order: a tuple costs half of the instructions.
        (
            position_ms,
            transactional_id,
            decided.producer_id,
            decided.producer_epoch,
            0 if decided.reason is None else REASON_NUMBERS[decided.reason],
            decided.start_ms,
            decided.prepared_ms,
            decided.decided_ms,
            completed.completed_ms,
            _participants(decided, completed.acknowledged_before_ms),
            decided.participant_count,
            decided.traceparent,
            decided.client or client,
            decided.operator,
            decided.txn_version,
        )
    )


def unpacked(data: bytes) -> EndedTransaction:
    """Return an entry that `packed` of this or any earlier release has made."""
    return _DECODER.decode(data)


def _participants(
    decided: DecidedTransaction, acknowledged_before_ms: tuple[int, ...]
) -> list[tuple[str, int, str, bool, int]]:
    """Return the fields of the first participants, each an ``EndedParticipant``."""
    found: list[tuple[str, int, str, bool, int]] = []
    for commits, those in ((True, decided.committing), (False, decided.aborting)):
        for each in those:
            index = len(found)
            if index == PARTICIPANTS_KEPT:
                return found
            before_ms = acknowledged_before_ms[index] if acknowledged_before_ms else 0
            if isinstance(each, GroupId):
                found.append(("", 0, each.group_id, commits, before_ms))
            else:
                found.append((*each, "", commits, before_ms))
    return found


_ENCODER = msgpack.Encoder()
_DECODER = msgpack.Decoder(EndedTransaction)
