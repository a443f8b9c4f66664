"""What a broker is after it starts again, and what becomes of deleted topics."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from broker_harness import CLUSTER_ID, OTHER, image, topic
from broker_service import (
    ABORT,
    COMMIT,
    Broker,
    Coordinators,
    batch,
    plain,
    serving,
    settings,
    turns,
    two_partitions,
)
from pydantic import ValidationError

from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.errors import InconsistentClusterIdError
from semel_common.record_batches.batches import decode_records
from semel_runtime.app import Environment
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.journal.sqlite import SqliteOptions
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


async def _write_history(broker: Broker) -> None:
    await broker.produce(batch(b"kept", epoch=0))
    await broker.end(COMMIT, epoch=0)
    await broker.produce(batch(b"dropped", epoch=1))
    await broker.end(ABORT, epoch=1)
    await broker.produce(plain(b"plain"))
    await broker.produce(batch(b"open", producer_id=OTHER))


async def _check_history(broker: Broker) -> None:
    result = await broker.fetch()
    assert [decode_records(each).values for each in result.batches] == [[b"kept"], [b"plain"]]
    assert (result.last_stable_offset, result.high_watermark) == (5, 6)
    assert (await broker.produce(batch(b"open", producer_id=OTHER))).base_offset == 5
    assert (await broker.produce(batch(b"more", producer_id=OTHER, sequence=1))).base_offset == 6
    await broker.end(COMMIT, producer_id=OTHER)
    assert (await broker.fetch()).last_stable_offset == 8


async def test_a_broker_goes_on_where_it_stopped(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        await _write_history(broker)
    async with serving(volume) as broker:
        await _check_history(broker)


async def test_a_broker_on_sqlite_goes_on_where_it_stopped(tmp_path: Path) -> None:
    options = SqliteOptions(disk_reserve_bytes=0)
    async with await open_journal(tmp_path, service="broker", options=options) as journal:
        async with serving(journal) as broker:
            await _write_history(broker)
        assert journal.cluster_id == CLUSTER_ID
    async with (
        await open_journal(tmp_path, service="broker", options=options) as journal,
        serving(journal) as broker,
    ):
        await _check_history(broker)


async def test_a_record_that_was_not_durable_was_not_answered_and_is_gone(
    volume: MemoryVolume,
) -> None:
    async with serving(volume) as broker:
        await broker.produce(batch(b"one"))
        volume.hold()
        produce = asyncio.create_task(broker.produce(batch(b"two", sequence=1)))
        await turns()
        volume.lose_unsynced()
        await asyncio.wait([produce])
        assert produce.exception() is not None
        assert broker.app.failed.is_set()
        volume.release()
    async with serving(volume) as broker:
        assert (await broker.produce(batch(b"two", sequence=1))).base_offset == 1


@in_virtual_time
async def test_the_batches_of_a_deleted_topic_are_deleted(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        for number in range(250):
            await broker.produce(plain(b"%d" % number))
        broker.coordinators.controller.publish(image(2))
        while volume.content.batches[0]:
            await turns(1)
        await turns()
        assert broker.app._machine.dropped_logs().response == ()


@in_virtual_time
async def test_a_purge_that_was_cut_short_is_finished_after_a_restart(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(volume) as broker:
        await broker.produce(plain(b"one"))
        background = broker.app._background
        assert background is not None
        monkeypatch.setattr(background.purger, "on_durable", lambda _: None)
        background.purger._wanted.clear()
        result = broker.app._machine.apply_metadata(image(2))
        assert result.response
    coordinators = Coordinators(MemoryNetwork())
    coordinators.controller.image = image(2, topic("orders", 1, topic_id="id-second"))
    async with serving(volume, coordinators=coordinators) as broker:
        while volume.content.batches[0]:
            await turns(1)
        assert (await broker.produce(batch(b"new"))).base_offset == 0
        assert list(volume.content.batches[2])


async def test_the_metadata_of_another_cluster_ends_the_broker(volume: MemoryVolume) -> None:
    async with serving(volume):
        pass
    coordinators = Coordinators(MemoryNetwork())
    coordinators.controller.image = image(2, cluster_id="cluster-b")
    coordinators.serve()
    environment = Environment(
        journal=MemoryJournal(volume),
        connector=coordinators.network,
        clock=ManualClock(),
        random=Random(1),
        listeners=(),
    )
    async with BrokerApp(settings(), environment) as app:
        with pytest.RaisesGroup(InconsistentClusterIdError, flatten_subgroups=True):
            await app.run()


def test_a_broker_without_a_controller_is_refused() -> None:
    with pytest.raises(ValidationError, match="controller must be set"):
        BrokerSettings(data_dir=Path("unused"))


async def test_metadata_that_is_known_already_is_taken_once(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        before = len(volume.content.records)
        broker.coordinators.controller.publish(two_partitions(1))
        await turns()
        assert len(volume.content.records) == before
