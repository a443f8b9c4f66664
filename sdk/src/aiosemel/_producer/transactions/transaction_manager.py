"""The states of a transactional producer, and its next requests: a machine without I/O.

Theory of operation. A producer is in one of Kafka's states. Two kinds of things move it: *calls*
of the application, and *events*, which the shell reports (an answer, a failure). ``TRANSITIONS``
holds every legal step; a call that is not in it is refused with IllegalStateError and changes
nothing; an event that is not in it is a defect of the shell, and asserted.

A transaction is (producer id, producer epoch). It ends with one EndTxn, whose answer brings the
epoch of the next. Between, the machine keeps two sets of participants: participants with a *sent*
request, and participants that *acknowledged* all of theirs. A commit names the acknowledged ones,
and is possible only if the two sets are equal (protocol.md, section 6, "the SDK's duty"); an abort
names the other set too. A transaction that has sent nothing ends without a request, and keeps its
epoch.

Once EndTxn(commit) has gone out, only an outcome in its answer, or in the details of an error, is
definite. Until one comes, the producer stays in COMMITTING_TRANSACTION, where ``commit`` asks again
and nothing else is legal: above all no abort, which could contradict the commit.

PrepareTxn demands the same of the sends as a commit, names the same participants, and its answer
has the next epoch too. Until the answer comes, ``prepare`` asks again; ``abort`` is legal, because
no caller knows the transaction as prepared yet.

A transaction is lost when it fails, or another cause than a call of ``abort`` aborts it, before a
commit was sent: it is definitely not committed, because the coordinator was never asked to commit.
``commit`` then says so.

Reports that come late, from an epoch that has ended or after its end was sent, change nothing.

Source: Kafka ``TransactionManager.java``.
"""

from collections.abc import Iterable

