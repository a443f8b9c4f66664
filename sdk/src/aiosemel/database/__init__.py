"""The application's own database, in one decision with Semel.

Each layer is a module of its own, so that only a program that uses a driver needs it installed:

* ``aiosemel.database.sqlite`` (``sqlite3``, no extra) and ``aiosemel.database.aiosqlite``
* ``aiosemel.database.asyncpg`` (``pip install 'aiosemel[asyncpg]'``)
* ``aiosemel.database.psycopg`` (``pip install 'aiosemel[psycopg]'``)
* ``aiosemel.database.sqlalchemy`` (``pip install 'aiosemel[sqlalchemy]'``)
* ``aiosemel.database.django`` (``pip install 'aiosemel[django]'``)

``Database`` and ``DatabaseSession`` are what a further layer implements. docs/use/database.md shows
which way of use fits which program.
"""

from aiosemel.database.contract import Database, DatabaseSession, Dialect, Row, Value
from aiosemel.database.outbox import Cursor, Outbox
from aiosemel.database.tables import create_tables, tables_sql

__all__ = [
    "Cursor",
    "Database",
    "DatabaseSession",
    "Dialect",
    "Outbox",
    "Row",
    "Value",
    "create_tables",
    "tables_sql",
]
