"""Random histories against a model that is a few lines long: what committed readers get to see."""

import random
from dataclasses import dataclass, field

import pytest
from broker_service import ABORT, COMMIT, Broker, batch, plain, serving

from semel_common.ids import producer_id_of
from semel_common.record_batches.batches import decode_records
from semel_runtime.testing.volume import MemoryVolume


@dataclass(slots=True)
class Writer:
    """One transactional producer, as a well-behaved client keeps track of itself."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    written: dict[int, bytes] = field(default_factory=dict)
    """Records of the open transaction, by offset."""


@dataclass(slots=True)
class Model:
    """The writes of a transaction, and its end."""

    chance: random.Random
    writers: list[Writer]
    visible: dict[int, bytes] = field(default_factory=dict)
    """Records that a committed reader must get, by offset, once they are stable."""
    count: int = 0

    async def step(self, broker: Broker) -> None:
        """Do one thing, and now and then do it twice."""
        writer = self.chance.choice(self.writers)
        match self.chance.choices(("send", "plain", "commit", "abort"), (10, 2, 2, 2))[0]:
            case "send":
                await self.send(broker, writer)
            case "plain":
                value = self.value()
                result = await broker.produce(plain(value))
                self.visible[result.base_offset] = value
            case "commit":
                self.visible |= writer.written
                await self.end(broker, writer, committed=True)
            case _:
                await self.end(broker, writer, committed=False)

    async def send(self, broker: Broker, writer: Writer) -> None:
        """Append a batch."""
        values = [self.value() for _ in range(self.chance.randrange(1, 4))]
        sent = batch(
            *values,
            producer_id=writer.producer_id,
            epoch=writer.epoch,
            sequence=writer.sequence,
        )
        result = await broker.produce(sent)
        if self.chance.random() < 0.3:
            assert await broker.produce(sent) == result
        assert not result.HasField("error")
        writer.sequence += len(values)
        writer.written |= dict(enumerate(values, result.base_offset))

    async def end(self, broker: Broker, writer: Writer, *, committed: bool) -> None:
        """End the transaction; the next one has the next epoch."""
        for _ in range(self.chance.choice((1, 1, 2))):
            await broker.end(
                COMMIT if committed else ABORT,
                epoch=writer.epoch,
                producer_id=writer.producer_id,
            )
        writer.epoch, writer.sequence, writer.written = writer.epoch + 1, 0, {}

    def value(self) -> bytes:
        """Return a value of its own."""
        self.count += 1
        return b"%d" % self.count


async def read_all(broker: Broker, chance: random.Random) -> dict[int, bytes]:
    """Read as a client does, in answers of any size; return the records by offset."""
    found: dict[int, bytes] = {}
    offset = 0
    while True:
        if chance.random() < 0.5:
            result = await broker.fetch(offset, max_bytes=chance.randrange(1, 400), plain=True)
            found |= {record.offset: record.value for record in result.records}
        else:
            result = await broker.fetch(offset, max_bytes=chance.randrange(1, 400))
            for each in result.batches:
                values = [value or b"" for value in decode_records(each).values]
                found |= dict(enumerate(values, each.base_offset))
        if result.next_offset == offset:
            return found
        offset = result.next_offset


@pytest.mark.parametrize("seed", range(25))
async def test_committed_readers_see_what_was_committed_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    volume = MemoryVolume()
    model = Model(chance, [Writer(producer_id_of(each, 1)) for each in range(3)])
    for _ in range(3):
        async with serving(volume) as broker:
            for _ in range(30):
                await model.step(broker)
            stable = (await broker.fetch(max_bytes=1)).last_stable_offset
            expected = {at: value for at, value in model.visible.items() if at < stable}
            assert await read_all(broker, chance) == expected
    async with serving(volume) as broker:
        for writer in model.writers:
            await model.end(broker, writer, committed=False)
        assert await read_all(broker, chance) == model.visible
