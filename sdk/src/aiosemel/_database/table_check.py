"""Whether the database has transactions, and Semel's tables with their columns and the rights."""

from collections.abc import Iterable

from aiosemel._database.driver_errors import is_passing
from aiosemel.database.contract import Database
from aiosemel.database.tables import SemelTable
from aiosemel.errors import (
    DatabaseTablesError,
    DatabaseUnavailableError,
    InvalidConfigError,
    SemelError,
)


async def check_tables(database: Database[object], tables: Iterable[SemelTable]) -> None:
    """Try a transaction, and each kind of statement on no rows.

    Raises InvalidConfigError if there are no transactions, DatabaseTablesError, which names the
    table, and DatabaseUnavailableError.
    """
    await _check_transactions(database)
    for table in tables:
        for statement in _statements(table):
            await _try(database, table, statement)


async def _check_transactions(database: Database[object]) -> None:
    """Try a savepoint, which a connection that commits each statement by itself loses."""
    try:
        async with database.transaction() as transaction:
            await transaction.execute("SAVEPOINT semel_check")
            await transaction.execute("RELEASE SAVEPOINT semel_check")
    except SemelError:
        raise
    except Exception as error:
        if is_passing(error):
            raise DatabaseUnavailableError(f"the database does not answer: {error}") from error
        raise InvalidConfigError(
            f"the database does not take a transaction: {error}. The pool must be open, and its"
            " connections must not commit each statement by themselves (autocommit)"
        ) from error


def _statements(table: SemelTable) -> Iterable[str]:
    columns = ", ".join(column.name for column in table.columns)
    last = table.columns[-1].name
    nothing = f"FROM {table.name} WHERE 1 = 0"
    yield f"SELECT {columns} {nothing}"
    yield f"INSERT INTO {table.name} ({columns}) SELECT {columns} {nothing}"
    yield f"UPDATE {table.name} SET {last} = {last} WHERE 1 = 0"  # noqa: S608 - our own names
    yield f"DELETE {nothing}"


async def _try(database: Database[object], table: SemelTable, statement: str) -> None:
    """Each has a transaction of its own: in PostgreSQL, an error spoils all that follows."""
    try:
        async with database.transaction() as transaction:
            await transaction.execute(statement)
    except Exception as error:
        if is_passing(error):
            raise DatabaseUnavailableError(f"the database does not answer: {error}") from error
        verb = statement.partition(" ")[0]
        raise DatabaseTablesError(
            f"the table {table.name} cannot be used ({verb}): {error}. Create the tables with:"
            f" python -m aiosemel.database sql --dialect {database.dialect}; the application needs"
            " SELECT, INSERT, UPDATE and DELETE on them"
        ) from error
