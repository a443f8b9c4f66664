"""Deleting the oldest records, and giving their space back, from request to store."""

import asyncio
from collections.abc import Sequence

import pytest
from broker_harness import BROKER_ID, image, topic
from broker_service import (
    ABORT,
    READ_UNCOMMITTED,
    Broker,
    Coordinators,
    batch,
    code,
    plain,
    serving,
    turns,
)

from semel.broker.v1 import broker_pb2 as wire
from semel_broker.loops.purge import Purger
from semel_broker.machine.records import LogStartMoved
from semel_common.error_codes import ErrorCode
from semel_common.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    ThrottlingQuotaExceededError,
)
from semel_common.record_batches.batches import checksum
from semel_common.wire.methods import DELETE_RECORDS
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.testing.journal import MemoryBatchStore, MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


def stored(volume: MemoryVolume, log_id: int = 0) -> list[int]:
    """Return the base offsets of the stored batches."""
    return [each.base_offset for each in volume.content.batches.get(log_id, [])]


async def delete(
    broker: Broker, before: int | None, *, partition: int = 0, validate_only: bool = False
) -> wire.DeleteRecordsPartitionResult:
    """Delete from one partition; None: all."""
    asked = wire.DeleteRecordsPartition(topic="orders", partition=partition)
    if before is None:
        asked.all = True
    else:
        asked.before_offset = before
    request = wire.DeleteRecordsRequest(partitions=[asked], validate_only=validate_only)
    (result,) = (await broker.call(DELETE_RECORDS, request)).partitions
    return result


@in_virtual_time
async def test_deleted_records_are_gone_at_once_and_their_space_soon(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        for value in (b"a", b"b", b"c"):
            await broker.produce(plain(value))
        result = await delete(broker, 2)
        assert (result.log_start_offset, result.deleted_offsets) == (2, 2)
        refused = await broker.fetch(1)
        assert code(refused) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert refused.error.metadata == {"log_start_offset": "2", "high_watermark": "3"}
        earliest = await broker.list_offset(spec=wire.OFFSET_SPEC_EARLIEST)
        assert earliest.offset == 2
        await turns()
        assert stored(volume) == [2]


@in_virtual_time
async def test_a_dry_run_deletes_nothing(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        await broker.produce(plain(b"a"))
        result = await delete(broker, None, validate_only=True)
        assert (result.log_start_offset, result.deleted_offsets) == (1, 1)
        await turns()
        assert stored(volume) == [0]
        assert len((await broker.fetch(0)).batches) == 1


@in_virtual_time
async def test_a_batch_that_was_cut_in_two_stays_until_its_end_is_cut_off(
    volume: MemoryVolume,
) -> None:
    async with serving(volume) as broker:
        await broker.produce(plain(b"a", b"b", b"c", timestamps_ms=[1, 2, 3]))
        await delete(broker, 1)
        read = await broker.fetch(1, plain=True)
        assert [record.value for record in read.records] == [b"b", b"c"]
        assert (await broker.list_offset(timestamp_ms=0)).offset == 1
        await turns()
        assert stored(volume) == [0]
        await delete(broker, 3)
        await turns()
        assert stored(volume) == []
        assert (await broker.list_offset(timestamp_ms=0)).offset == -1


@in_virtual_time
async def test_the_start_of_a_log_survives_a_crash_and_the_space_is_given_back_later(
    volume: MemoryVolume,
) -> None:
    async with serving(volume) as broker:
        for value in (b"a", b"b", b"c"):
            await broker.produce(plain(value))
        assert broker.app._background is not None
        broker.app._background.purger._wanted = asyncio.Event()  # It is as if it had crashed here.
        await delete(broker, 2)
    assert stored(volume) == [0, 1, 2]
    async with serving(volume) as broker:
        assert code(await broker.fetch(1)) == ErrorCode.OFFSET_OUT_OF_RANGE
        await turns()
        assert stored(volume) == [2]


async def test_past_the_last_stable_offset_is_out_of_range(broker: Broker) -> None:
    await broker.produce(plain(b"a"))
    await broker.produce(batch(b"open"))
    refused = await delete(broker, 2)
    assert ErrorCode(refused.error.code) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert refused.error.metadata["last_stable_offset"] == "1"


async def test_records_can_be_deleted_when_the_disk_is_nearly_full(
    volume: MemoryVolume,
) -> None:
    async with serving(MemoryJournal(volume, disk_reserve_bytes=1)) as broker:
        await broker.produce(plain(b"a"))
        volume.free_bytes = 0
        with pytest.raises(ThrottlingQuotaExceededError, match="shorten retention"):
            await broker.produce(plain(b"b"))
        assert (await delete(broker, 1)).deleted_offsets == 1


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (wire.DeleteRecordsRequest(), "partitions has 0 entries"),
        (
            wire.DeleteRecordsRequest(partitions=[wire.DeleteRecordsPartition(topic="orders")]),
            "neither before_offset nor all is set",
        ),
        (
            wire.DeleteRecordsRequest(
                partitions=[wire.DeleteRecordsPartition(topic="orders", all=False)]
            ),
            "neither before_offset nor all is set",
        ),
        (
            wire.DeleteRecordsRequest(
                partitions=[wire.DeleteRecordsPartition(topic="orders", before_offset=-1)]
            ),
            "before_offset is -1",
        ),
    ],
    ids=["nothing", "no position", "not all", "negative"],
)
async def test_bad_form_is_refused(
    broker: Broker, request_: wire.DeleteRecordsRequest, complaint: str
) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        await broker.call(DELETE_RECORDS, request_)


