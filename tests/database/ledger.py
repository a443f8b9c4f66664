"""An application with a ledger: each record is a payment, which has a receipt in a topic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from committed_records import decided_records, visible_records

from aiosemel import (
    ConsumerRecord,
    DatabaseClient,
    Outputs,
    SemelClient,
    Transform,
    TransformEvent,
    TransformOptions,
)
from database.layers import Layer

OPTIONS = TransformOptions(
    max_records=4, poll_timeout_ms=50, retry_backoff_ms=5, retry_backoff_max_ms=20
)
Records = Sequence[ConsumerRecord]


@dataclass
class Ledger:
    """The application, its topic, and a topic of receipts."""

    layer: Layer
    client: SemelClient
    topic: str
    group: str
    events: list[TransformEvent] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    """What the next calls of a handler raise, after they have written."""
    reader: Layer | None = None
    """What reads the payments, if the layer itself is in trouble."""

    @property
    def receipts(self) -> str:
        """The topic of receipts."""
        return f"{self.topic}-receipts"

    @property
    def database(self) -> DatabaseClient[object]:
        """The client with the database of the layer."""
        return self.client.with_database(self.layer.database)

    async def note(self, event: TransformEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    async def send(self, *numbers: int) -> None:
        """Send inputs."""
        async with self.client.producer() as producer:
            for number in numbers:
                await producer.send(self.topic, b"%d" % number, key=b"%d" % (number % 5))
            await producer.flush()

    async def book(self, records: Records, session: object) -> None:
        """Write payments."""
        numbers = [int(record.value or b"") for record in records]
        for number in numbers:
            await self.layer.pay(session, f"order-{number}", number)
        if self.faults:
            raise self.faults.pop()
        self.batches.append(numbers)

    async def pay(self, records: Records, session: object, outputs: Outputs) -> None:
        """Write payments, and send receipts."""
        for record in records:
            await outputs.send(self.receipts, record.value)
        await self.book(records, session)

    async def has(self, *numbers: int) -> bool:
        """Whether exactly these payments are in the database."""
        expected = {f"order-{number}": number for number in numbers}
        found = await (self.reader or self.layer).payments()
        assert found.items() <= expected.items(), "a record that was not sent, or twice"
        return found == expected

    async def has_both(self, *numbers: int) -> bool:
        """Whether exactly these payments are in the database, and their receipts in the topic."""
        found = await self.visible_receipts()
        assert len(found) == len(set(found)), "a receipt twice"
        assert set(found) <= set(numbers), "a receipt of nothing"
        return await self.has(*numbers) and len(found) == len(numbers)

    async def visible_receipts(self) -> list[int]:
        """Return the receipts that readers of committed records see."""
        return _numbers(await visible_records(self.client, [(self.receipts, 0)]))

    async def decided_receipts(self) -> list[int]:
        """Return the receipts of committed transactions, when no transaction is open."""
        return _numbers(await decided_records(self.client, [(self.receipts, 0)]))


def _numbers(records: Records) -> list[int]:
    return [int(record.value or b"") for record in records]


async def ledger_of(layer: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    """Make an application, with the topic of its receipts."""
    ledger = Ledger(layer, client, topic, name)
    await client.admin().create_topic(ledger.receipts, partitions=1)
    return ledger


def store_of(ledger: Ledger, **more: Any) -> Transform:  # noqa: ANN401 - of the loop
    return ledger.database.store(
        source=[ledger.topic],
        group=ledger.group,
        on_event=ledger.note,
        handle_signals=False,
        **{"handler": ledger.book, "options": OPTIONS, **more},
    )
