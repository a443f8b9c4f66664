"""The client: one bootstrap address in, producers, consumers and admin out.

A client owns the connections, the metadata cache, and every task of the objects that it makes.
Closing it closes all of them: it aborts open transactions, and leaves nothing running.
"""

import asyncio
import time
from collections.abc import Collection, Coroutine
from contextlib import nullcontext
from functools import partial
from random import Random
from typing import Self, TypeVar

from opentelemetry.trace import TracerProvider

from aiosemel._admin.admin import Admin
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.consumer import Consumer
from aiosemel._consumer.log_ranges import LogRange, LogRangeReader
from aiosemel._database.database_client import DatabaseClient
from aiosemel._joint.joint_transaction import JointTransaction
from aiosemel._joint.joint_writer import JointWriter
from aiosemel._outbox.relay import Relay
from aiosemel._producer.pool.transaction_pool import TransactionPool
from aiosemel._producer.producer import Producer
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._shared.closing import Closing, close_all
from aiosemel._shared.context import Clock, Closable, Context
from aiosemel._shared.name_checks import parse_bootstrap
from aiosemel._transform.transform import Transform, transform
from aiosemel._transform.types import Handler, OnEvent, OnPoison, TransformOptions
from aiosemel.database.contract import Database
from aiosemel.database.outbox import Outbox
from aiosemel.errors import ClosedError, IllegalStateError
from aiosemel.options.client_options import ClientOptions, ProducerOptions
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.options.pool_options import PoolOptions, pool_name
from aiosemel.options.relay_options import RelayOptions
from aiosemel.types.after_restore import AfterRestore
from aiosemel.types.joint_handle import JointHandle
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel_common.library_log import get_logger
from semel_common.telemetry.trace_context import outside, tracer_of
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import Security
from semel_common.wire.connection import Connector
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.traced_connector import TracedConnector

_log = get_logger(__name__)

S = TypeVar("S")


