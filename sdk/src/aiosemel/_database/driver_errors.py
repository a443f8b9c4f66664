"""Which errors of a database's driver pass by themselves, so that the transaction is repeated.

Drivers have no common class for them. They do have the database's own codes: SQLSTATE, the result
codes of SQLite, the numbers of MySQL.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from aiosemel._shared.error_causes import causes
from aiosemel._transform.failures import HandlerError
from aiosemel.errors import DatabaseUnavailableError, SemelError

_SQLSTATE_CLASSES = frozenset({"08", "40", "53", "57", "58"})
"""Connection, rollback for serialization, resources, operator intervention, system."""
_SQLSTATES = frozenset({"55P03", "25P03", "25006"})
"""Lock not available, session idle for too long, read-only: a standby that will be the primary."""
_SQLITE_CODES = frozenset({"BUSY", "LOCKED", "FULL", "IOERR", "CANTOPEN", "PROTOCOL", "INTERRUPT"})
_MYSQL_NUMBERS = frozenset(
    {
        *(1040, 1203, 1226),  # too many connections: of all, of a user, in an hour
        *(1020, 1205, 1213),  # changed since it was read, lock time-out, deadlock
        *(1021, 1114, 1180),  # full disk, full table, error during commit
        *(1053, 1317, 1927, 1969, 3024),  # shut-down, killed, time-out of a statement
        *(1290, 1792, 1836),  # read-only: a standby that will be the primary
        *(1158, 1159, 1160, 1161, 2002, 2003, 2006, 2013, 2055, 4031),  # lost connection
    }
)
_NO_SAVEPOINT_STATES = frozenset({"3B001", "25P01"})
"""Of PostgreSQL: no savepoint of the name, and no transaction."""
_NO_SAVEPOINT_NUMBER = 1305
"""Of MySQL."""
_SQLALCHEMY_ENDED = frozenset(
    {"InvalidRequestError", "ResourceClosedError", "PendingRollbackError"}
)
_MYSQL_CLOSED_NUMBER = 0
"""Of drivers of MySQL, in an InterfaceError with any text, or none: the connection is closed."""
_MYSQL_CLASSES = frozenset({"OperationalError", "InternalError"})


def is_passing(error: BaseException) -> bool:
    """Whether a repetition may succeed. An error of the SDK is not the database's."""
    if isinstance(error, SemelError):
        return isinstance(error, DatabaseUnavailableError)
    return any(
        _has_passing_code(each) or isinstance(each, OSError) for each in _with_originals(error)
    )


def is_missing_savepoint(error: BaseException) -> bool:
    """Whether a savepoint is gone, or SQLAlchemy says so of its transaction."""
    return any(
        getattr(each, "sqlstate", None) in _NO_SAVEPOINT_STATES
        or (each.args[:1] == (_NO_SAVEPOINT_NUMBER,) and type(each).__name__ in _MYSQL_CLASSES)
        or "no such savepoint" in str(each)
        or type(each).__name__ in _SQLALCHEMY_ENDED
        for each in _with_originals(error)
    )


def explain_handler_error(error: Exception) -> Exception:
    """Return what an exception of a handler that uses the database stands for.

    An OSError of a handler may come from anything that it does: it stands for itself.
    """
    if any(map(_has_passing_code, _with_originals(error))):
        return unavailable(error)
    return HandlerError()


def unavailable(error: Exception) -> DatabaseUnavailableError:
    """Return the error that one that passes, its cause, stands for."""
    return DatabaseUnavailableError(f"the database did not take the transaction: {error!r}")


@contextmanager
def passing_errors() -> Iterator[None]:
    """Raise DatabaseUnavailableError for an error of the driver that passes."""
    try:
        yield
    except SemelError:
        raise
    except Exception as error:
        if is_passing(error):
            raise unavailable(error) from error
        raise


def _with_originals(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors that SQLAlchemy keeps in ``orig``."""
    for each in causes(error):
        yield each
        original = getattr(each, "orig", None)
        if isinstance(original, BaseException):
            yield original


def _has_passing_code(error: BaseException) -> bool:
    number = error.args[0] if error.args else None
    if number in _MYSQL_NUMBERS and type(error).__name__ in _MYSQL_CLASSES:
        return True
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str) and state != "HY000":
        return state[:2] in _SQLSTATE_CLASSES or state in _SQLSTATES
    result = getattr(error, "sqlite_errorname", None)
    if isinstance(result, str):
        return result.split("_")[1] in _SQLITE_CODES
    return _is_lost_connection(error)


def _is_lost_connection(error: BaseException) -> bool:
    """Whether a driver's own error, not one that wraps another, says so without a code."""
    if error.__cause__ is not None or hasattr(error, "orig"):
        return False
    text = str(error).lower()
    match type(error).__name__:
        case "OperationalError":
            return not isinstance(error.args[0] if error.args else None, int)  # MySQL's numbers
        case "PoolTimeout":
            return True
        case "TimeoutError":
            return type(error).__module__.startswith("sqlalchemy.")  # of its pool
        case "InterfaceError":  # asyncpg's pool takes a lost connection back, as if it was released
            is_gone = "closed" in text or "released" in text
            return ("connection" in text and is_gone) or error.args[:1] == (_MYSQL_CLOSED_NUMBER,)
        case _:
            return False
