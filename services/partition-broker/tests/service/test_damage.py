"""Damage in a broker's store: it is named, it is never served, and everything else is."""

from collections.abc import Callable

import pytest
from broker_service import Broker, batch, code, plain, serving
from compacted_topic import coordinators, keyed
from msgspec.structs import replace
from structlog.testing import capture_logs

from semel.broker.v1 import moves_pb2 as moves
from semel_broker.loops.take_over import _check, _placed
from semel_broker.machine.moves import Copy, Move
from semel_broker.storage.batch_integrity import what_is_wrong
from semel_broker.storage.stored_batches import seal_batch
from semel_common.error_codes import ErrorCode
from semel_common.errors import CorruptMessageError
from semel_common.ids import TopicPartition
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.testing.volume import MemoryVolume

CORRUPT = ErrorCode.CORRUPT_MESSAGE

Damage = Callable[[list[StoredBatch]], None]


def flip_payload(batches: list[StoredBatch]) -> None:
    payload = bytearray(batches[2].payload)
    payload[-1] ^= 1
    batches[2] = replace(batches[2], payload=bytes(payload))


def flip_header(batches: list[StoredBatch]) -> None:
    header = bytearray(batches[2].header)
    header[1] ^= 1
    batches[2] = replace(batches[2], header=bytes(header))


def lose(batches: list[StoredBatch]) -> None:
    del batches[2]


def take_another_partitions(batches: list[StoredBatch]) -> None:
    batches[2] = replace(batches[2], partition=1)


def move(batches: list[StoredBatch]) -> None:
    batches[2] = replace(batches[2], base_offset=batches[2].base_offset + 1)


def change_count(batches: list[StoredBatch]) -> None:
    batches[2] = replace(batches[2], record_count=3)


def change_time(batches: list[StoredBatch]) -> None:
    batches[2] = replace(batches[2], max_timestamp_ms=5)


EVERY = (
    flip_payload,
    flip_header,
    lose,
    take_another_partitions,
    move,
    change_count,
    change_time,
)


async def fill(broker: Broker, volume: MemoryVolume, damage: Damage) -> None:
    """Write four batches of two records each, and damage the third; partition 1 stays sound."""
    for number in range(4):
        times = [number * 10, number * 10 + 1]
        await broker.produce(plain(b"a%d" % number, b"b%d" % number, timestamps_ms=times))
        await broker.produce(plain(b"sound"), partition=1)
    damage(volume.content.batches[0])


@pytest.mark.parametrize("damage", EVERY)
@pytest.mark.parametrize("is_plain", [True, False])
async def test_what_lies_before_damage_is_served_and_damage_is_not(
    volume: MemoryVolume, damage: Damage, *, is_plain: bool
) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await fill(broker, volume, damage)
        before = await broker.fetch(0, plain=is_plain)
        assert (code(before), before.next_offset) == (None, 4)
        damaged = await broker.fetch(4, plain=is_plain)
        assert code(damaged) == CORRUPT
        assert (len(damaged.records), len(damaged.batches), damaged.next_offset) == (0, 0, 4)
        assert "topic 'orders', partition 0: damage at offset 4 in memory" in damaged.error.message
        assert code(await broker.fetch(7, plain=is_plain)) is None
        other = await broker.fetch(0, partition=1, plain=is_plain)
        assert (code(other), other.next_offset) == (None, 4)


@pytest.mark.parametrize("damage", [flip_header, lose, take_another_partitions, move, change_count])
async def test_damage_is_not_counted(volume: MemoryVolume, damage: Damage) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await fill(broker, volume, damage)
        assert code(await broker.count_records(0)) == CORRUPT
        assert (await broker.count_records(7)).record_count == 1


@pytest.mark.parametrize("damage", [lose, change_time])
async def test_no_search_by_time_passes_over_a_batch(volume: MemoryVolume, damage: Damage) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await fill(broker, volume, damage)
        assert code(await broker.list_offset(timestamp_ms=20)) == CORRUPT
        assert (await broker.list_offset(timestamp_ms=10)).offset == 2


async def test_damage_is_logged_once_for_each_place(volume: MemoryVolume) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await fill(broker, volume, flip_payload)
        with capture_logs() as logs:
            for _ in range(3):
                await broker.fetch(4)
        (found,) = [log for log in logs if log["log_level"] == "error"]
        assert (found["event"], found["file"], found["offset"]) == ("damage found", "memory", 4)


