"""Two-phase commit between Semel and a database of your own: both keep a payment, or neither does.

    semel up                                             # in another terminal
    semel topics create payments
    python examples/two_phase_commit.py bank.db          # kill it at any point, and start it again
    semel consume payments --from-beginning

A payment is a change of two balances in the database and an event in the topic. Four steps:

1. Send the event, in a Semel transaction.
2. Prepare that transaction. Semel promises that it can be committed, whenever that is asked for,
   and answers its name.
3. Change the balances and store the name, in *one* transaction of the database. Its commit is the
   moment that decides: there is no other.
4. Tell Semel to commit.

A process that starts again finds the transactions that stopped between 2 and 4: Semel tells the
names of the prepared transactions, and the database tells whether it has the name. If it has not,
the name is stored as aborted before Semel is told so: should the process that prepared it live
after all, a unique key keeps it from committing in the database a transaction that is aborted in
Semel. So rows of `semel_transaction` may be deleted only once no such process can be left, say
after a day.

The database is SQLite, which Python brings with it. With PostgreSQL it is the same, statement by
statement, except for a driver's placeholders. A call that waits for a network belongs into an
asyncio driver; those of SQLite are short enough to be made here.
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

from aiosemel import PreparedTransactionId, SemelClient, TransactionalProducer

SCHEMA = """
    CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS payment (id TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS semel_transaction (name TEXT PRIMARY KEY, outcome TEXT NOT NULL);
"""
COMMITTED, ABORTED = "committed", "aborted"

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


async def run(database: sqlite3.Connection, bootstrap: str, topic: str) -> None:
    """Finish the prepared payments, then make every missing payment.

    Crash-only: whatever goes wrong ends the process, and the next one knows what to do.
    """
    database.executescript(SCHEMA)
    async with SemelClient(bootstrap) as client:
        # One transactional id for each instance of the application.
        producer = client.transactional_producer("bank-1")
        await recover(producer, database)
        for payment in ORDERS:
            if not is_made(database, payment):
                await pay(producer, database, payment, topic)


async def recover(producer: TransactionalProducer, database: sqlite3.Connection) -> None:
    """Complete each transaction that was left prepared, as the database says."""
    for prepared in await producer.init_transactions(keep_prepared=True):
        outcome = outcome_of(database, prepared)
        log.info("%s was left prepared, for the database it is %s", prepared, outcome)
        await producer.complete_prepared(prepared, commit=outcome == COMMITTED)
        log.info("%s is %s", prepared, outcome)


def outcome_of(database: sqlite3.Connection, prepared: PreparedTransactionId) -> str:
    """Return what the database has decided; if nothing, decide that it is aborted."""
    with database:
        database.execute(
            "INSERT INTO semel_transaction VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
            (str(prepared), ABORTED),
        )
        (outcome,) = database.execute(
            "SELECT outcome FROM semel_transaction WHERE name = ?", (str(prepared),)
        ).fetchone()
    return str(outcome)


async def pay(
    producer: TransactionalProducer, database: sqlite3.Connection, payment: Payment, topic: str
) -> None:
    """Make one payment, in both systems."""
    await producer.begin_transaction()
    event = json.dumps(asdict(payment)).encode()
    await producer.send(topic, event, key=payment.payer.encode())
    log.info("%s: sent", payment.id)

    prepared = await producer.prepare()
    log.info("%s: prepared as %s", payment.id, prepared)

    with database:  # one transaction: commits at the end of the block, rolls back at an exception
        # A successor that has taken over has stored this name already: then this raises.
        database.execute("INSERT INTO semel_transaction VALUES (?, ?)", (str(prepared), COMMITTED))
        book(database, payment)
        log.info("%s: written to the database", payment.id)
    log.info("%s: committed in the database", payment.id)

    await producer.complete_prepared(prepared, commit=True)
    log.info("%s: committed in Semel", payment.id)


def book(database: sqlite3.Connection, payment: Payment) -> None:
    """Change the balances, as a part of the transaction that is open."""
    database.execute("INSERT INTO payment VALUES (?)", (payment.id,))
    for name, change in ((payment.payer, -payment.amount), (payment.payee, payment.amount)):
        database.execute(
            "INSERT INTO account VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET balance = account.balance + excluded.balance",
            (name, change),
        )


def is_made(database: sqlite3.Connection, payment: Payment) -> bool:
    """Whether a payment is booked."""
    found = database.execute("SELECT 1 FROM payment WHERE id = ?", (payment.id,))
    return found.fetchone() is not None


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
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    database = sqlite3.connect(options.database, isolation_level="IMMEDIATE")
    try:
        sys.exit(asyncio.run(until_signal(run(database, options.bootstrap, options.topic))))
    finally:
        database.close()


if __name__ == "__main__":
    main()
