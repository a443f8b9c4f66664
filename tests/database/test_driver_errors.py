"""Which errors of drivers stand for a moment, and which for a fault of the application."""

import sqlite3
from contextlib import closing
from pathlib import Path

import aiosqlite
import asyncpg
import psycopg
import psycopg_pool
import pymysql
import pytest
import sqlalchemy.exc

from aiosemel._database.driver_errors import explain_handler_error, is_passing
from aiosemel._transform.failures import HandlerError
from aiosemel.errors import DatabaseUnavailableError


def wrapped(error: Exception) -> Exception:
    """Wrap an error of a driver as SQLAlchemy does."""
    return sqlalchemy.exc.DBAPIError("SELECT 1", {}, error)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.SerializationError("could not serialize access"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InterfaceError(
            "cannot call Connection.execute(): connection has been released back to the pool"
        ),
        psycopg.errors.DeadlockDetected("deadlock"),
        psycopg.OperationalError("the connection is lost"),
        psycopg_pool.PoolTimeout("couldn't get a connection after 30.00 sec"),
        pymysql.OperationalError(1213, "Deadlock found when trying to get lock"),
        pymysql.OperationalError(1020, "Record has changed since last read"),
        pymysql.OperationalError(1927, "Connection was killed"),
        pymysql.OperationalError(2013, "Lost connection to MySQL server during query"),
        pymysql.InternalError(1180, "Got error during COMMIT"),
        pymysql.InterfaceError(0, "Not connected"),
        pymysql.InterfaceError(0, ""),
        sqlalchemy.exc.TimeoutError("QueuePool limit of size 5 overflow 10 reached"),
    ],
)
def test_an_error_of_a_moment_passes(error: Exception) -> None:
    assert is_passing(error)
    assert is_passing(wrapped(error))
    assert isinstance(explain_handler_error(wrapped(error)), DatabaseUnavailableError)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError("duplicate key"),
        asyncpg.InterfaceError("the server expects 1 argument for this query, 0 were passed"),
        psycopg.errors.InvalidCatalogName("database does not exist"),
        pymysql.OperationalError(1054, "Unknown column"),
        pymysql.OperationalError(1305, "SAVEPOINT semel_handler does not exist"),
        pymysql.IntegrityError(1062, "Duplicate entry"),
        aiosqlite.IntegrityError("UNIQUE constraint failed"),
        KeyError(1213),
        ValueError(2013),
    ],
)
def test_an_error_of_the_application_does_not_pass(error: Exception) -> None:
    assert not is_passing(error)
    assert not is_passing(wrapped(error))
    assert isinstance(explain_handler_error(wrapped(error)), HandlerError)


def test_a_time_out_of_the_handler_s_own_is_not_the_database_s() -> None:
    assert isinstance(explain_handler_error(TimeoutError("of an HTTP call")), HandlerError)


def test_a_full_database_passes(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "full.db")) as connection:
        connection.execute("CREATE TABLE payment (text TEXT)")
        connection.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError, match="is full") as raised:
            connection.execute("INSERT INTO payment VALUES (?)", ("a" * 10_000,))
    assert is_passing(raised.value)
