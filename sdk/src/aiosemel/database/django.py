"""The database of a Django project."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import ParamSpec, Protocol, TypeVar

from asgiref.sync import ThreadSensitiveContext
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.placeholders import formatted
from aiosemel.database.threads import run_to_end
from aiosemel.database.turns import Turns

P = ParamSpec("P")
T = TypeVar("T")


class DjangoDatabase:
    """A database of Django's settings, by its alias. Implements ``Database``.

    ::

        database = DjangoDatabase()

        @database.handler
        def book(records, connection):
            Payment.objects.bulk_create(payment_of(record) for record in records)

    Django's transactions belong to a thread. This object has one, in which its transactions run one
    after another, and functions that ``handler`` has wrapped. They get Django's connection, and may
    use the ORM as ever. A handler that is a coroutine function runs in the event loop: there, the
    asynchronous calls of the ORM, such as ``acreate``, and ``sync_to_async`` use the open
    transaction.

    Before each transaction, a connection is closed as Django closes one at the start of a request:
    if it has failed, or as ``CONN_MAX_AGE`` and ``CONN_HEALTH_CHECKS`` say.
    """

    def __init__(self, alias: str = "default") -> None:
        self._alias = alias
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="semel-django")
        self._turns = Turns()
        self._dialect = Dialect(connections[alias].vendor)

    @property
    def dialect(self) -> Dialect:
        """The SQL of this database."""
        return self._dialect

    def handler(self, function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
        """Return a handler that runs a function in the thread of the open transaction.

        Raises TypeError for a coroutine function: that is a handler already.
        """
        if iscoroutinefunction(function):
            raise TypeError(
                f"{function.__name__} is a coroutine function, which needs no database.handler:"
                " give it to the call as it is, or make it a plain function"
            )

        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            return await self._call(lambda: function(*args, **kwargs))

        return run

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Django"]:
        """Open a transaction; commits at the end of the block, rolls back at an exception."""
        async with self._turns.take(), ThreadSensitiveContext(executor=self._thread):
            block = ExitStack()
            try:
                await self._call(lambda: self._begin(block))
                yield _Django(await self._call(lambda: connections[self._alias]), self._call)
            except BaseException as error:
                failed = error
                await self._call(lambda: block.__exit__(type(failed), failed, None))
                raise
            await self._call(block.close)

    def _begin(self, block: ExitStack) -> None:
        connections[self._alias].close_if_unusable_or_obsolete()
        block.enter_context(transaction.atomic(using=self._alias))

    def joined(self, session: object) -> "_Django":
        """Return the transaction that is open in a connection of Django, in the calling thread."""
        if not isinstance(session, BaseDatabaseWrapper):
            raise TypeError(f"{session!r} is no connection of Django")
        return _Django(session, _at_once)

    async def _call(self, function: Callable[[], T]) -> T:
        return await run_to_end(function, executor=self._thread)


class Call(Protocol):
    """Runs a function in the thread of the open transaction."""

    async def __call__(self, function: Callable[[], T]) -> T:
        """Return its result."""
        ...


async def _at_once(function: Callable[[], T]) -> T:
    return function()


class _Django:
    """A transaction of Django. Implements ``DatabaseSession``."""

    def __init__(self, session: BaseDatabaseWrapper, call: Call) -> None:
        self.session = session
        self._call = call

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        def run() -> int:
            with self.session.cursor() as cursor:
                cursor.execute(formatted(statement), [*parameters])
                return int(cursor.rowcount)

        return await self._call(run)

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        def run() -> Sequence[Row]:
            with self.session.cursor() as cursor:
                cursor.execute(formatted(statement), [*parameters])
                return [*cursor.fetchall()]

        return await self._call(run)
