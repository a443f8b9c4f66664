"""The group coordinator's side of inquiries: which groups wait for an outcome, and get it."""

from collections.abc import Collection, Sequence
from functools import partial

from semel_common.ids import GroupId
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record, TxnOffsetsCommitted
from semel_runtime.clock import Clock
from semel_runtime.participant.inquiry import InquiryAnswer, OpenTransactionAt
from semel_runtime.runner import Runner


class GroupInquirer:
    """Says which transactions are due in the groups of one machine. Implements ``Inquirer``."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, clock: Clock) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._clock = clock

    def opens_transaction(self, record: Record) -> bool:
        """Whether a record may have opened a transaction."""
        return isinstance(record, TxnOffsetsCommitted)

    def has_open_transactions(self) -> bool:
        """Whether any is open."""
        return self._machine.transactions.has_open_transactions()

    async def due(
        self, awaited: Collection[OpenTransactionAt[GroupId]]
    ) -> Sequence[OpenTransactionAt[GroupId]]:
        """Return the transactions to ask about; ``awaited`` hold back stable offsets."""
        now_ms = self._clock.now_ms()
        query = partial(self._machine.transactions.transactions_to_inquire, awaited, now_ms=now_ms)
        return await self._runner.run(query)

    async def apply(
        self, answers: Sequence[InquiryAnswer[GroupId]]
    ) -> Sequence[InquiryAnswer[GroupId]]:
        """End the transactions that are still open."""
        now_ms = self._clock.now_ms()
        decide = partial(self._machine.transactions.apply_inquiry_answers, answers, now_ms=now_ms)
        return await self._runner.run(decide, privileged=True)