class SystemClock:
    """The clock of the machine. Implements ``Clock``."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000


class SemelClient:
    """A client of one cluster.

    ::

        async with SemelClient("localhost:9092") as client:
            producer = client.producer()
            await producer.send_and_wait("greetings", b"hello")

    ``bootstrap`` is the address of one coordinator, ``host:port``, or of several, with commas
    between; the client finds all others from there. ``security`` is TLS, and who the client is;
    without, connections are plain text, and the client anonymous. Connector, clock and random are
    for tests: a connector that is given is not closed. Use it in one process, and in the event loop
    that opened it: all that it makes raises IllegalStateError elsewhere.

    ``tracer_provider`` gets the client's spans; without one, the global provider does, if it is set
    before the client is made. See docs/run/traces.md.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        options: ClientOptions | None = None,
        security: Security | None = None,
        connector: Connector | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        """Check the addresses, and read the files of the security.

        Raises InvalidConfigError, TypeError.
        """
        addresses = parse_bootstrap(bootstrap)
        options = options or ClientOptions()
        self._owned_connector = (
            GrpcConnector(ChannelOptions(use_proxy=options.use_proxy), security)
            if connector is None
            else None
        )
        used = self._owned_connector if connector is None else connector
        assert used is not None
        chance = random or Random()
        self._tracer = tracer_of(tracer_provider, "aiosemel")
        if self._tracer is not None:
            used = TracedConnector(used, self._tracer)
        self._cluster = Cluster(addresses, used, options, chance)
        self._cluster.closed = True
        self._run = ""
        """Of the joint transactions that this client owns, once there is one."""
        self._group: asyncio.TaskGroup | None = None
        self._closing = Closing()
        self._running: set[asyncio.Task[None]] = set()
        self._made: dict[Closable, None] = {}
        self._context = Context(
            cluster=self._cluster,
            clock=clock or SystemClock(),
            random=chance,
            spawn=self._spawn,
            forget=self._forget,
            tracer=self._tracer,
        )

    async def open(self) -> None:
        """Make ready for use. Nothing is connected before it is needed.

        Raises IllegalStateError when it is open already, and in a process that was forked from one
        that has opened a client.
        """
        self._cluster.home.check()
        if self._group is not None:
            raise IllegalStateError("the client is open already")
        self._cluster.home.move_in(uses_grpc=self._owned_connector is not None)
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group
        self._closing = Closing()
        self._cluster.closed = False

    async def close(self) -> None:
        """Close everything that this client made, consumers first, then the connections.

        Producers wait until their records are stored; after an exception has left the block, for
        ``close_timeout_ms`` at most. May be called twice: concurrent calls wait for the first, here
        and in every object of the client. A call that makes an object meanwhile raises ClosedError.
        Raises the error of a consumer's callback, when everything is closed. A cancelled call
        closes everything, and waits no longer.
        """
        if self._group is not None:
            self._cluster.home.check()
            await self._closing.once(partial(self._close, self._group))

    async def _close(self, group: asyncio.TaskGroup) -> None:
        try:
            # Consumers first: their ``on_revoked`` ends transactions, of producers that are open.
            await close_all(sorted(self._made, key=lambda made: isinstance(made, Consumer)))
        finally:
            self._group = None
            self._cluster.closed = True
            for task in self._running:
                task.cancel()
            await group.__aexit__(None, None, None)
            if self._owned_connector is not None:
                await self._owned_connector.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None:
            for made in self._made:
                if isinstance(made, Producer):
                    made.hurry()
        await self.close()

    def producer(self, options: ProducerOptions | None = None) -> Producer:
        """Return a producer without transactions; the client closes it."""
        producer = Producer(self._context, options or ProducerOptions())
        self._adopt(producer)
        return producer

    def transactional_producer(
        self, transactional_id: str, options: ProducerOptions | None = None
    ) -> TransactionalProducer:
        """Return a producer with transactions; the client closes it.

        The transactional id is the same over restarts of one instance of an application, and no two
        instances have it at the same time: the newer one fences the older. Raises
        InvalidConfigError for an empty one, TypeError for one that is no str.
        """
        producer = TransactionalProducer(
            self._context, options or ProducerOptions(), transactional_id
        )
        self._adopt(producer)
        return producer

    def transactions(
        self,
        prefix: str,
        *,
        size: int = 8,
        instance: str | None = None,
        options: PoolOptions | None = None,
        producer_options: ProducerOptions | None = None,
    ) -> TransactionPool:
        """Return a pool that runs ``size`` transactions at the same time; the client closes it.

        Their transactional ids are ``orders-0`` to ``orders-7`` for the prefix ``orders``. With an
        ``instance`` they are ``orders-web-1-0`` and so on. A process that runs beside others of the
        same prefix needs an instance that no other has at the same time, and that it keeps over its
        restarts, such as the name of a pod of a StatefulSet: of two pools with the same name, the
        newer one fences the older, which ends with an error that says so. Raises InvalidConfigError
        for an empty name or a size below 1, TypeError for a name that is no str.
        """
        pool = TransactionPool(
            self._context,
            pool_name(prefix, instance),
            size,
            options or PoolOptions(),
            producer_options or ProducerOptions(),
        )
        self._adopt(pool)
        return pool

    def joint_transaction(
        self,
        transactional_id: str,
        txn_version: int,
        *,
        owner: str,
        run: str | None = None,
        transaction_timeout_ms: int = 60_000,
        reset: bool = False,
        options: ProducerOptions | None = None,
    ) -> JointTransaction:
        """Return a transaction that many processes write, for the process that ends it.

        Give its ``handle`` to the writers, for ``join``. See ``JointHandle`` for the meaning of the
        parts; ``run`` None: one for each client object. Raises InvalidRequestError.
        """
        self._run = self._run or f"{self._context.random.getrandbits(128):032x}"
        handle = JointHandle(
            transactional_id=transactional_id,
            txn_version=txn_version,
            owner=owner,
            run=run or self._run,
            transaction_timeout_ms=transaction_timeout_ms,
            reset=reset,
        )
        return self.joint_transaction_of(handle, options)

    def joint_transaction_of(
        self, handle: JointHandle, options: ProducerOptions | None = None
    ) -> JointTransaction:
        """Return the transaction of a handle, perhaps one from a receipt, to end it."""
        joint = JointTransaction(self._context, options or ProducerOptions(), handle)
        self._adopt(joint)
        return joint

    def join(
        self, handle: JointHandle, *, name: str = "writer", options: ProducerOptions | None = None
    ) -> JointWriter:
        """Return a writer of a joint transaction, to be entered; the client closes it.

        ``name`` is for operators: writers of one transaction may have the same.
        """
        writer = JointWriter(self._context, options or ProducerOptions(), handle, name)
        self._adopt(writer)
        return writer

    def consumer(
        self, group_id: str | None = None, options: ConsumerOptions | None = None
    ) -> Consumer:
        """Return a consumer, of a group or of none; the client closes it.

        Raises InvalidGroupIdError for an empty group id, TypeError for one that is no str.
        """
        consumer = Consumer(self._context, group_id, options)
        self._adopt(consumer)
        return consumer

    def read_range(
        self,
        log_range: LogRange,
        options: ConsumerOptions | None = None,
        *,
        with_outcomes: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> LogRangeReader:
        """Return what reads a part of one log. Of the options, those for groups have no meaning.

        ``with_outcomes``: each ``ColumnBatch`` tells whether its transaction is open, committed or
        aborted, for readers of uncommitted records. ``operator`` and ``reason``: a person looks at
        the records, and the audit has an entry of this range before the first record is answered.
        """
        return LogRangeReader(
            self._context,
            log_range,
            options or ConsumerOptions(),
            with_outcomes=with_outcomes,
            operator=Operator(name=operator, reason=reason) if operator or reason else None,
        )

    def transform(  # noqa: PLR0913 - all are named
        self,
        *,
        source: Collection[str],
        group: str,
        transactional_id: str,
        handler: Handler,
        on_poison: OnPoison | None = None,
        on_event: OnEvent | None = None,
        options: TransformOptions | None = None,
        consumer_options: ConsumerOptions | None = None,
        producer_options: ProducerOptions | None = None,
        handle_signals: bool = True,
    ) -> Transform:
        """Consume topics, produce the output of a handler, exactly once; await the result.

        See ``aiosemel._transform.transform.transform``.
        """
        return transform(
            self,
            source=source,
            group=group,
            transactional_id=transactional_id,
            handler=handler,
            on_poison=on_poison,
            on_event=on_event,
            options=options,
            consumer_options=consumer_options,
            producer_options=producer_options,
            handle_signals=handle_signals,
            random=self._context.random,
            tracer=self._tracer,
        )

    def with_database(self, database: Database[S]) -> DatabaseClient[S]:
        """Return the calls that commit together with the application's own database.

        ``database`` is one of the layers of ``aiosemel.database``. See docs/use/database.md.
        """
        return DatabaseClient(
            self._context,
            database,
            make_consumer=self.consumer,
            make_producer=self.transactional_producer,
            adopt=self._adopt,
        )

    def relay(
        self,
        outbox: Outbox,
        *,
        transactional_id: str,
        after_restore: AfterRestore = AfterRestore.STOP,
        options: RelayOptions | None = None,
        producer_options: ProducerOptions | None = None,
        handle_signals: bool = True,
    ) -> Relay:
        """Send the rows that the application writes into an outbox, exactly once; await it.

        Run it in one process, or in all: one relay at a time is in charge. The transactional id
        belongs to this outbox alone. It ends at signals as ``transform`` does.
        """
        return Relay(
            self._context,
            outbox,
            transactional_id=transactional_id,
            after_restore=after_restore,
            options=options or RelayOptions(),
            producer_options=producer_options or ProducerOptions(),
            handle_signals=handle_signals,
        )

    def admin(self) -> Admin:
        """Return the calls of administrators: create, list, describe, alter and delete."""
        return Admin(self._cluster)

    def _spawn(self, run: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        if self._group is None:
            run.close()
            raise ClosedError("the client is not open")
        with nullcontext() if self._tracer is None else outside():
            task = self._group.create_task(_logged(run, name), name=name)
        self._running.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._running.discard(task)
            run.close()  # It was never started if the task was cancelled first.

        task.add_done_callback(ended)
        return task

    def _adopt(self, made: Closable) -> None:
        """Close this too when the client is closed. Raises ClosedError while that happens."""
        self._cluster.home.check()
        if self._closing.under_way:  # No code would close it, and it would make no progress.
            raise ClosedError("the client is being closed")
        self._made[made] = None

    def _forget(self, made: Closable) -> None:
        self._made.pop(made, None)


async def _logged(run: Coroutine[None, None, None], name: str) -> None:
    """Keep an exception of one task from cancelling all others: they share a task group."""
    try:
        await run
    except Exception:  # noqa: BLE001 - a task of the client cannot raise to a caller
        _log.exception("unexpected end of the task %s", name)
