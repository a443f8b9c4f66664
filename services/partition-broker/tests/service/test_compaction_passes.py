"""When a broker compacts its logs, and what may come between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from broker_harness import image
from broker_service import (
    Broker,
    Coordinators,
    serving,
    turns,
)
from compacted_topic import (
    coordinators,
    keyed,
    left,
    records_of,
    state,
    table,
    write_some,
)
from msgspec.structs import replace

from semel_broker.compaction import passes
from semel_broker.machine.records import LogCompacted, Record
from semel_common.errors import KafkaStorageError
from semel_runtime.journal import JournalError, JournalUnknownError, StoredBatch
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.volume import MemoryVolume


@pytest.fixture
async def broker(volume: MemoryVolume) -> AsyncIterator[Broker]:
    """A broker with one compacted partition."""
    async with serving(volume, coordinators=coordinators()) as serving_broker:
        yield serving_broker


# -- when ------------------------------------------------------------------------------------------


async def test_a_topic_that_is_not_compacted_is_left_alone(volume: MemoryVolume) -> None:
    options = coordinators(cleanup_policy="delete")
    async with serving(volume, coordinators=options) as broker:
        await write_some(broker)
        before = dict(volume.content.batches)
        await broker.compact()
        assert volume.content.batches == before


async def test_a_log_waits_until_it_is_dirty_enough(volume: MemoryVolume) -> None:
    options = coordinators(min_cleanable_dirty_ratio="0.5")
    async with serving(volume, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), (b"b", b"1")))
        await broker.compact()
        for value in (b"2", b"3"):
            await broker.produce(keyed((b"a", value)))
            await broker.compact()
            assert await left(broker) == [b"1", b"1", *([b"2"] if value == b"2" else [b"2", b"3"])]
        await broker.produce(keyed((b"a", b"4")))
        await broker.compact()
        assert await left(broker) == [b"1", b"4"]


async def test_a_young_record_is_neither_taken_nor_takes_another(volume: MemoryVolume) -> None:
    clock = ManualClock()
    now_ms = clock.now_ms()
    options = coordinators(min_compaction_lag_ms="1000")
    async with serving(volume, clock=clock, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), timestamp_ms=now_ms - 1_000))
        await broker.produce(keyed((b"a", b"2"), timestamp_ms=now_ms - 1_000))
        await broker.produce(keyed((b"a", b"3"), timestamp_ms=now_ms - 999))
        await broker.produce(keyed((b"a", b"4"), timestamp_ms=now_ms - 1_000))
        await broker.compact()
        assert await left(broker) == [b"2", b"3", b"4"]
        clock.advance(1)
        await broker.compact()
        assert await left(broker) == [b"4"]


async def test_a_record_that_has_waited_too_long_makes_a_log_due(volume: MemoryVolume) -> None:
    clock = ManualClock()
    now_ms = clock.now_ms()
    options = coordinators(min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="1000")
    async with serving(volume, clock=clock, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), timestamp_ms=now_ms))
        await broker.produce(keyed((b"a", b"2"), timestamp_ms=now_ms))
        clock.advance(999)
        await broker.compact()
        assert await left(broker) == [b"1", b"2"]
        clock.advance(1)
        await broker.compact()
        assert await left(broker) == [b"2"]
        await broker.compact()  # Nothing is new.
        await broker.produce(keyed((b"a", b"3"), timestamp_ms=clock.now_ms()))
        await broker.compact()
        assert await left(broker) == [b"2", b"3"], "what waits counts, not what is compacted"


async def test_memory_for_few_keys_takes_more_passes(volume: MemoryVolume) -> None:
    async with serving(
        volume, coordinators=coordinators(), log_cleaner_dedupe_buffer_size=1 << 16
    ) as broker:
        for value in (b"1", b"2"):
            for start in range(0, 900, 100):
                keys = [b"%d" % key for key in range(start, start + 100)]
                await broker.produce(keyed(*((key, value) for key in keys)))
        for _ in range(5):
            await broker.compact()
        assert await left(broker) == [b"2"] * 900


async def test_the_broker_compacts_by_itself(volume: MemoryVolume) -> None:
    async with serving(volume, coordinators=coordinators(), log_cleaner_backoff_ms=1) as broker:
        await broker.produce(keyed((b"a", b"1"), (b"a", b"2")))
        compacted = asyncio.Event()

        def note(records: Sequence[Record]) -> None:
            if any(isinstance(record, LogCompacted) for record in records):
                compacted.set()

        broker.compactor._runner.on_durable(note)
        async with asyncio.timeout(30):
            await compacted.wait()
        assert await left(broker) == [b"2"]


# -- what may come between ------------------------------------------------------------------------


async def test_killed_at_any_write_of_a_pass_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each write of a pass fails once, with and without its effect; then the next process runs."""
    monkeypatch.setattr(passes, "_STEP_BYTES", 1)
    for applied in (True, False):
        writes = await count_writes()
        assert writes > 5
        for number in range(writes):
            volume = KilledVolume()
            async with serving(volume, coordinators=coordinators()) as broker:
                await write_some(broker)
                before = await state(broker)
                volume.kill_at(number, applied=applied)
                with pytest.raises((JournalUnknownError, KafkaStorageError)):
                    await broker.compact()
            volume.kill_at(None)
            async with serving(volume, coordinators=coordinators()) as broker:
                assert await state(broker) == before
                await broker.compact()
                assert await state(broker) == before
                assert await left(broker) == [b"2", b"2", b"3", None]


