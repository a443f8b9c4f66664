"""`semel transactions resolve`: end what an application left prepared, as its database says."""

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import CommandError, UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.output import Format, FormatOption, Table, examples, note, show

if TYPE_CHECKING:
    from aiosemel import PreparedTransactionId, SemelClient
    from aiosemel.database import Database

EXAMPLES = examples(
    "semel transactions resolve --database postgresql://app@db.example.com/shop",
    "semel transactions resolve --database mysql://app@db.example.com/shop",
    "semel transactions resolve --database sqlite:///var/lib/shop/shop.db",
)
_DRIVER = re.compile(r"^(\w+)\+\w+://")
_SQLITE = "sqlite:///"
_POSTGRESQL = ("postgresql://", "postgres://")
_MYSQL = ("mysql://", "mariadb://")


def resolve(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The application's database: postgresql://…, mysql://… or sqlite:///FILE.",
            show_default=False,
        ),
    ],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Complete transactions that an application left prepared, as its database has decided.

    For an application that does not come back: while one process of it runs, that process does it.
    A transaction that the database has not decided aborts. Transactions of other applications stay
    as they are: the database knows which transactional ids are its own.
    """
    found = opened(database)

    async def work(client: "SemelClient") -> "dict[PreparedTransactionId, bool]":
        async with found as own:
            return await client.with_database(own).resolve_prepared()

    resolved = with_client(bootstrap, work, changes=True)
    rows = [
        {
            "transactional_id": prepared.transactional_id,
            "producer_epoch": prepared.producer_epoch,
            "outcome": "COMMITTED" if commit else "ABORTED",
        }
        for prepared, commit in resolved.items()
    ]
    table = [tuple(row.values()) for row in rows]
    show(output_format, rows, Table(headings=("Transactional id", "Epoch", "Outcome"), rows=table))
    if not rows:
        note("No transaction of this database is prepared.")


def opened(url: str) -> "AbstractAsyncContextManager[Database[object]]":
    """Return the database of a URL, for ``async with``. Raises UsageError and CommandError.

    A driver, as SQLAlchemy's URLs name one behind a ``+``, says nothing here.
    """
    url = _DRIVER.sub(r"\1://", url)
    if url.startswith(_SQLITE):
        file = Path(f"/{url.removeprefix(_SQLITE)}")
        if not file.is_file():
            raise CommandError(f"{file} is not there, so it has decided nothing")
        return _sqlite(file)
    if url.startswith(_POSTGRESQL):
        return _postgresql(url)
    if url.startswith(_MYSQL):
        return _mysql(url.partition("://")[2])
    scheme = url.partition("://")[0]
    raise UsageError(
        f"--database is of kind {scheme!r}: give postgresql://…, mysql://… or sqlite:///FILE"
    )


@asynccontextmanager
async def _sqlite(file: Path) -> "AsyncIterator[Database[object]]":
    from aiosemel.database.sqlite import SqliteDatabase

    yield SqliteDatabase(file)


@asynccontextmanager
async def _postgresql(url: str) -> "AsyncIterator[Database[object]]":
    try:
        import asyncpg

        from aiosemel.database.asyncpg import AsyncpgDatabase
    except ImportError as error:
        raise CommandError("a PostgreSQL needs asyncpg: pip install 'aiosemel[asyncpg]'") from error
    try:
        pool = await asyncpg.create_pool(url, min_size=1, max_size=2)
    except (OSError, ValueError, asyncpg.PostgresError) as error:
        raise CommandError(f"the database does not answer: {error}") from error
    async with pool:
        yield AsyncpgDatabase(pool)


@asynccontextmanager
async def _mysql(address: str) -> "AsyncIterator[Database[object]]":
    drivers = [name for name in ("asyncmy", "aiomysql") if find_spec(name)]
    if not drivers or find_spec("sqlalchemy") is None:
        raise CommandError(
            "a MariaDB or MySQL needs SQLAlchemy: pip install 'aiosemel[sqlalchemy]' asyncmy"
        )
    from sqlalchemy.exc import ArgumentError
    from sqlalchemy.ext.asyncio import create_async_engine

    from aiosemel.database.sqlalchemy import SqlAlchemyDatabase

    try:
        engine = create_async_engine(f"mysql+{drivers[0]}://{address}")
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"--database is no address of a database: {error}") from error
    try:
        yield SqlAlchemyDatabase(engine)
    finally:
        await engine.dispose()
