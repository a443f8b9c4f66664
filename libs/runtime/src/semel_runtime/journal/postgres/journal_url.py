"""Where a journal lies: the URL of a database, and a schema in it, without ever showing a password.

``postgresql://user:password@host:port/database``, with the options of libpq that asyncpg knows, and
two of Semel's: a service's schema is called by its name; with ``schema_prefix``, several clusters
can share a database; ``schema`` names a schema for this one service.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from semel_common.file_modes import OpenSecretError, check_secret_file
from semel_runtime.journal.journal_errors import JournalOpenError

SCHEMES = ("postgresql", "postgres")

_PREFIX = "schema_prefix"
_SCHEMA = "schema"
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SECRET_FILES = ("sslkey", "passfile")
_NAME_MAX = 63
"""PostgreSQL cuts longer names off."""


class Place(NamedTuple):
    """One journal's place. What is shown of it is `str(place)`."""

    dsn: str
    """For asyncpg. Never to be shown: it may have a password."""
    shown: str
    """The servers and the database."""
    user: str
    schema: str

    def __str__(self) -> str:
        return f"{self.shown}, schema {self.schema}"

    def __repr__(self) -> str:
        return f"<Place {self}>"


def place_of(url: str, *, service: str) -> Place:
    """Find the place of a service's journal. Raises JournalOpenError, without the URL in it."""
    parts = _split(url)
    # Such a URL is cut in the middle of a password that has a /, ? or # in it.
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        raise JournalOpenError(
            "The URL of the journal has an @ or # behind its host. If they are part of the password"
            " or the user's name, write them %-encoded there, and / and ? too (%40, %23, %2F, %3F)."
        )
    credentials, _, servers = parts.netloc.rpartition("@")
    database = parts.path.lstrip("/")
    if not servers or not database:
        raise JournalOpenError(
            "The URL of the journal has no host or no database. Write it as"
            " postgresql://user:password@host:port/database."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    _check_secrets(options)
    prefix, schema = options.pop(_PREFIX, ""), options.pop(_SCHEMA, "")
    named = re.sub("[^a-z0-9]+", "_", service.lower())
    return Place(
        dsn=parts._replace(scheme=SCHEMES[0], query=urlencode(options)).geturl(),
        shown=f"{servers}/{database}",
        user=credentials.partition(":")[0],
        schema=_checked(schema or (f"{prefix}_{named}" if prefix else named)),
    )


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # Python's own sentence quotes the URL.
        raise JournalOpenError(
            "The URL of the journal cannot be read: its host has a bracket too many or too few, or"
            " a character that no host has. Write it as"
            " postgresql://user:password@host:port/database."
        ) from None


def _check_secrets(options: Mapping[str, str]) -> None:
    """Refuse files with secrets in them that others may read; the driver tells of missing ones."""
    for option in _SECRET_FILES:
        try:
            if option in options:
                check_secret_file(f"{option} of the journal's URL,", Path(options[option]))
        except OpenSecretError as error:
            raise JournalOpenError(f"{error}.") from error
        except OSError:
            continue


def _checked(schema: str) -> str:
    if not _NAME.fullmatch(schema) or len(schema) > _NAME_MAX or schema.startswith("pg_"):
        raise JournalOpenError(
            f"{schema!r} cannot be the name of a schema. Give a {_PREFIX} in the journal's URL of"
            " lower-case letters, digits and underscores, which begins with a letter; the whole"
            f" name may have {_NAME_MAX} characters."
        )
    return schema
