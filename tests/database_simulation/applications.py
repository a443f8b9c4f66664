"""The applications: from a topic, and from their own writes; each in many lives.

The ledger has the knowledge of their users, and outlives them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random

from simulation.recorded import RecordedClient
from simulation.workloads import Around

from aiosemel import (
    AfterRestore,
    ApplicationRecoverableError,
    ConsumerOptions,
    ConsumerRecord,
    DatabaseBehindError,
    DatabaseUnavailableError,
    OffsetReset,
    Outputs,
    ProducerOptions,
    RelayOptions,
    RetriableError,
    SemelClient,
    TransactionAbortedError,
    TransformOptions,
)
from aiosemel.database import Outbox
from database_simulation.layer import Session, SimulatedDatabase
from database_simulation.machine import DatabaseError, Machine
from semel_runtime.testing.virtual_time import after

PARTITIONS = 2
IN, OUT, BLOCKS, EVENTS = "in", "out", "blocks", "events"
TOPICS = {IN: PARTITIONS, OUT: PARTITIONS, BLOCKS: 1, EVENTS: PARTITIONS}
STORE, TRANSFORM, OUTBOX, BLOCK = "store", "transform", "outbox", "block"
TABLE = "CREATE TABLE paid (application TEXT, name TEXT)"
PAY = "INSERT INTO paid (application, name) VALUES (?, ?)"
_DAWDLE_SHARE = 0.1
_PRODUCER = ProducerOptions(request_timeout_ms=1_000, delivery_timeout_ms=4_000, max_block_ms=4_000)


@dataclass(slots=True)
class Ledger:
    """The knowledge outside of all processes."""

    machine: Machine
    around: Around
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    told: dict[str, dict[str, bool]] = field(default_factory=lambda: {BLOCK: {}, OUTBOX: {}})
    """Of own writes: whether the caller was told that they are committed, or that they are not."""
    policy: AfterRestore = AfterRestore.REPROCESS
    """The operator's choice where an application stops after a restore."""
    refusals: dict[str, int] = field(default_factory=dict)
    """How often each application has stopped."""

    @property
    def database(self) -> SimulatedDatabase:
        """The database, for one life."""
        return SimulatedDatabase(self.machine)

    async def dawdle(self, random: Random) -> None:
        """Now and then, take a while."""
        if random.random() < _DAWDLE_SHARE and not self.around.calm:
            await after(random.uniform(0, 3_000))


class Stopping:
    """How an application goes on after it has refused to."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self._name = name
        self._ledger = ledger
        self._next = AfterRestore.STOP

    def take(self) -> AfterRestore:
        """Return the argument of this life; the next life has none."""
        taken, self._next = self._next, AfterRestore.STOP
        return taken

    def refused(self) -> None:
        """Let the operator decide."""
        refusals = self._ledger.refusals
        refusals[self._name] = refusals.get(self._name, 0) + 1
        self._next = self._ledger.policy


class Feeder:
    """Sends inputs; each record that is stored is an input of its own."""

    def __init__(self, quota: int, ledger: Ledger) -> None:
        self.left = quota
        self._ledger = ledger

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self.left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Send a few at a time."""
        async with client.client.producer(_PRODUCER) as producer:
            while not self.done:
                for _ in range(random.randint(1, 5)):
                    value = b"%d" % next(self._ledger.numbers)
                    await producer.send(IN, value, partition=random.randrange(PARTITIONS))
                await producer.flush()
                self.left -= 1
                await after(random.uniform(0, 800))