async def test_what_was_cut_off_meanwhile_is_no_damage(volume: MemoryVolume) -> None:
    async with serving(volume, log_tail_cache_bytes=0) as broker:
        await fill(broker, volume, lambda _: None)
        (log, *_) = broker.app._machine._logs
        store = broker.app._environment.journal.batches
        read = store.read

        async def cut(*args: int, **options: int) -> object:
            log.log_start.offset = 6
            await store.delete(0, before=6, rows_max=10, bytes_max=1 << 20)
            return await read(*args, **options)

        store.read = cut  # type: ignore[method-assign, assignment]  # as a purge would
        assert code(await broker.fetch(0)) is None


@pytest.mark.parametrize("damage", [flip_payload, flip_header, change_time])
async def test_compaction_keeps_a_damaged_batch_and_does_the_rest(
    volume: MemoryVolume, damage: Damage
) -> None:
    async with serving(volume, coordinators=coordinators(), log_tail_cache_bytes=0) as broker:
        for number in range(5):
            await broker.produce(keyed((b"key", b"%d" % number)))
        damage(volume.content.batches[0])
        damaged = volume.content.batches[0][2]
        await broker.compact()
        assert [each.base_offset for each in volume.content.batches[0]] == [2, 4]
        assert volume.content.batches[0][0] == damaged
        assert code(await broker.fetch(2)) == CORRUPT


async def test_no_pass_of_compaction_begins_where_a_batch_is_missing(volume: MemoryVolume) -> None:
    async with serving(volume, coordinators=coordinators(), log_tail_cache_bytes=0) as broker:
        for number in range(5):
            await broker.produce(keyed((b"key", b"%d" % number)))
        lose(volume.content.batches[0])
        await broker.compact()
        assert [each.base_offset for each in volume.content.batches[0]] == [0, 1, 3, 4]
        assert code(await broker.fetch(2)) == CORRUPT


def test_headers_of_earlier_releases_are_checked_as_far_as_they_go() -> None:
    sealed = seal_batch(batch(b"value"), batch(b"value").payload)
    old = replace(sealed.at(7, 0), header=sealed.stored_header)
    assert what_is_wrong(old, 7) is None
    assert what_is_wrong(replace(old, payload=b"other"), 7) is not None
    assert what_is_wrong(replace(old, header=b"\xff"), 7) == "has a header that cannot be read"


COPY = Copy(
    move=Move(partition=TopicPartition("id-orders", 0), leader_epoch=1, moving_to=1),
    topic="orders",
    log_id=0,
    leader_id=2,
    log_end_offset=0,
    whole=False,
)


def piece(
    *batches: StoredBatch, next_offset: int, gaps: tuple[int, ...] = ()
) -> moves.CopyLogResponse:
    answer = moves.CopyLogResponse(next_offset=next_offset, first_offset=0)
    for each in batches:
        answer.batches.add(
            base_offset=each.base_offset,
            record_count=each.record_count,
            max_timestamp_ms=each.max_timestamp_ms,
            header=each.header,
            payload=each.payload,
        )
    if gaps:
        answer.gaps.add(start_offset=gaps[0], end_offset=gaps[1])
    return answer


def test_a_copy_takes_nothing_damaged_and_misses_nothing() -> None:
    sealed = [seal_batch(each, each.payload) for each in (plain(b"one"), plain(b"two"))]
    first, second = (each.at(9, at) for at, each in enumerate(sealed))

    def check(answer: moves.CopyLogResponse) -> None:
        _check(COPY, answer, _placed(COPY, answer))

    check(piece(first, second, next_offset=2))
    check(piece(second, next_offset=2, gaps=(0, 1)))
    for wrong, words in (
        (piece(second, next_offset=2), "lacks batches before 1"),
        (piece(first, next_offset=2), "lacks batches before 2"),
        (piece(next_offset=2), "lacks batches before 2"),
        (piece(first, replace(second, payload=b"x"), next_offset=2), "batch at 1 has CRC-32C"),
    ):
        with pytest.raises(CorruptMessageError, match=words):
            check(wrong)
