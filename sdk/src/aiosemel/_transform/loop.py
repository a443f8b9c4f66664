"""Consume, transform, produce, exactly once: the loop that everyone would otherwise write wrongly.

Theory of operation. Records are polled first, and only then does a transaction begin: handler,
outputs, offsets, commit. No transaction is ever open while the consumer polls, and rebalances take
effect inside polls only; so a transaction has always ended before its partitions are acknowledged
as given up (protocol.md, section 5), and records whose partitions go are simply dropped.

Every transaction ends in one of three ways:

* committed: the consumer goes on,
* definitely not: it is aborted, and the consumer goes back to where the records began,
* unknown: the commit is repeated until its outcome is definite; it takes effect once.

The failure decides the next step. A failure on the way (brokers, coordinators, rebalances,
time-outs) is not the records' fault: the loop processes them again, after a pause that grows, for
ever. An error of the handler, or a refusal because of the contents, is the records' fault: the loop
tries them one by one, and the one that still fails is poison (``poison.Suspects``).
"""

from collections.abc import Awaitable, Callable, Collection, Generator
from dataclasses import replace

from opentelemetry.trace import Tracer

from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.consumer import Consumer
from aiosemel._consumer.consumer_spans import processing
from aiosemel._transform.failures import (
    Fault,
    StopError,
    cause_of,
    fault_of,
    place_of,
)
from aiosemel._transform.input_transactions import InputTransactions, OpenTransaction
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input, Suspects
from aiosemel._transform.stop_on_signal import run_until_signal
from aiosemel._transform.types import (
    Made,
    OnEvent,
    RecordPoisoned,
    TransactionAborted,
    TransactionCommitted,
    TransformEvent,
    TransformOptions,
    TransformStats,
)
from aiosemel.errors import (
    DatabaseOutcomeUnknownError,
    IllegalStateError,
    TransactionOutcomeUnknownError,
)
from aiosemel.types.consumer_records import ConsumerRecord
from aiosemel.types.offsets import TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Transform:
    """One consume-transform-produce loop. Made by ``SemelClient.transform``."""

    def __init__(  # noqa: PLR0913 - all but three are named
        self,
        consumer: Consumer,
        transactions: InputTransactions,
        pausing: Pausing,
        *,
        source: Collection[str],
        handler: Callable[..., Awaitable[Made]],
        on_poison: Callable[..., Awaitable[Made]] | None,
        on_event: OnEvent | None,
        options: TransformOptions,
        handle_signals: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        """Do nothing yet. Consumer and transactions are closed at the end.

        ``handler`` and ``on_poison`` are given the arguments of the open transaction, too.
        """
        self._consumer = consumer
        self._transactions = transactions
        self._pausing = pausing
        self._source = source
        self._handler = handler
        self._on_poison = on_poison
        self._on_event = on_event
        self._options = options
        self._tracer = tracer
        self._input = Input()
        self._suspects = Suspects(options.handler_retries)
        self._stats = TransformStats()
        self._failures = 0
        self._started = False
        self._handle_signals = handle_signals
        self._transacting = False

    @property
    def stats(self) -> TransformStats:
        """The counts so far."""
        made = self._transactions
        return replace(self._stats, producers=made.producers, unknown=made.unknown)

    def stop(self) -> None:
        """Let ``run`` end: after the transaction that is open now, if there is one."""
        self._pausing.stop()
        self._consumer.wakeup()

    def __await__(self) -> Generator[object, None, None]:
        return self.run().__await__()

    async def run(self) -> None:
        """Transform until ``stop``, or until a signal. Can be run once.

        At its end, whatever the reason, it aborts the open transaction, or commits it if the commit
        was sent, and leaves the group. Raises ProducerFencedError or FencedInstanceIdError when
        another instance has taken the transactional id, TransactionOutcomeUnknownError when that
        happened during a commit, the handler's error of a poison record without ``on_poison``,
        errors of ``on_poison`` and ``on_event``, and errors that no repetition heals;
        RequestTimedOutError when the coordinator does not answer at the start. An error of one
        record has a note that names the record.
        """
        if self._started:
            raise IllegalStateError("a transformation can be run once: make another")
        self._started = True
        if self._handle_signals:
            await run_until_signal(self._run(), self._stop_at_signal)
        else:
            await self._run()

    def _stop_at_signal(self) -> float:
        self.stop()
        return self._options.signal_grace_ms if self._transacting else 0

    async def _run(self) -> None:
        try:
            await self._transactions.start()
            self._consumer.subscribe(
                self._source,
                on_assigned=self._transactions.find_positions,
                on_revoked=self._forget,
            )
            while not self._pausing.stopping:
                await self._poll()
                if self._input:
                    await self._consume()
        finally:
            try:
                await self._transactions.close()
            finally:
                await self._consumer.close()

    # -- input -----------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Gather the records of one transaction."""
        options, taken = self._options, self._input
        limit = 1 if self._suspects.any else options.max_records
        taken.add(await self._consumer.poll(limit, options.poll_timeout_ms))
        deadline = Deadline.after_ms(options.linger_ms)
        while 0 < len(taken) < limit:
            if deadline.passed or self._pausing.stopping or taken.size_bytes() >= options.max_bytes:
                return
            polled = await self._consumer.poll(limit - len(taken), deadline.remaining_ms())
            taken.add(polled)

    async def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop records of partitions that go: their next owner reads them."""
        self._input.drop(partitions)
        self._suspects.forget(partitions)

    # -- one transaction -------------------------------------------------------------------------

    async def _consume(self) -> None:
        """Consume what was gathered in one transaction, or go back to before it."""
        taken, self._input = self._input, Input()
        records = taken.records()
        self._transacting = True
        try:
            with processing(self._tracer, records):
                await self._transact(taken, records)
        finally:
            self._transacting = False

    async def _transact(self, taken: Input, records: list[ConsumerRecord]) -> None:
        failure = self._suspects.poison(records)
        transaction = await self._transactions.begin()
        if transaction is None:
            return
        try:
            if failure is None:
                await self._handle(records, transaction)
            else:
                await self._give_up(records[0], failure.error, transaction)
            ends = taken.ends(self._consumer.positions())
            await self._transactions.commit(ends, taken)
        except Exception as error:  # noqa: BLE001 - whatever it is, the transaction must end
            await self._recover(taken, error)
            return
        self._pausing.succeeded()
        self._failures = 0
        self._suspects.passed(ends)
        self._count(committed=1, records_in=len(records), records_out=transaction.records_out)
        if failure is not None:
            self._count(poisoned=1)
            await self._tell(RecordPoisoned(record=records[0], error=failure.error))
        offsets = {each: end.offset for each, end in ends.items()}
        await self._tell(
            TransactionCommitted(
                records_in=len(records), records_out=transaction.records_out, offsets=offsets
            )
        )

    async def _handle(self, records: list[ConsumerRecord], transaction: OpenTransaction) -> None:
        try:
            await transaction.send_all(await self._handler(records, *transaction.arguments))
        except Exception as error:
            raise transaction.explain(error) from error
        finally:
            transaction.close()

    async def _give_up(
        self, record: ConsumerRecord, error: Exception, transaction: OpenTransaction
    ) -> None:
        assert self._on_poison is not None, "without it, the error has been raised"
        try:
            made = await self._on_poison(record, error, *transaction.arguments)
            await transaction.send_all(made)
        except Exception as stop:
            stop.add_note(f"on {place_of(record)}")
            raise StopError from stop
        finally:
            transaction.close()

    # -- after a failure -------------------------------------------------------------------------

    async def _recover(self, taken: Input, error: Exception) -> None:
        """End the transaction, and go back; raises errors that no repetition heals."""
        records = taken.records()
        cause = cause_of(error)
        what = place_of(records[0]) if len(records) == 1 else f"{len(records)} records"
        _log.warning("the transaction of %s did not commit: %r", what, cause)
        unknown = isinstance(error, TransactionOutcomeUnknownError | DatabaseOutcomeUnknownError)
        await self._transactions.undo(taken, error)
        if not unknown:
            self._count(aborted=1)
        await self._tell(
            TransactionAborted(records_in=len(records), error=cause, outcome_unknown=unknown)
        )
        if not unknown:
            self._blame(records, error)
        await self._pausing.pause()

    def _blame(self, records: list[ConsumerRecord], error: Exception) -> None:
        """Suspect the records, if it was their fault; raises errors that no repetition heals."""
        self._failures += 1
        match fault_of(error, self._failures):
            case Fault.ON_THE_WAY:
                return
            case Fault.OF_PROGRAM:
                raise cause_of(error)
            case Fault.OF_RECORDS:
                self._suspects.failed(records, cause_of(error))
        failure = self._suspects.poison(records)
        if failure is not None and self._on_poison is None:
            failure.error.add_note(f"on {place_of(records[0])}")
            raise failure.error

    # -- small things ----------------------------------------------------------------------------

    async def _tell(self, event: TransformEvent) -> None:
        if self._on_event is not None:
            await self._on_event(event)

    def _count(self, **more: int) -> None:
        stats = self._stats
        self._stats = replace(stats, **{name: getattr(stats, name) + n for name, n in more.items()})
