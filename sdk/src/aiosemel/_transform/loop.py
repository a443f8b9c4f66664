"""Consume, transform, produce, exactly once: the loop that everyone would otherwise write wrongly.

Theory of operation. Records are polled first, and only then does a transaction begin: handler,
outputs, offsets, commit. No transaction is ever open while the consumer polls, and rebalances take
effect inside polls only; so a transaction has always ended before its partitions are acknowledged
as given up (protocol.md, section 5), and records whose partitions go are simply dropped.

Every transaction ends in one of three ways:

* committed: the consumer goes on,
* definitely not: it is aborted, and the consumer goes back to where the records began,
* unknown: the commit is repeated until its outcome is definite; it takes effect once.

A producer that has come to its end is replaced by a new one, whose ``init_transactions`` waits
until every earlier transaction of the id is settled; then the consumer goes on from the group's
committed offsets, which are the only witness of what became of the last transaction. A producer
that another instance has fenced is replaced only if ``take_over_when_fenced`` says so.

The failure decides the next step. A failure on the way (brokers, coordinators, rebalances,
time-outs) is not the records' fault: the loop processes them again, after a pause that grows, for
ever. An error of the handler, or a refusal because of the contents, is the records' fault: the loop
tries them one by one, and the one that still fails is poison (``poison.Suspects``).
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import replace
from random import Random

from opentelemetry.trace import Tracer

from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.consumer import Consumer
from aiosemel._consumer.consumer_spans import processing
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._transform.failures import (
    Fault,
    HandlerError,
    StopError,
    cause_of,
    fault_of,
    place_of,
)
from aiosemel._transform.outputs import Outputs
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input, Suspects
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel._transform.stop_on_signal import run_until_signal
from aiosemel._transform.types import (
    Handler,
    OnEvent,
    OnPoison,
    RecordPoisoned,
    TransactionAborted,
    TransactionCommitted,
    TransformEvent,
    TransformOptions,
    TransformStats,
)
from aiosemel.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    InvalidRequestError,
    RetriableError,
    SemelError,
    TransactionOutcomeUnknownError,
)
from aiosemel.types.consumer_records import ConsumerRecord
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Transform:
    """One consume-transform-produce loop. Made by ``SemelClient.transform``."""

    def __init__(  # noqa: PLR0913 - all but two are named
        self,
        consumer: Consumer,
        make_producer: Callable[[], TransactionalProducer],
        *,
        source: Collection[str],
        handler: Handler,
        on_poison: OnPoison | None,
        on_event: OnEvent | None,
        options: TransformOptions,
        handle_signals: bool = False,
        random: Random | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """Do nothing yet. The consumer is closed at the end, and so is every producer made."""
        self._consumer = consumer
        self._source = source
        self._handler = handler
        self._on_poison = on_poison
        self._on_event = on_event
        self._options = options
        self._tracer = tracer
        self._input = Input()
        self._suspects = Suspects(options.handler_retries)
        self._stats = TransformStats()
        self._pausing = Pausing(options, random or Random())
        self._producers = ProducerSupply(
            make_producer, self._pausing, take_over_when_fenced=options.take_over_when_fenced
        )
        self._failures = 0
        self._started = False
        self._handle_signals = handle_signals
        self._transacting = False

    @property
    def stats(self) -> TransformStats:
        """What has happened so far."""
        return replace(self._stats, producers=self._producers.made)

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
            await self._producers.start()
            self._consumer.subscribe(self._source, on_revoked=self._forget)
            while not self._pausing.stopping:
                await self._poll()
                if self._input:
                    await self._consume(self._producers.present)
        finally:
            try:
                await self._producers.close()
            finally:
                await self._consumer.close()

    # -- input -----------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Gather the records of one transaction."""
        options, taken = self._options, self._input
        limit = 1 if self._suspects.any else options.max_records
        taken.add(await self._consumer.poll(limit, options.poll_timeout_ms))
        deadline = Deadline.after_ms(options.linger_ms)
        while 0 < len(taken) < limit and taken.size_bytes < options.max_bytes:
            if deadline.passed or self._pausing.stopping:
                return
            polled = await self._consumer.poll(limit - len(taken), deadline.remaining_ms())
            taken.add(polled)

    async def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop records of partitions that go: their next owner reads them."""
        self._input.drop(partitions)
        self._suspects.forget(partitions)

    # -- one transaction -------------------------------------------------------------------------

    async def _consume(self, producer: TransactionalProducer) -> None:
        """Consume what was gathered in one transaction, or go back to before it."""
        taken, self._input = self._input, Input()
        records = taken.records()
        self._transacting = True
        try:
            with processing(self._tracer, records):
                await self._transact(producer, taken, records)
        finally:
            self._transacting = False

    async def _transact(
        self, producer: TransactionalProducer, taken: Input, records: list[ConsumerRecord]
    ) -> None:
        failure = self._suspects.poison(records)
        outputs = Outputs(producer)
        if not await self._begin(producer):
            return
        try:
            if failure is None:
                await self._handle(records, outputs)
            else:
                await self._give_up(records[0], failure.error, outputs)
            ends = taken.ends(self._consumer.positions())
            await self._send_offsets(producer, ends)
            await self._commit(producer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the transaction must end
            await self._recover(producer, taken, error)
            return
        self._pausing.succeeded()
        self._failures = 0
        self._suspects.passed(ends)
        self._count(committed=1, records_in=len(records), records_out=outputs.count)
        if failure is not None:
            self._count(poisoned=1)
            await self._tell(RecordPoisoned(record=records[0], error=failure.error))
        offsets = {each: end.offset for each, end in ends.items()}
        await self._tell(
            TransactionCommitted(
                records_in=len(records), records_out=outputs.count, offsets=offsets
            )
        )

    async def _begin(self, producer: TransactionalProducer) -> bool:
        """Begin a transaction; False if there is nothing to consume in it any more."""
        while True:
            try:
                await producer.begin_transaction()
            except RetriableError as error:
                if self._pausing.stopping:
                    return False
                _log.warning("beginning again: %s", error)
                await self._pausing.pause()
            except ApplicationRecoverableError as end:
                await self._producers.replace(end)
                self._consumer.seek_to_committed()
                return False
            else:
                return True

    async def _handle(self, records: list[ConsumerRecord], outputs: Outputs) -> None:
        try:
            await outputs.send_all(await self._handler(records, outputs) or ())
        except Exception as error:
            raise HandlerError from error
        finally:
            outputs.close()

    async def _give_up(self, record: ConsumerRecord, error: Exception, outputs: Outputs) -> None:
        assert self._on_poison is not None, "without it, the error has been raised"
        try:
            await outputs.send_all(await self._on_poison(record, error, outputs) or ())
        except Exception as stop:
            stop.add_note(f"on {place_of(record)}")
            raise StopError from stop
        finally:
            outputs.close()

    async def _send_offsets(
        self, producer: TransactionalProducer, ends: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        try:
            await producer.send_offsets(ends, self._consumer.group_metadata())
        except Exception as error:
            raise StopError from error

    async def _commit(self, producer: TransactionalProducer) -> None:
        """Commit; asks again until the outcome is definite, or cannot be asked for."""
        while True:
            try:
                await producer.commit()
            except TransactionOutcomeUnknownError as error:
                self._count(unknown=1)
                if isinstance(error.__cause__, asyncio.CancelledError):
                    raise error.__cause__ from None  # what it became, the next start finds out
                if not error.can_ask_again or self._pausing.stopping:
                    raise
                _log.warning("asking for the outcome again: %s", error)
                await self._pausing.pause()
            else:
                return

    # -- after a failure -------------------------------------------------------------------------

    async def _recover(
        self, producer: TransactionalProducer, taken: Input, error: Exception
    ) -> None:
        """End the transaction, and go back; raises errors that no repetition heals."""
        records = taken.records()
        cause = cause_of(error)
        what = place_of(records[0]) if len(records) == 1 else f"{len(records)} records"
        _log.warning("the transaction of %s did not commit: %r", what, cause)
        unknown = isinstance(error, TransactionOutcomeUnknownError)
        if isinstance(error, TransactionOutcomeUnknownError):
            await self._settle_by_successor(error)
        else:
            await self._roll_back(producer, taken, error)
            self._count(aborted=1)
        await self._tell(
            TransactionAborted(records_in=len(records), error=cause, outcome_unknown=unknown)
        )
        if not unknown:
            self._blame(records, error)
        await self._pausing.pause()

    async def _settle_by_successor(self, error: TransactionOutcomeUnknownError) -> None:
        """Go on from the group's committed offsets, once they are settled."""
        if self._pausing.stopping:
            raise error
        await self._producers.replace(error)
        self._consumer.seek_to_committed()

    async def _roll_back(
        self, producer: TransactionalProducer, taken: Input, error: Exception
    ) -> None:
        """Abort, and let the consumer read again what it has polled."""
        try:
            await self._abort(producer)
        except InvalidRequestError:
            raise
        except SemelError as end:
            await self._producers.replace(end, error)
            self._consumer.seek_to_committed()
        else:
            self._go_back(taken)

    async def _abort(self, producer: TransactionalProducer) -> None:
        while True:
            try:
                await producer.abort()
            except RetriableError as error:
                if self._pausing.stopping:
                    return  # closing the producer does what can be done
                _log.warning("aborting again: %s", error)
                await self._pausing.pause()
            else:
                return

    def _go_back(self, taken: Input) -> None:
        """Let the consumer read again what it has polled."""
        held = self._consumer.assignment()
        for topic_partition, start in taken.starts().items():
            if topic_partition in held:
                self._consumer.seek(topic_partition, start)

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
