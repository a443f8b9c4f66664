"""An older copy of a group coordinator's volume, and an empty one."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, OffsetAndMetadata, OffsetReset, TopicPartition
from recovery.stage import REFUSED, refused, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAME = "group-coordinator-0"
TOPIC = "input"


@pytest.mark.parametrize("lost", [False, True], ids=["older", "lost"])
async def test_groups_stand_where_they_stood_and_members_join_again(
    tmp_path: Path, *, lost: bool
) -> None:
    async with stage(tmp_path) as on:
        await on.client.admin().create_topic(TOPIC, partitions=1)
        producer = await on.producer("writer")
        await on.write(producer, TOPIC, "0", "1", "2")
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        place = TopicPartition(TOPIC, 0)
        async with on.client.consumer("readers", options) as consumer:
            consumer.subscribe([TOPIC])
            await asyncio.wait_for(anext(consumer), 20)
            await consumer.commit({place: 1})
            await on.copy(NAME)
            await asyncio.wait_for(anext(consumer), 20)
            await consumer.commit({place: 2})

            await (on.lose if lost else on.put_back)(NAME)
            assert REFUSED in await refused(on, NAME)
            assert "journal was refused" in await refused(on, NAME)
            shown = await on.recover(NAME)
            assert shown["positions"] == (0 if lost else 1)
            await on.cluster.start(NAME)

            if not lost:
                admin = on.client.admin()
                stands = await admin.list_consumer_group_offsets("readers")
                assert stands[place] == OffsetAndMetadata(1)
                assert (await admin.describe_group("readers")).group_epoch > 1 << 40
            # The member joins again, and reads the records again that were committed since.
            # (The records that it had fetched before come first.)
            async with asyncio.timeout(30):
                expected = b"0" if lost else b"1"
                while (await anext(consumer)).value != expected:
                    pass
                assert (await anext(consumer)).value == (b"1" if lost else b"2")