from aiosemel._producer.transactions.end_requests import EndTxn, PrepareTxn
from aiosemel._producer.transactions.participants import Participants
from aiosemel._producer.transactions.transaction_errors import (
    FATAL,
    not_committed,
    out_of_order,
    outcome_unknown,
    standing_in_the_way,
    unacknowledged,
)
from aiosemel._producer.transactions.transaction_states import (
    TRANSITIONS,
    Call,
    Event,
    State,
    TransactionOutcome,
)
from aiosemel.errors import (
    IllegalStateError,
    RetriableError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from semel_common.ids import Participant
from semel_common.untrusted_text import natural_number

# The names of the facts in an error that answers EndTxn.
OUTCOME = "outcome"
NEXT_EPOCH = "next_epoch"


_OPEN = (State.IN_TRANSACTION, State.COMMITTING_TRANSACTION, State.PREPARING_TRANSACTION)


class TransactionManager:
    """The machine of one transactional producer."""

    __slots__ = (
        "_begun_epoch",
        "_end_sent",
        "_init_number",
        "_next_epoch",
        "_participants",
        "_transactional_id",
        "begun",
        "error",
        "loss",
        "outcome",
        "producer_epoch",
        "producer_id",
        "state",
        "takes_records",
    )

    def __init__(self, transactional_id: str) -> None:
        self._transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.takes_records = False
        """Whether ``check`` of a send passes: one look for each record."""
        self.error: SemelError | None = None
        """Why the state is ABORTABLE_ERROR or FATAL_ERROR."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.begun = 0
        """How many transactions were begun; two may have one epoch, if the first sent nothing."""
        self.outcome: TransactionOutcome | None = None
        """Of the transaction that was begun last; None while it is open."""
        self.loss: SemelError | None = None
        """Why that one never commits, although ``abort`` was not called; None if that is not so."""
        self._begun_epoch = -1
        self._init_number = 0
        self._participants = Participants()
        self._end_sent = False
        self._next_epoch: int | None = None

    # -- calls of the application ---------------------------------------------------------------

    def init_transactions(self) -> int:
        """Return the init number to send; a repeat sends the same one again."""
        self.check(Call.INIT_TRANSACTIONS)
        if self.state is State.UNINITIALIZED:
            self._init_number += 1
        self._move(Call.INIT_TRANSACTIONS)
        return self._init_number

    def outdated(self) -> None:
        """Need another identity before the next transaction: ``init_transactions`` asks for it."""
        self._move(Event.OUTDATED)

    @property
    def is_outdated(self) -> bool:
        """Whether the producer had an identity, and needs another one."""
        needs_one = self.state in (State.UNINITIALIZED, State.INITIALIZING)
        return needs_one and self.producer_id >= 0

    def begin_transaction(self) -> None:
        """Open the next transaction. Sends nothing: the first send does."""
        self.check(Call.BEGIN_TRANSACTION)
        self._move(Call.BEGIN_TRANSACTION)
        self.begun += 1
        self._begun_epoch = self.producer_epoch
        self.outcome = None
        self.loss = None

    def send_offsets(self, group_id: str) -> int:
        """Return the base sequence of one more commit of offsets to a group."""
        self.check(Call.SEND_OFFSETS)
        return self._participants.next_offset_sequence(group_id)

    def commit(self) -> None:
        """Take no more sends; then wait until all are acknowledged, and call ``end_commit``.

        Raises TransactionAbortedError when the transaction is lost.
        """
        self._check_not_lost()
        self.check(Call.COMMIT)
        self._move(Call.COMMIT)

    def prepare(self) -> None:
        """Take no more sends; then wait until all are acknowledged, and call ``end_prepare``.

        Raises TransactionAbortedError when the transaction is lost.
        """
        self._check_not_lost()
        self.check(Call.PREPARE)
        self._move(Call.PREPARE)

    def complete_prepared(self) -> int:
        """Return the epoch to send with a completion, which identifies the caller."""
        self.check(Call.COMPLETE_PREPARED)
        return self.producer_epoch

    def abort(self, because: SemelError | None = None) -> EndTxn | None:
        """Return the request to send; None when the transaction has ended with this call.

        ``because`` says why, where the application has not called ``abort``: that is a loss.
        """
        self.check(Call.ABORT)
        self._move(Call.ABORT)
        self.outcome = TransactionOutcome.ABORTED
        self.loss = None if because is None else self.loss or because
        if self._next_epoch is not None:
            self.ended(self.producer_id, self._next_epoch)
            return None
        return self._end(commit=False, participants=self._participants.sent)

    def accept_abort(self) -> None:
        """Note that the application has called ``abort`` after the abort."""
        self.loss = None

    def check(self, call: Call) -> None:
        """Refuse a call that is illegal now.

        Raises the fatal error that ended the producer, TransactionAbortableError when only an abort
        is possible, and IllegalStateError when the call is out of order.
        """
        if call in TRANSITIONS[self.state]:
            return
        if self.error is not None and self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            raise standing_in_the_way(call, self.state, self.error)
        raise out_of_order(call, self.state, self._transactional_id)

    def check_same(self, transaction: int, call: Call) -> None:
        """Refuse a call that has waited, if its transaction, by ``begun``, has ended meanwhile."""
        self.check(call)
        if transaction != self.begun:
            raise IllegalStateError(f"the transaction that {call} belongs to has ended")

    # -- requests and answers ---------------------------------------------------------------------

    def initialized(self, producer_id: int, producer_epoch: int) -> None:
        """Take the answer of InitProducerId."""
        self._move(Event.INITIALIZED)
        self._start(producer_id, producer_epoch)

    def init_failed(self, error: SemelError) -> None:
        """Take an error of InitProducerId that is not retriable: a new producer may do better."""
        self.error = error
        self._move(Event.FATAL)

    def sent(self, participant: Participant) -> bool:
        """Note, before it happens, that something goes to a participant.

        Returns whether it is the first in this transaction, and must be registered.
        """
        assert self.state in _OPEN, self.state
        assert not self._end_sent, "sent after the transaction's end"
        return self._participants.sent_to(participant)

    def acknowledged(self, participant: Participant) -> None:
        """Note that a participant has acknowledged all that was sent to it."""
        self._participants.acknowledged_by(participant)

    def failed(self, error: SemelError, producer_epoch: int) -> None:
        """Take an error, not retriable or past its time, of something sent in an epoch."""
        is_open = self.state in _OPEN and not self._end_sent
        if not is_open or producer_epoch != self.producer_epoch:
            return
        self.error = self.loss = error
        if isinstance(error, FATAL):
            self.outcome = TransactionOutcome.ABORTED
            self._move(Event.FATAL)
        else:
            self._move(Event.ABORTABLE)

    # -- the end --------------------------------------------------------------------------------

    @property
    def end_sent(self) -> bool:
        """Whether EndTxn or PrepareTxn went out, so that the outcome is not ours alone."""
        return self._end_sent

    def withdraw(self) -> None:
        """Go back to before ``commit`` or ``prepare``: time was up before a request went out."""
        if self.state in (State.COMMITTING_TRANSACTION, State.PREPARING_TRANSACTION):
            assert not self._end_sent, "a sent request cannot be withdrawn"
            self._move(Event.WITHDRAWN)

    def end_prepare(self) -> PrepareTxn:
        """Return the request to send, also of a transaction that has sent nothing.

        Raises TransactionAbortedError when a send has failed meanwhile.
        """
        self._check_acknowledged()
        self.check(Call.PREPARE)
        self.outcome = TransactionOutcome.UNKNOWN
        self._end_sent = True
        return PrepareTxn(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            participants=tuple(self._participants.acknowledged),
        )

    def prepared(self, producer_id: int, producer_epoch: int) -> None:
        """Take the answer of PrepareTxn: the next epoch. Raises if an abort was sent meanwhile."""
        self._check_not_lost()
        self.outcome = TransactionOutcome.PREPARED
        self._move(Event.ENDED)
        self._start(producer_id, producer_epoch)

    def prepare_failed(self, error: SemelError) -> SemelError:
        """Take an error that answered PrepareTxn, or why there was no answer; return what to raise.

        Of a retriable one, nothing is known: ``prepare`` asks again, ``abort`` gives up.
        """
        if self.loss is not None:
            return self._lost(self.loss)
        outcome = error.details.get(OUTCOME)
        if outcome == TransactionOutcome.ABORTED or isinstance(error, TransactionAbortableError):
            return self._settle_aborted(error)
        if not isinstance(error, RetriableError):
            self.error = error
            self._move(Event.FATAL)
        return error

    def end_commit(self) -> EndTxn | None:
        """Return the request to send; None when the transaction has ended with this call.

        Raises TransactionAbortedError when a send has failed meanwhile.
        """
        self._check_acknowledged()
        self.check(Call.COMMIT)
        self.outcome = (
            TransactionOutcome.UNKNOWN if self._participants.sent else TransactionOutcome.COMMITTED
        )
        return self._end(commit=True, participants=self._participants.acknowledged)

    def ended(self, producer_id: int, producer_epoch: int) -> None:
        """Take the answer of EndTxn: the next transaction's epoch."""
        if self.state is State.COMMITTING_TRANSACTION:
            self.outcome = TransactionOutcome.COMMITTED
        self._move(Event.ENDED)
        self._start(producer_id, producer_epoch)

    def commit_failed(self, error: SemelError) -> SemelError | None:
        """Take an error that answered EndTxn(commit), or why there was no answer.

        Returns what to raise: TransactionAbortedError or TransactionOutcomeUnknownError; None when
        the error says that the transaction has committed.
        """
        outcome = error.details.get(OUTCOME)
        if outcome == TransactionOutcome.COMMITTED:
            self.outcome = TransactionOutcome.COMMITTED
            self._settle(error)
            return None
        if outcome == TransactionOutcome.ABORTED or isinstance(error, TransactionAbortableError):
            return self._settle_aborted(error)
        if not isinstance(error, RetriableError):
            self.error = error
            self._move(Event.FATAL)
        return outcome_unknown(
            error,
            self._transactional_id,
            self.producer_id,
            self.producer_epoch,
            can_ask_again=self.state is State.COMMITTING_TRANSACTION,
        )

    def abort_failed(self, error: SemelError) -> None:
        """Take an error, not retriable, that answered EndTxn(abort)."""
        self.error = error
        self._move(Event.FATAL)

    # -- inside ---------------------------------------------------------------------------------

    def _move(self, cause: Call | Event) -> None:
        steps = TRANSITIONS[self.state]
        assert cause in steps, f"{cause} in state {self.state}"
        self.state = steps[cause]
        self.takes_records = Call.SEND in TRANSITIONS[self.state]

    def _start(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._participants = Participants()
        self._end_sent = False
        self._next_epoch = None
        self.error = None

    def _check_acknowledged(self) -> None:
        """Let the transaction only be aborted unless everything sent is acknowledged."""
        if waiting := self._participants.unacknowledged():
            self.failed(unacknowledged(waiting), self.producer_epoch)
        self._check_not_lost()

    def _check_not_lost(self) -> None:
        if self.loss is not None:
            raise self._lost(self.loss)

    def _end(self, *, commit: bool, participants: Iterable[Participant]) -> EndTxn | None:
        if not self._participants.sent and not self._end_sent:
            self.ended(self.producer_id, self.producer_epoch)
            return None
        self._end_sent = True
        return EndTxn(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            commit=commit,
            participants=tuple(participants),
        )

    def _settle(self, error: SemelError) -> None:
        """Go on with the next epoch after a commit; without one, another producer holds it."""
        next_epoch = self._newer_epoch_in(error)
        if next_epoch is None or isinstance(error, FATAL):
            self.error = error
            self._move(Event.FATAL)
        else:
            self.ended(self.producer_id, next_epoch)

    def _settle_aborted(self, error: SemelError) -> TransactionAbortedError:
        """Go on with the next epoch once ``abort`` is called; return what to raise."""
        next_epoch = self._newer_epoch_in(error)
        self.outcome = TransactionOutcome.ABORTED
        self.error = self.loss = error
        if next_epoch is None or isinstance(error, FATAL):
            self._move(Event.FATAL)
        else:
            self._move(Event.ABORTABLE)
            self._next_epoch = next_epoch
        return self._lost(error)

    def _newer_epoch_in(self, error: SemelError) -> int | None:
        epoch = natural_number(error.details.get(NEXT_EPOCH, "")) or 0
        return epoch if epoch > self.producer_epoch else None

    def _lost(self, error: SemelError) -> TransactionAbortedError:
        return not_committed(error, self._transactional_id, self._begun_epoch)