# -- retention -------------------------------------------------------------------------------------


@in_virtual_time
async def test_retention_is_looked_after_from_time_to_time() -> None:
    volume = MemoryVolume()
    coordinators = Coordinators(MemoryNetwork())
    configs = (("retention.ms", "1000"),)
    orders = topic("orders", BROKER_ID, configs=configs)
    coordinators.controller.publish(image(1, orders))
    async with serving(volume, coordinators=coordinators) as broker:
        await broker.produce(plain(b"a"))
        broker.clock.advance(1_001)
        await after(300_000 - 1)
        assert stored(volume) == [0]
        await after(2)
        assert stored(volume) == []
        assert code(await broker.fetch(0)) == ErrorCode.OFFSET_OUT_OF_RANGE


@in_virtual_time
async def test_an_option_that_was_changed_takes_effect_at_once(volume: MemoryVolume) -> None:
    coordinators = Coordinators(MemoryNetwork())
    async with serving(volume, coordinators=coordinators) as broker:
        await broker.produce(plain(b"a"))
        changed = topic("orders", BROKER_ID, configs=(("retention.bytes", "0"),))
        coordinators.controller.publish(image(2, changed))
        await turns(100)
        assert stored(volume) == []


@in_virtual_time
async def test_a_topic_that_comes_is_no_reason_to_look_through_all() -> None:
    volume = MemoryVolume()
    coordinators = Coordinators(MemoryNetwork())
    orders = topic("orders", BROKER_ID, configs=(("retention.ms", "1000"),))
    coordinators.controller.publish(image(1, orders))
    async with serving(volume, coordinators=coordinators) as broker:
        await broker.produce(plain(b"a"))
        broker.clock.advance(1_001)
        coordinators.controller.publish(image(2, topic("more", BROKER_ID), orders))
        await turns(100)
        assert stored(volume) == [0]


# -- readers under way -----------------------------------------------------------------------------