class KilledVolume(MemoryVolume):
    """Fails at a write, and then loses power."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self._kill_at: int | None = None

    def kill_at(self, number: int | None, *, applied: bool = False) -> None:
        self._applied = applied
        self._kill_at = None if number is None else self.writes + number

    async def write(
        self, apply: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> None:
        if self.writes == self._kill_at:
            self.fail_next_write(applied=self._applied)
        self.writes += 1
        await super().write(apply, undo)


async def count_writes() -> int:
    volume = KilledVolume()
    async with serving(volume, coordinators=coordinators()) as broker:
        await write_some(broker)
        before = volume.writes
        await broker.compact()
        return volume.writes - before


async def test_a_pass_ends_when_the_topic_is_not_compacted_any_more(broker: Broker) -> None:
    for value in (b"1", b"2"):
        await broker.produce(keyed((b"a", value)))
    controller = broker.coordinators.controller
    (plan,) = broker.app._machine.compaction.logs_to_compact().response
    assert broker.app._machine.compaction.is_compacted(plan.log_id)
    controller.publish(table({"cleanup.policy": "delete"}, version=2))
    await turns()
    assert not broker.app._machine.compaction.is_compacted(plan.log_id)
    compactor = broker.compactor

    await compactor._pass(plan, plan.last_stable_offset)

    assert await left(broker) == [b"1", b"2"]


async def test_a_pass_over_a_deleted_topic_leaves_nothing_behind(
    broker: Broker, volume: MemoryVolume
) -> None:
    for value in (b"1", b"2"):
        await broker.produce(keyed((b"a", value)))
    (plan,) = broker.app._machine.compaction.logs_to_compact().response
    broker.coordinators.controller.publish(image(2))

    await broker.compactor._pass(plan, plan.last_stable_offset)

    while volume.content.batches[plan.log_id]:  # The purger comes by in its own time.
        await turns()


async def test_a_log_that_cannot_be_read_does_not_keep_others_from_being_compacted(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = table({}).topics[0]
    both = replace(table({}), topics=(replace(orders, partitions=orders.partitions * 2),))
    controller = Coordinators(MemoryNetwork(), controller=ScriptedController(both))
    async with serving(volume, coordinators=controller) as broker:
        for partition in range(2):
            for value in (b"1", b"2"):
                await broker.produce(keyed((b"a", value)), partition=partition)
        store = broker.compactor._store
        read = store.read

        async def fail(partition: int, *args: int, **kwargs: int) -> Sequence[StoredBatch]:
            if partition == 0:
                raise JournalError("page 7 is damaged")
            return await read(partition, *args, **kwargs)

        monkeypatch.setattr(store, "read", fail)
        await broker.compact()
        result = await broker.fetch(partition=1)
        assert [value for _, _, value in records_of(result)] == [b"2"]