class Consuming:
    """One instance of an application that consumes into the database, and perhaps sends, too."""

    def __init__(self, application: str, number: int, ledger: Ledger) -> None:
        self._application = application
        self._number = number
        self._ledger = ledger
        self._stopping = Stopping(application, ledger)
        self._random = Random(0)
        self.done = False

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Consume until killed, or until the database was restored."""
        self._random = random
        try:
            if self._application == STORE:
                await self._store(client.client)
            else:
                await self._transform(client.client)
        except DatabaseBehindError:
            self._stopping.refused()

    async def _store(self, client: SemelClient) -> None:
        await client.with_database(self._ledger.database).store(
            source=[IN],
            group=STORE,
            handler=self._book,
            after_restore=self._stopping.take(),
            options=self._options(),
            consumer_options=self._consumer(),
            handle_signals=False,
        )

    async def _transform(self, client: SemelClient) -> None:
        await client.with_database(self._ledger.database).transform(
            source=[IN],
            group=TRANSFORM,
            transactional_id=f"{TRANSFORM}-{self._number}",
            handler=self._pay,
            after_restore=self._stopping.take(),
            options=self._options(),
            consumer_options=self._consumer(),
            producer_options=_PRODUCER,
            handle_signals=False,
        )

    async def _book(self, records: Sequence[ConsumerRecord], session: Session) -> None:
        self._ledger.around.transactions += 1
        for record in records:
            place = f"{record.partition}/{record.offset}"
            await session.execute(PAY, (self._application, place))
        await self._ledger.dawdle(self._random)

    async def _pay(
        self, records: Sequence[ConsumerRecord], session: Session, outputs: Outputs
    ) -> None:
        for record in records:
            place = f"{record.partition}/{record.offset}"
            await outputs.send(OUT, place.encode(), partition=record.partition)
        await self._book(records, session)

    def _options(self) -> TransformOptions:
        return TransformOptions(
            max_records=self._random.choice((1, 3, 20)),
            poll_timeout_ms=1_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=500,
            take_over_when_fenced=True,
        )

    def _consumer(self) -> ConsumerOptions:
        return ConsumerOptions(
            auto_offset_reset=OffsetReset.EARLIEST,
            fetch_max_wait_ms=1_000,
            max_poll_interval_ms=15_000,
            group_instance_id=f"{self._application}-{self._number}",
        )


class Blocks:
    """Own writes in blocks: the caller is told whether both sides have them."""

    def __init__(self, number: int, quota: int, ledger: Ledger) -> None:
        self._id = f"{BLOCK}-{number}"
        self.left = quota
        self._ledger = ledger

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self.left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Write, one transaction after the other."""
        joint = client.client.with_database(self._ledger.database)
        with suppress(DatabaseUnavailableError, RetriableError):
            async with joint.producer(self._id, _PRODUCER) as producer:
                while not self.done:
                    name = f"{self._id}/{next(self._ledger.numbers)}"
                    self._ledger.around.transactions += 1
                    told = self._ledger.told[BLOCK]
                    try:
                        async with producer.transaction() as (session, txn):
                            await session.execute(PAY, (BLOCK, name))
                            await txn.send(BLOCKS, name.encode(), partition=0)
                            await self._ledger.dawdle(random)
                    except (TransactionAbortedError, ApplicationRecoverableError) as error:
                        told[name] = False
                        if isinstance(error.__cause__ or error, ApplicationRecoverableError):
                            return
                    except (RetriableError, DatabaseError):
                        told[name] = False
                        await after(50)
                    else:
                        told[name] = True
                        self.left -= 1
                    await after(random.uniform(0, 400))


class Requests:
    """Own writes into an outbox, some of them in transactions that commit late."""

    def __init__(self, number: int, quota: int, ledger: Ledger) -> None:
        self._key = f"{OUTBOX}-{number}"
        self.left = quota
        self._ledger = ledger

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self.left <= 0

    async def run(self, _: RecordedClient, random: Random) -> None:
        """Write, one transaction after the other."""
        outbox = Outbox(self._ledger.database)
        while not self.done:
            name = f"{self._key}/{next(self._ledger.numbers)}"
            with suppress(DatabaseError):
                async with outbox.database.transaction() as transaction:
                    await transaction.execute(PAY, (OUTBOX, name))
                    session = transaction.session
                    await outbox.send(session, EVENTS, name.encode(), key=self._key.encode())
                    await self._ledger.dawdle(random)
                self._ledger.told[OUTBOX][name] = True
                self.left -= 1
            await after(random.uniform(0, 300))


class Relaying:
    """One relay of the outbox."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stopping = Stopping(OUTBOX, ledger)
        self.done = False

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Relay until killed, or until the database was restored."""
        try:
            await client.client.relay(
                Outbox(self._ledger.database),
                transactional_id=OUTBOX,
                after_restore=self._stopping.take(),
                options=RelayOptions(
                    max_records=random.choice((1, 3, 20)),
                    poll_interval_ms=200,
                    lease_ms=2_000,
                    retry_backoff_ms=20,
                    retry_backoff_max_ms=500,
                ),
                producer_options=_PRODUCER,
                handle_signals=False,
            )
        except DatabaseBehindError:
            self._stopping.refused()
