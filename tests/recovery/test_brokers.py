"""An older copy of a broker's volume, and an empty one: refused, recovered, and nothing wrong."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, OffsetReset
from recovery.stage import REFUSED, id_of, refused, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def test_an_older_volume_of_a_broker_goes_on_above_all_offsets(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(0)
        first, open_then = await on.producer(id_of(0)), await on.producer(id_of(1))
        await on.write(first, topic, "kept")
        await open_then.begin_transaction()
        await open_then.send_and_wait(topic, b"open at the copy", partition=0)
        await on.copy("broker-0")
        await open_then.send_and_wait(topic, b"after the copy", partition=0)
        await open_then.commit(wait_until_visible=True)
        await on.write(first, topic, "lost")
        before = await on.read(topic)
        assert [value for _, value in before] == [
            "kept",
            "open at the copy",
            "after the copy",
            "lost",
        ]

        await on.put_back("broker-0")
        assert REFUSED in await refused(on, "broker-0")
        assert "journal was refused" in await refused(on, "broker-0")
        shown = await on.recover("broker-0", "--dry-run")
        assert (shown["dry_run"], shown["open_transactions_aborted"]) == (True, 1)
        assert "journal was refused" in await refused(on, "broker-0")
        await on.recover("broker-0")
        await on.cluster.start("broker-0")

        # The transaction that was open is lost as a whole, though its other half is not here.
        assert [value for _, value in await on.read(topic)] == ["kept"]
        await on.write(first, topic, "new")
        await on.write(open_then, topic, "newer")
        after = await on.read(topic)
        assert [value for _, value in after] == ["kept", "new", "newer"]
        assert after[1][0] > max(offset for offset, _ in before)


async def test_a_group_reads_on_over_the_gap_of_a_broker(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(1)
        producer = await on.producer(id_of(0))
        await on.write(producer, topic, "kept")
        await on.copy("broker-1")
        await on.write(producer, topic, "lost", "lost")
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        async with on.client.consumer("readers", options) as consumer:
            consumer.subscribe([topic])
            for _ in range(3):
                await asyncio.wait_for(anext(consumer), 20)
            await consumer.commit()
            await on.put_back("broker-1")
            await on.recover("broker-1")
            await on.cluster.start("broker-1")
            await on.write(producer, topic, "new")
            record = await asyncio.wait_for(anext(consumer), 20)
            assert record.value == b"new"


async def test_a_lost_volume_of_a_broker_begins_above_all_offsets(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(1)
        producer = await on.producer(id_of(0))
        await on.write(producer, topic, "lost")
        ((offset, _),) = await on.read(topic)
        await on.lose("broker-1")
        assert REFUSED in await refused(on, "broker-1")
        (on.data("broker-1") / "journal.db").unlink()
        assert (await on.recover("broker-1", status=1))["sentence"].count("--lost") == 1
        shown = await on.recover("broker-1", "--lost")
        assert shown["partitions_lost"] >= 1
        await on.cluster.start("broker-1")
        await on.write(producer, topic, "new")
        ((new_offset, value),) = await on.read(topic)
        assert (value, new_offset > offset) == ("new", True)
