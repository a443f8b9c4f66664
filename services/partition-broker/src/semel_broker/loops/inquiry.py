"""The broker's side of inquiries: batches open transactions, answers close them as markers do."""

from collections.abc import Collection, Sequence
from functools import partial

import structlog

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import BatchAppended, OpenTransaction, Record
from semel_broker.machine.values import Outcome
from semel_broker.rpc.outcome_writer import OutcomeWriter
from semel_common.ids import TopicPartition
from semel_runtime.clock import Clock
from semel_runtime.participant.inquiry import InquiryAnswer, InquiryOutcome, OpenTransactionAt
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)


class BrokerInquirer:
    """Says which transactions are due in the broker's partitions. Implements ``Inquirer``."""

    def __init__(
        self, runner: Runner[Record], machine: BrokerMachine, writer: OutcomeWriter, clock: Clock
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._writer = writer
        self._clock = clock

    def opens_transaction(self, record: Record) -> bool:
        """Whether a record may have opened a transaction, or brought one with a log that moves."""
        if isinstance(record, BatchAppended):
            return record.transactional
        return isinstance(record, OpenTransaction)

    def has_open_transactions(self) -> bool:
        """Whether any is open."""
        return self._machine.transactions.has_open_transactions()

    async def due(
        self, awaited: Collection[OpenTransactionAt[TopicPartition]]
    ) -> Sequence[OpenTransactionAt[TopicPartition]]:
        """Return the transactions to ask about; readers in a long poll need no faster answer."""
        assert not awaited, "no caller uses ask_now"
        decide = partial(
            self._machine.transactions.transactions_to_inquire, now_ms=self._clock.now_ms()
        )
        return await self._runner.run(decide)

    async def apply(
        self, answers: Sequence[InquiryAnswer[TopicPartition]]
    ) -> Sequence[InquiryAnswer[TopicPartition]]:
        """Write the markers that the answers stand for."""
        refusals = await self._writer.write([_outcome(each) for each in answers])
        taken: list[InquiryAnswer[TopicPartition]] = []
        for answer, refusal in zip(answers, refusals, strict=True):
            if refusal is None:
                taken.append(answer)
            else:
                log.warning("inquiry's answer refused", error=refusal.message, answer=answer)
        return taken


def _outcome(answer: InquiryAnswer[TopicPartition]) -> Outcome:
    never_given = answer.outcome is InquiryOutcome.NEVER_GIVEN
    partition, producer_id, producer_epoch = answer.transaction
    return Outcome(
        partition=partition,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=answer.outcome is InquiryOutcome.COMMITTED,
        coordinator_epoch=answer.coordinator_epoch,
        current_epoch=answer.current_epoch if never_given else None,
    )
