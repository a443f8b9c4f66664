"""InquireTransactions: presumed abort with inquiry, as protocol.md, section 6, has it.

Theory of operation. A participant that holds an open transaction asks what became of it. COMMITTED
is answered only from a durable decision that names the participant. ABORTED is answered for an
undecided epoch only by deciding it first. A list of participants is forgotten only after all of
them have acknowledged, so "not known" always means "not committed". What rests on not knowing (that
nothing is known, or that an epoch or a producer id was never given out) goes through a commit,
which a deposed owner cannot make. One request is one decision: all its answers are true together.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from semel_common.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    NotCoordinatorError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_common.ids import (
    Participant,
    transaction_log_partition_of,
)
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.joint.decisions import size_of, version_timed_out
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.registration import added
from semel_coordinator.transactions.machine.state.entities import Producer, TransactionKey, in_order
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason
from semel_coordinator.transactions.machine.step_size import StepBudget
from semel_runtime.machine import Result

NO_EPOCH = -1
"""The current epoch of a producer id that was never given out."""
NEVER_TIMES_OUT_MS = 2**63 - 1
"""The time left of a prepared transaction."""


class InquiryOutcome(StrEnum):
    """What a participant is told."""

    LATER = "LATER"
    ONGOING = "ONGOING"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    NEVER_GIVEN = "NEVER_GIVEN"


class Inquiry(Struct, frozen=True, kw_only=True):
    """One transaction that is open at one participant."""

    key: TransactionKey
    participant: Participant


class InquiryAnswer(Struct, frozen=True, kw_only=True):
    """What became of the transaction there."""

    outcome: InquiryOutcome
    coordinator_epoch: int = 0
    time_left_ms: int = 0
    """With ONGOING."""
    current_epoch: int = 0
    """With NEVER_GIVEN; NO_EPOCH if not even the producer id was given out."""
    error: SemelError | None = None
    """Why to ask again, with LATER."""


_LATER = InquiryAnswer(
    outcome=InquiryOutcome.LATER,
    error=ThrottlingQuotaExceededError("too many transactions are timed out to end all at once"),
)
"""Of a transaction that is timed out, and is not ended yet."""


class Inquirer:
    """Answers one request."""

    def __init__(
        self,
        state: TransactionsState,
        limits: TransactionLimits,
        ownership: Ownership,
        *,
        now_ms: int,
    ) -> None:
        """Answer by the state as it is."""
        self._state = state
        self._limits = limits
        self._ownership = ownership
        self._now_ms = now_ms
        self._asking: dict[int, dict[Participant, None]] = {}
        """Participants of current epochs, by producer id."""
        self._versions: dict[str, bool] = {}
        """Ids whose joint transaction is timed out: whether this request has ended it."""
        self._budget = StepBudget(limits)
        self._rests_on_not_knowing = False

    def inquire(
        self, inquiries: Sequence[Inquiry]
    ) -> Result[tuple[InquiryAnswer, ...], TransactionsRecord]:
        """Answer each inquiry; abort timed-out transactions, and register unknown participants."""
        for inquiry in inquiries:
            if self._is_current(inquiry.key):
                asking = self._asking.setdefault(inquiry.key.producer_id, {})
                asking[inquiry.participant] = None
        records: list[TransactionsRecord] = []
        current = {
            producer_id: self._ask_current(producer_id, records) for producer_id in self._asking
        }
        answers = tuple(
            current[inquiry.key.producer_id]
            if self._is_current(inquiry.key)
            else self._answer(inquiry)
            for inquiry in inquiries
        )
        return Result(answers, records, verify=self._rests_on_not_knowing)

    def _is_current(self, key: TransactionKey) -> bool:
        """Whether this is the undecided epoch of a producer that is served here."""
        producer = self._state.producers.get(key.producer_id)
        current = producer is not None and producer.producer_epoch == key.producer_epoch
        return current and self._ownership.serves(key.producer_id)

    def _ask_current(self, producer_id: int, records: list[TransactionsRecord]) -> InquiryAnswer:
        """Answer for the undecided epoch of a producer, and add what that decides to `records`."""
        producer = self._state.producers[producer_id]
        joint = self._state.joints.by_id.get(producer.transactional_id)
        if joint is not None:
            return self._ask_writer(joint, producer, records)
        asking = self._asking[producer_id]
        ongoing = self._state.ongoing.get(producer_id)
        timeout_ms = self._state.transactional_ids[producer.transactional_id].timeout_ms
        if ongoing is not None and ongoing.is_timed_out(timeout_ms, self._now_ms):
            if not self._budget.takes(transactions=1, participants=len(ongoing.participants)):
                return _LATER
            records += aborted(
                producer,
                ongoing,
                reason=AbortReason.TIMED_OUT,
                named=in_order(asking),
                now_ms=self._now_ms,
            )
            return self._known(InquiryOutcome.ABORTED, producer_id)
        age_ms = 0 if ongoing is None else max(0, self._now_ms - ongoing.start_ms)
        return self._ongoing(producer, records, time_left_ms=timeout_ms - age_ms)

    def _ask_writer(
        self, joint: Joint, producer: Producer, records: list[TransactionsRecord]
    ) -> InquiryAnswer:
        """Answer for the undecided epoch of a producer of joint transactions."""
        producer_id, name = producer.producer_id, producer.transactional_id
        if not joint.is_live(producer_id):
            # No writer has this epoch yet. Now none will: a participant holds records of it.
            if not self._budget.takes(transactions=1, participants=0):
                return _LATER
            named = in_order(self._asking[producer_id])
            records += aborted(
                producer, None, reason=AbortReason.FENCED, named=named, now_ms=self._now_ms
            )
            return self._known(InquiryOutcome.ABORTED, producer_id)
        if joint.is_timed_out(self._now_ms):
            if name not in self._versions:
                self._versions[name] = self._end_version(joint, records)
            return (
                self._known(InquiryOutcome.ABORTED, producer_id) if self._versions[name] else _LATER
            )
        return self._ongoing(producer, records, time_left_ms=joint.time_left_ms(self._now_ms))

    def _end_version(self, joint: Joint, records: list[TransactionsRecord]) -> bool:
        """End a version whose time is over, unless that is too much for now."""
        size = size_of(self._state, joint)
        if not self._budget.takes(transactions=size.transactions, participants=size.participants):
            return False
        named_of = {each: in_order(asking) for each, asking in self._asking.items()}
        records += version_timed_out(self._state, joint, named=named_of, now_ms=self._now_ms)
        return True

    def _ongoing(
        self, producer: Producer, records: list[TransactionsRecord], *, time_left_ms: int
    ) -> InquiryAnswer:
        """Register the participant that asks; LATER if there is no room for it."""
        producer_id = producer.producer_id
        asking = tuple(self._asking[producer_id])
        try:
            record = added(
                self._state, self._limits, producer, asking, traceparent="", now_ms=self._now_ms
            )
        except (ThrottlingQuotaExceededError, InvalidRequestError) as full:
            return InquiryAnswer(outcome=InquiryOutcome.LATER, error=full)
        if record is not None:
            records.append(record)
        return self._known(InquiryOutcome.ONGOING, producer_id, time_left_ms=time_left_ms)

    def _answer(self, inquiry: Inquiry) -> InquiryAnswer:
        """Answer for an epoch that is not a current one."""
        producer_id, producer_epoch = inquiry.key
        later = self._not_in_charge(producer_id)
        if later is not None:
            return InquiryAnswer(outcome=InquiryOutcome.LATER, error=later)
        if inquiry.key in self._state.prepared:
            # Its owner decides, whenever that is (protocol.md, section 6).
            ongoing = InquiryOutcome.ONGOING
            return self._known(ongoing, producer_id, time_left_ms=NEVER_TIMES_OUT_MS)
        current_epoch = self._current_epoch(producer_id)
        if current_epoch is not None and producer_epoch > current_epoch:
            self._rests_on_not_knowing = True
            return self._known(InquiryOutcome.NEVER_GIVEN, producer_id, current_epoch=current_epoch)
        decided = self._state.decided.get(inquiry.key)
        if decided is None:
            self._rests_on_not_knowing = True
            return self._known(InquiryOutcome.ABORTED, producer_id)
        commits = inquiry.participant in decided.committing
        return self._known(
            InquiryOutcome.COMMITTED if commits else InquiryOutcome.ABORTED, producer_id
        )

    def _not_in_charge(self, producer_id: int) -> SemelError | None:
        try:
            self._ownership.check_producer_id(producer_id)
        except (NotCoordinatorError, CoordinatorNotAvailableError) as error:
            return error
        return None

    def _current_epoch(self, producer_id: int) -> int | None:
        """Return the highest epoch given out; None of a producer without transactions."""
        producer = self._state.producers.get(producer_id)
        if producer is not None:
            return producer.producer_epoch
        return None if self._state.was_given(producer_id) else NO_EPOCH

    def _known(
        self,
        outcome: InquiryOutcome,
        producer_id: int,
        *,
        time_left_ms: int = 0,
        current_epoch: int = 0,
    ) -> InquiryAnswer:
        partition = transaction_log_partition_of(producer_id)
        return InquiryAnswer(
            outcome=outcome,
            # 0: there is no such partition, so no participant can have heard of an owner.
            coordinator_epoch=self._state.coordinator_epochs.get(partition, 0),
            time_left_ms=time_left_ms,
            current_epoch=current_epoch,
        )
