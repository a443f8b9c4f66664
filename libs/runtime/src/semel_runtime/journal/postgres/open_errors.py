"""What to do about each thing that can be wrong with a journal on PostgreSQL, in a sentence.

None of them has a password in it, nor the URL.
"""

import ssl

import asyncpg
from asyncpg.exceptions import ClientConfigurationError, TargetServerAttributeNotMatched

from semel_runtime.journal.journal_errors import JournalError, JournalOpenError, JournalUnknownError
from semel_runtime.journal.postgres.journal_url import Place


def open_error(place: Place, error: BaseException) -> JournalError:
    """Return what to raise for an error at opening."""
    if isinstance(error, JournalOpenError):
        return error
    cause = error.__cause__
    if isinstance(error, JournalUnknownError) and isinstance(cause, asyncpg.PostgresError):
        return JournalOpenError(_sentence(place, error if _lost(cause) else cause))
    return JournalOpenError(_sentence(place, error))


def may_pass(error: BaseException) -> bool:
    """Whether an error at opening may be over soon, as when another server becomes the primary."""
    if isinstance(error, JournalUnknownError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(
        error,
        (
            OSError,
            TimeoutError,
            asyncpg.PostgresConnectionError,
            asyncpg.OperatorInterventionError,
            asyncpg.TooManyConnectionsError,
            asyncpg.ReadOnlySQLTransactionError,
            TargetServerAttributeNotMatched,
        ),
    )


def _lost(error: BaseException) -> bool:
    """Whether a connection has ended, rather than a statement failed."""
    return isinstance(error, asyncpg.PostgresConnectionError)


def _sentence(place: Place, error: BaseException) -> str:
    match error:
        case TargetServerAttributeNotMatched():
            return standby_sentence(place)
        case (
            ClientConfigurationError()
            | ValueError()
            | asyncpg.UndefinedObjectError()
            | asyncpg.InvalidParameterValueError()
            | asyncpg.CantChangeRuntimeParamError()
        ):
            return _option_sentence(place, error)
        case JournalUnknownError():
            return (
                f"PostgreSQL at {place} did not confirm a write: {error}. See that at least one"
                " of its synchronous standbys runs, and start again."
            )
        case OSError() if _is_about_tls(place, error):
            return (
                f"PostgreSQL at {place.shown} cannot be reached with TLS: {error}. Correct sslmode"
                " and the files of certificates in the journal's URL, or switch TLS on at the"
                " server."
            )
        case OSError() | TimeoutError() | asyncpg.PostgresConnectionError():
            why = str(error) or "no answer in time"
            return (
                f"PostgreSQL at {place.shown} cannot be reached: {why}. Correct host and port in"
                " the journal's URL, or start the server."
            )
        case _:
            return _answered(place, error)


def _answered(place: Place, error: BaseException) -> str:
    """Say what to do about an answer of the server."""
    match error:
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return (
                f"PostgreSQL at {place.shown} does not let the user {place.user!r} in: {error}. "
                "Correct the user and the password in the journal's URL, or the server's"
                " pg_hba.conf."
            )
        case asyncpg.InvalidCatalogNameError():
            return f"There is no database {place.shown}. Make it, or correct the journal's URL."
        case asyncpg.InsufficientPrivilegeError():
            return rights_sentence(place, error.args[0])
        case asyncpg.TooManyConnectionsError():
            return (
                f"PostgreSQL at {place.shown} takes no more connections: {error}. Raise its"
                " max_connections, or the limit of the user or the database: each instance holds up"
                " to six."
            )
        case asyncpg.CannotConnectNowError():
            return f"PostgreSQL at {place.shown} takes no connection now: {error}. Try again later."
        case asyncpg.ReadOnlySQLTransactionError():
            return (
                f"PostgreSQL at {place.shown} is read-only for the user {place.user!r}: {error}."
                " Switch default_transaction_read_only off for the user and the database, or give"
                " the address of the primary if this one is a standby."
            )
        case _:
            return f"{place} cannot be opened: {type(error).__name__}: {error}."


def _option_sentence(place: Place, error: BaseException) -> str:
    # What the driver says may have parts of the URL in it; the server has never seen that.
    why = f": {error}" if isinstance(error, asyncpg.PostgresError) else ""
    return (
        f"The URL of the journal at {place.shown} has an option that cannot be read{why}."
        " Correct what stands behind the question mark, and the port."
    )


def _is_about_tls(place: Place, error: OSError) -> bool:
    """Whether it is the certificates, or a server without TLS, that are in the way."""
    named_file = isinstance(error, FileNotFoundError | PermissionError) and "ssl" in place.dsn
    return isinstance(error, ssl.SSLError) or named_file or "SSL" in str(error)


def rights_sentence(place: Place, why: str) -> str:
    """Say what to do about missing rights."""
    return (
        f"The user {place.user!r} lacks a right in {place}: {why}. Grant it CONNECT and CREATE on"
        " the database, or make this user the owner of the schema and of all that is in it."
    )


def standby_sentence(place: Place) -> str:
    """Say what to do about a standby."""
    return (
        f"PostgreSQL at {place.shown} is a standby, which cannot be written. Give the address of"
        " the primary in the journal's URL, or promote this one if the primary is gone for good."
    )


def replication_sentence(place: Place, problem: str) -> str:
    """Say what to do about a server that would lose what it has confirmed."""
    return (
        f"PostgreSQL at {place.shown} does not replicate each commit: {problem}. Correct that, or"
        " set journal_replication to `wanted` if losing the server's disk may lose the journal."
    )


def newer_sentence(place: Place, version: int, known: int) -> str:
    """Say what to do about the schema of a newer release."""
    return (
        f"{place} has schema version {version}, this program knows {known}: it was written by a"
        " newer version of Semel. Start that version again, or a newer one."
    )


def incomplete_sentence(place: Place, what: str) -> str:
    """Say what to do about a schema without all its tables."""
    return (
        f"{place} is a journal of Semel, but {what}: the schema was changed, or a restore was not"
        " complete. Restore the whole database as it was at one time; nothing was changed."
    )


def foreign_sentence(place: Place) -> str:
    """Say what to do about a schema with something else in it."""
    return (
        f"{place} is there already, but is not a journal of Semel. Give another schema_prefix in"
        " the journal's URL, or remove that schema."
    )


def service_sentence(place: Place, stored: str, given: str) -> str:
    """Say what to do about the journal of another service."""
    return (
        f"{place} belongs to the service {stored!r}, not {given!r}. "
        "Give each service a schema of its own, by a schema_prefix in the journal's URL."
    )


def cluster_sentence(place: Place, stored: str, given: str) -> str:
    """Say what to do about the journal of another cluster."""
    return (
        f"{place} belongs to the cluster {stored!r}, not {given!r}. Start it with that cluster's"
        " addresses, or give each cluster a database or a schema_prefix of its own."
    )
