"""The calls of an application that commit together with a database of its own."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from aiosemel._admin.admin import Admin
from aiosemel._consumer.consumer import Consumer
from aiosemel._database.database_producer import DatabaseProducer
from aiosemel._database.decisions import Decisions
from aiosemel._database.group_offsets import GroupOffsets
from aiosemel._database.input_positions import InputPositions, PositionRules
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.prepared_transactions import PreparedTransactions
from aiosemel._database.resolver import resolve
from aiosemel._database.stored_transactions import StoredTransactions
from aiosemel._database.table_check import check_tables
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._shared.context import Closable, Context
from aiosemel._transform.outputs import Outputs
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel._transform.transform import (
    Transform,
    check_reads_committed,
    transform_consumer_options,
)
from aiosemel._transform.types import Made, OnEvent, TransformOptions
from aiosemel.database.contract import Database
from aiosemel.database.tables import PRODUCER, TRANSACTION, check_key
from aiosemel.options.client_options import ProducerOptions
from aiosemel.options.consumer_options import ConsumerOptions, OffsetReset
from aiosemel.types.after_restore import AfterRestore
from aiosemel.types.consumer_records import ConsumerRecord
from aiosemel.types.prepared_transaction import PreparedTransactionId

S = TypeVar("S")

StoreHandler: TypeAlias = Callable[[Sequence[ConsumerRecord], S], Awaitable[None]]
"""Is given the records of one transaction, partition after partition in offset order, and the
user's session in the open transaction. It may be called again with the same records after its
transaction was rolled back. It must not end the transaction itself."""
StoreOnPoison: TypeAlias = Callable[[ConsumerRecord, Exception, S], Awaitable[None]]
"""Is given a record that the handler cannot process, why, and the session of the transaction in
which the record counts as consumed: returning skips it, raising stops."""
DatabaseHandler: TypeAlias = Callable[[Sequence[ConsumerRecord], S, Outputs], Awaitable[Made]]
"""As ``StoreHandler``, with the transaction to send to; what it returns is sent too."""
DatabaseOnPoison: TypeAlias = Callable[[ConsumerRecord, Exception, S, Outputs], Awaitable[Made]]
"""As ``StoreOnPoison``, with the transaction to send to."""


class MakesConsumers(Protocol):
    """Makes consumers that the client closes."""

    def __call__(self, group_id: str | None, options: ConsumerOptions | None) -> Consumer:
        """Make a consumer."""
        ...


class MakesProducers(Protocol):
    """Makes transactional producers that the client closes."""

    def __call__(
        self, transactional_id: str, options: ProducerOptions | None
    ) -> TransactionalProducer:
        """Make a producer."""
        ...


class DatabaseClient(Generic[S]):
    """A client with one database of the application. Made by ``SemelClient.with_database``.

    docs/use/database.md shows which call fits which program.
    """

    def __init__(
        self,
        context: Context,
        database: Database[S],
        *,
        make_consumer: MakesConsumers,
        make_producer: MakesProducers,
        adopt: Callable[[Closable], None],
    ) -> None:
        self._context = context
        self._database = database
        self._make_consumer = make_consumer
        self._make_producer = make_producer
        self._adopt = adopt

    def store(  # noqa: PLR0913 - all are named
        self,
        *,
        source: Collection[str],
        group: str,
        handler: StoreHandler[S],
        on_poison: StoreOnPoison[S] | None = None,
        on_event: OnEvent | None = None,
        after_restore: AfterRestore = AfterRestore.STOP,
        options: TransformOptions | None = None,
        consumer_options: ConsumerOptions | None = None,
        handle_signals: bool = True,
    ) -> Transform:
        """Consume topics into the database, exactly once; await the result.

        ::

            async def book(records, session):
                session.add_all(payment_of(record) for record in records)

            await client.with_database(database).store(
                source=["orders"], group="ledger", handler=book
            )

        What a handler does in its session, and the position of its records, are one transaction of
        the database. Any number of instances may run; the database lets one of them process each
        record. Give each a ``group_instance_id`` in ``consumer_options`` that outlives restarts: a
        process that was killed has its partitions again at once then, not after 45 s. A group
        starts at the beginning of topics that are new to it. Failures, poison records and signals
        are as in ``transform``.

        The loop raises DatabaseTablesError, DatabaseBehindError, DatabaseAheadError,
        DatabaseSessionEndedError, and OffsetOutOfRangeError if records were deleted before they
        were processed.
        """
        read = consumer_options or ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        check_reads_committed("a store", read)
        transforming = options or TransformOptions()
        consumer, pausing = self._consumer(group, read), self._pausing(transforming)
        offsets = GroupOffsets(consumer, self._context.spawn)
        rules = _rules(read, after_restore, repeats_outputs=False)
        positions = self._positions(consumer, pausing, group, rules, offsets)
        return Transform(
            consumer,
            StoredTransactions(self._database, positions, offsets, pausing),
            pausing,
            source=source,
            handler=handler,
            on_poison=on_poison,
            on_event=on_event,
            options=transforming,
            handle_signals=handle_signals,
            tracer=self._context.tracer,
        )

    def transform(  # noqa: PLR0913 - all are named
        self,
        *,
        source: Collection[str],
        group: str,
        transactional_id: str,
        handler: DatabaseHandler[S],
        on_poison: DatabaseOnPoison[S] | None = None,
        on_event: OnEvent | None = None,
        after_restore: AfterRestore = AfterRestore.STOP,
        options: TransformOptions | None = None,
        consumer_options: ConsumerOptions | None = None,
        producer_options: ProducerOptions | None = None,
        handle_signals: bool = True,
    ) -> Transform:
        """Consume topics into the database and other topics, in one decision; await the result.

        ::

            async def pay(records, session, outputs):
                for record in records:
                    session.add(payment_of(record))
                    await outputs.send("receipts", receipt_of(record), key=record.key)

            await client.with_database(database).transform(
                source=["orders"], group="payments", transactional_id="payments-1", handler=pay
            )

        As ``SemelClient.transform``, and raises as ``store``. The database's commit decides, so
        outputs become visible after it. The transactional id belongs to this database from now on.
        """
        transforming = options or TransformOptions()
        read = transform_consumer_options(consumer_options, transforming, transactional_id)
        consumer, pausing = self._consumer(group, read), self._pausing(transforming)
        joint = JointCommit(self._context, self._database, is_stopping=lambda: pausing.stopping)
        producers = ProducerSupply(
            lambda: self._make_producer(transactional_id, producer_options),
            pausing,
            take_over_when_fenced=transforming.take_over_when_fenced,
            initialize=joint.initialize,
        )
        offsets = GroupOffsets(consumer, self._context.spawn)
        rules = _rules(read, after_restore, repeats_outputs=True)
        positions = self._positions(consumer, pausing, group, rules, offsets)
        return Transform(
            consumer,
            PreparedTransactions(
                consumer, self._database, joint, producers, positions, offsets, pausing
            ),
            pausing,
            source=source,
            handler=handler,
            on_poison=on_poison,
            on_event=on_event,
            options=transforming,
            handle_signals=handle_signals,
            tracer=self._context.tracer,
        )

    def producer(
        self, transactional_id: str, options: ProducerOptions | None = None
    ) -> DatabaseProducer[S]:
        """Return a producer whose transactions commit with the database; the client closes it.

        The transactional id belongs to this database from now on.
        """
        producer = DatabaseProducer(
            self._context, options or ProducerOptions(), transactional_id, self._database
        )
        self._adopt(producer)
        return producer

    async def resolve_prepared(
        self, *, older_than_ms: int = 0
    ) -> dict[PreparedTransactionId, bool]:
        """Complete what the application left prepared, as the database has decided.

        For an application that does not come back: while one process of it runs, that does it by
        itself. Returns each transaction with whether it committed; one without a decision aborts.
        Raises DatabaseTablesError.
        """
        await check_tables(self._database, (PRODUCER, TRANSACTION))
        decisions = Decisions(self._database, self._context.clock)
        return await resolve(Admin(self._context.cluster), decisions, older_than_ms=older_than_ms)

    def _consumer(self, group: str, read: ConsumerOptions) -> Consumer:
        """Make a consumer that never begins elsewhere than the database says.

        A log that was cut off in front of it is an error then, not a reason to leave records out.
        """
        check_key(self._database.dialect, "group", group)
        return self._make_consumer(group, replace(read, auto_offset_reset=OffsetReset.NONE))

    def _pausing(self, options: TransformOptions) -> Pausing:
        return Pausing(options, self._context.random)

    def _positions(
        self,
        consumer: Consumer,
        pausing: Pausing,
        group: str,
        rules: PositionRules,
        offsets: GroupOffsets,
    ) -> InputPositions:
        return InputPositions(
            self._context, consumer, self._database, group, rules, pausing, offsets
        )


def _rules(
    read: ConsumerOptions, after_restore: AfterRestore, *, repeats_outputs: bool
) -> PositionRules:
    return PositionRules(
        reset=read.auto_offset_reset,
        after_restore=AfterRestore(after_restore),
        repeats_outputs=repeats_outputs,
    )
