"""A payment in a database of your own and its event in a topic: both, or neither.

    semel up                                             # in another terminal
    semel topics create payments
    python examples/two_phase_commit.py bank.db          # kill it at any point, and start it again
    semel consume payments --from-beginning

A payment changes two balances in the database and sends an event to the topic. At the end of the
block, the SDK prepares Semel's transaction, commits the database's with the name of the prepared
one, and completes Semel's. So the database's commit decides for both. A process that was killed
between these steps is settled by its next start, or by any other process of the application.

The database is SQLite, which Python brings with it. With PostgreSQL or MariaDB only the layer and
the statements change: docs/use/database.md has them all.
"""

import argparse
import asyncio
import json
import logging
import signal
import sqlite3
import sys
from collections.abc import Coroutine
from dataclasses import asdict, dataclass

from aiosemel import SemelClient
from aiosemel.database import create_tables
from aiosemel.database.sqlite import SqliteDatabase

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS payment (id TEXT PRIMARY KEY)",
)

log = logging.getLogger("bank")


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """One order to pay; the buyer gives its id."""

    id: str
    payer: str
    payee: str
    amount: int


ORDERS = (
    Payment(id="order-1", payer="alice", payee="bob", amount=20),
    Payment(id="order-2", payer="bob", payee="carol", amount=5),
)


async def run(file: str, bootstrap: str, topic: str) -> None:
    """Make every missing payment.

    Crash-only: any error ends the process, and the next one knows what to do.
    """
    database = SqliteDatabase(file)
    await create_tables(database)
    async with database.transaction() as transaction:
        for statement in SCHEMA:
            await transaction.execute(statement)
    async with (
        SemelClient(bootstrap) as client,
        # One transactional id for each instance of the application.
        client.with_database(database).producer("bank-1") as producer,
    ):
        for payment in ORDERS:
            async with producer.transaction() as (session, txn):
                if not book(session, payment):
                    continue
                log.info("%s: written to the database", payment.id)
                event = json.dumps(asdict(payment)).encode()
                await txn.send(topic, event, key=payment.payer.encode())
                log.info("%s: sent", payment.id)
            log.info("%s: committed in both", payment.id)


def book(session: sqlite3.Connection, payment: Payment) -> bool:
    """Change the balances, as a part of the transaction that is open; False: they are changed."""
    done = session.execute(
        "INSERT INTO payment VALUES (?) ON CONFLICT (id) DO NOTHING", (payment.id,)
    )
    if done.rowcount == 0:
        return False
    for name, change in ((payment.payer, -payment.amount), (payment.payee, payment.amount)):
        session.execute(
            "INSERT INTO account VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET balance = account.balance + excluded.balance",
            (name, change),
        )
    return True


async def until_signal(work: Coroutine[None, None, None]) -> int:
    """Do the work, or cancel it at a signal; returns the exit status.

    A cancelled payment is finished by the next start, as after a crash.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    try:
        await work
    except asyncio.CancelledError:
        if not received:
            raise
        log.info("stopped by %s", signal.Signals(received[0]).name)
        return 128 + received[0]
    return 0


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("database", help="file of the SQLite database")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    parser.add_argument("--topic", default="payments")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.INFO)
    sys.exit(asyncio.run(until_signal(run(options.database, options.bootstrap, options.topic))))


if __name__ == "__main__":
    main()