class HeldStore(MemoryBatchStore):
    """A store whose reads wait until they are let go, and then see the rest."""

    def __init__(self, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self.reading = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.late = False
        """Whether reads find the batches of the moment of their release, not of their start."""

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read, then wait, or the other way round."""
        found = await super().read(partition, offset, max_bytes=max_bytes, upto=upto)
        self.reading.set()
        await self.go.wait()
        if self.late:
            return await super().read(partition, offset, max_bytes=max_bytes, upto=upto)
        return found


class HeldJournal(MemoryJournal):
    """A journal with such a store."""

    def __init__(self, volume: MemoryVolume) -> None:
        super().__init__(volume)
        self.held = HeldStore(self)

    @property
    def batches(self) -> HeldStore:
        """The store."""
        return self.held


@pytest.mark.parametrize("late", [False, True], ids=["read before", "read after"])
@in_virtual_time
async def test_a_fetch_under_way_shows_nothing_aborted_and_skips_nothing_when_the_log_is_cut(
    volume: MemoryVolume, late: bool
) -> None:
    journal = HeldJournal(volume)
    async with serving(journal, log_tail_cache_bytes=0) as broker:
        await broker.produce(batch(b"aborted"))
        await broker.end(ABORT)
        await broker.produce(plain(b"kept"))
        journal.held.late = late
        journal.held.reading.clear()
        journal.held.go.clear()
        async with asyncio.TaskGroup() as group:
            fetch = group.create_task(broker.fetch(0))
            search = group.create_task(broker.list_offset(timestamp_ms=1))
            await journal.held.reading.wait()
            await turns()
            await delete(broker, 2)
            await turns()
            assert stored(volume) == [2]
            journal.held.go.set()
        assert not fetch.result().batches
        assert fetch.result().next_offset == 0, "the reader is told by the next fetch"
        assert search.result().offset == 2
        assert code(await broker.fetch(0)) == ErrorCode.OFFSET_OUT_OF_RANGE
        read = await broker.fetch(2, isolation=READ_UNCOMMITTED)
        assert len(read.batches) == 1


@in_virtual_time
async def test_a_search_under_way_does_not_answer_a_broken_batch_that_is_cut_off(
    volume: MemoryVolume,
) -> None:
    """Of one that cannot be opened the start is answered, where the log now begins."""
    broken = plain(b"a", b"b", timestamps_ms=[10, 20])
    broken.record_count = 3
    broken.crc32c = checksum(broken, broken.payload)
    journal = HeldJournal(volume)
    async with serving(journal, log_tail_cache_bytes=0) as broker:
        await broker.produce(broken)
        await broker.produce(plain(b"too early", timestamps_ms=[5]))
        journal.held.reading.clear()
        journal.held.go.clear()
        async with asyncio.TaskGroup() as group:
            search = group.create_task(broker.list_offset(timestamp_ms=15))
            await journal.held.reading.wait()
            await delete(broker, 3)
            journal.held.go.set()
        assert search.result().offset == -1


@in_virtual_time
async def test_a_fetch_under_way_skips_nothing_when_its_topic_is_deleted(
    volume: MemoryVolume,
) -> None:
    journal = HeldJournal(volume)
    coordinators = Coordinators(MemoryNetwork())
    async with serving(journal, coordinators=coordinators, log_tail_cache_bytes=0) as broker:
        await broker.produce(plain(b"a"))
        journal.held.go.clear()
        journal.held.reading.clear()
        async with asyncio.TaskGroup() as group:
            fetch = group.create_task(broker.fetch(0))
            await journal.held.reading.wait()
            coordinators.controller.publish(image(2))
            await turns(100)
            assert stored(volume) == []
            journal.held.go.set()
        assert not fetch.result().batches
        assert code(await broker.fetch(0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@in_virtual_time
async def test_a_log_that_is_cut_while_the_purger_begins_is_purged_up_to_there() -> None:
    volume = MemoryVolume()
    async with serving(volume) as broker:
        for value in (b"a", b"b", b"c"):
            await broker.produce(plain(value))
        await delete(broker, 1)
        assert broker.app._background is not None
        running = broker.app._background.purger
        late = Purger(running._runner, running._machine, running._store)
        writing = asyncio.create_task(broker.produce(plain(b"d")))
        await asyncio.sleep(0)
        # It asks where logs start, and is answered once the write is durable.
        run = asyncio.create_task(late.run())
        await asyncio.sleep(0)
        assert not writing.done()
        late.on_durable([LogStartMoved(log_id=0, log_start_offset=3)])
        await writing
        await turns()
        assert stored(volume) == [3]
        run.cancel()
        await asyncio.wait([run])


@in_virtual_time
async def test_a_deletion_stands_in_the_audit_and_a_rehearsal_does_not() -> None:
    coordinators = Coordinators(MemoryNetwork())
    async with serving(MemoryVolume(), coordinators=coordinators) as broker:
        await broker.produce(batch(b"one", transactional=False))
        await delete(broker, 1, validate_only=True)
        assert not coordinators.controller.audit
        await delete(broker, 1)
        entry, end = coordinators.controller.audit
        assert (entry.action, end.number, end.end) == ("DeleteRecords", 1, "DONE")
        assert entry.what == 'partitions { topic: "orders" before_offset: 1 }'
        coordinators.controller.audit_refusal = ThrottlingQuotaExceededError("busy")
        with pytest.raises(CoordinatorNotAvailableError, match="did not note it in the audit"):
            await delete(broker, None)
