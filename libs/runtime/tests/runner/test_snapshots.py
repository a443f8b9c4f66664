"""Snapshots: taken when due, equal to the replayed state, and without delay for appends."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_harness import entries_of
from runner_harness import Counted, Counters, CounterSerde, Service, settle, start

from semel_common.errors import KafkaStorageError
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.runner import Runner, RunnerOptions
from semel_runtime.runner.snapshot_schedule import SnapshotPieces, SnapshotPolicy
from semel_runtime.testing.volume import MemoryVolume

OFTEN = RunnerOptions(snapshot_records_min=4, snapshot_piece_bytes=20)


async def add_all(service: Service, names: str) -> None:
    """Add one to each named counter, one after the other."""
    for name in names:
        await service.add(name)
    await settle()


async def snapshot_of(service: Service) -> list[bytes]:
    return [record for _, record in await entries_of(service.journal.read_snapshot())]


# -- the policy ------------------------------------------------------------------------------------


def test_snapshot_is_due_after_twice_the_records_of_the_last_and_a_minimum() -> None:
    policy = SnapshotPolicy(records_min=10)
    policy.add(records=9, size_bytes=90)
    assert not policy.due()
    policy.add(records=1, size_bytes=10)
    assert policy.due()
    assert policy.size_bytes_max() == 100

    policy.start()
    policy.add(records=1, size_bytes=10)
    policy.took(records=8, size_bytes=80)
    policy.add(records=14, size_bytes=140)
    assert not policy.due()
    policy.add(records=1, size_bytes=10)
    assert policy.due()
    assert policy.size_bytes_max() == 240


async def test_pieces_are_bounded_and_hold_everything_in_order() -> None:
    machine = Counters()
    for offset in range(600):
        machine.replay(offset, machine.add(f"counter {offset}").records[0])
    pieces = SnapshotPieces(piece_bytes=100)

    cut = [list(piece) async for piece in pieces.cut(machine.snapshot(), CounterSerde())]

    assert [offset for piece in cut for offset, _ in piece] == list(range(600))
    assert all(sum(len(data) for _, data in piece) < 100 + 20 for piece in cut)
    assert pieces.records == 600
    assert pieces.size_bytes == sum(len(data) for piece in cut for _, data in piece)


# -- the runner ------------------------------------------------------------------------------------


async def test_snapshot_is_taken_when_due_and_stands_for_the_records() -> None:
    service = await start(options=OFTEN)

    await add_all(service, "aaab")

    assert service.runner.stats().snapshots == 1
    assert service.volume.content.first_offset == 4
    assert await snapshot_of(service) == [b'["a", 3]', b'["b", 1]']
    successor = await service.restart(OFTEN)
    assert successor.machine.counters == service.machine.counters
    assert successor.machine.replayed == [2, 3]
    await successor.runner.close()


async def test_records_are_counted_across_restarts() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "aaa")

    successor = await service.restart(OFTEN)
    await add_all(successor, "a")

    assert successor.runner.stats().snapshots == 1
    await successor.runner.close()


class Walk:
    """Notes how many records are looked at in one turn of the event loop."""

    def __init__(self) -> None:
        self.in_this_turn = 0
        self.most_in_a_turn = 0

    def note(self, entry: tuple[int, Counted]) -> tuple[int, Counted]:
        if not self.in_this_turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self.in_this_turn += 1
        self.most_in_a_turn = max(self.most_in_a_turn, self.in_this_turn)
        return entry

    def _end_turn(self) -> None:
        self.in_this_turn = 0


async def test_snapshot_of_many_records_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    service = await start(options=RunnerOptions(snapshot_records_min=5_000))
    walk, snapshot = Walk(), service.machine.snapshot
    monkeypatch.setattr(service.machine, "snapshot", lambda: map(walk.note, snapshot()))
    for number in range(5_000):
        service.runner.run_lazily(partial(service.machine.add, f"counter {number}"))
    await service.add("counter")
    await settle()
    assert service.runner.stats().snapshots == 1
    assert 0 < walk.most_in_a_turn < 1_000
    await service.runner.close()


async def test_snapshot_holds_the_state_of_one_moment_while_appends_go_on() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "abc")

    await service.add("d")
    calls = [asyncio.ensure_future(service.add("a")) for _ in range(3)]
    await asyncio.gather(*calls)
    await settle()

    records = await snapshot_of(service)
    assert b'["d", 1]' in records
    successor = await service.restart(OFTEN)
    assert successor.machine.counters == service.machine.counters
    await successor.runner.close()


async def test_snapshot_waits_until_what_it_holds_is_durable() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "aaa")
    service.volume.hold()
    fourth = asyncio.ensure_future(service.add("a"))
    await settle()
    fifth = asyncio.ensure_future(service.add("b"))
    await settle()

    service.volume.sync()
    await settle()

    assert await fourth == 4
    assert service.volume.unsynced == 1
    assert not fifth.done()
    service.volume.release()
    await fifth
    await settle()
    assert service.volume.content.first_offset == 5
    await service.runner.close()


async def test_lost_power_during_a_snapshot_leaves_the_one_before() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "aaaa")
    await add_all(service, "bbb")
    service.volume.hold()
    last = asyncio.ensure_future(service.add("b"))
    await settle()
    service.volume.sync()
    assert await last == 4
    await settle()
    assert service.volume.unsynced == 1

    service.volume.lose_unsynced()
    await service.runner.failed.wait()

    service.volume.release()
    successor = await start(service.volume, OFTEN)
    assert service.volume.content.first_offset == 4
    assert successor.machine.counters == service.machine.counters
    await successor.runner.close()


async def test_failed_snapshot_is_the_end() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "aaa")
    service.volume.hold()
    fourth = asyncio.ensure_future(service.add("a"))
    await settle()
    service.volume.sync()
    await fourth
    await settle()
    service.volume.fail_next_write(applied=False)
    service.volume.sync()

    await service.runner.failed.wait()

    with pytest.raises(KafkaStorageError):
        await service.read("a")
    await service.runner.close()


async def test_no_snapshot_is_begun_that_the_disk_may_not_hold() -> None:
    service = await start(options=OFTEN)
    service.volume.free_bytes = 10
    await add_all(service, "aaaaaa")
    assert service.runner.stats().snapshots == 0

    service.volume.free_bytes = 1_000
    await add_all(service, "a")

    assert service.runner.stats().snapshots == 1
    await service.runner.close()


async def test_closing_during_a_snapshot_leaves_the_journal_whole() -> None:
    service = await start(options=OFTEN)
    await add_all(service, "aaa")
    await service.add("a")

    successor = await service.restart(OFTEN)

    assert successor.machine.value("a") == 4
    await successor.runner.close()


@settings(max_examples=60)
@given(
    runs=st.lists(st.text("abcd", max_size=15), max_size=5),
    records_min=st.integers(1, 6),
    piece_bytes=st.integers(1, 40),
)
def test_restart_gives_the_same_state_wherever_snapshots_fall(
    runs: list[str], records_min: int, piece_bytes: int
) -> None:
    options = RunnerOptions(snapshot_records_min=records_min, snapshot_piece_bytes=piece_bytes)

    async def scenario() -> None:
        service = await start(MemoryVolume(), options)
        for names in runs:
            await asyncio.gather(*(service.add(name) for name in names))
            successor = await service.restart(options)
            assert successor.machine.counters == service.machine.counters
            service = successor
        await service.runner.close()

    asyncio.run(scenario())


async def test_sqlite_goes_through_many_snapshots_under_load(tmp_path: Path) -> None:
    options = RunnerOptions(snapshot_records_min=50, snapshot_piece_bytes=200)
    machine, restarted = Counters(), Counters()

    async with (
        await SqliteJournal.open(tmp_path, service="test") as journal,
        await Runner.open(journal, machine, CounterSerde(), options=options) as runner,
    ):
        turn = 0
        while runner.stats().snapshots < 3:  # How many appends pass meanwhile is the disk's choice.
            handlers = [partial(machine.add, f"counter {turn * n % 30}") for n in range(20)]
            await asyncio.gather(*map(runner.run, handlers))
            turn += 1

    async with (
        await SqliteJournal.open(tmp_path, service="test") as journal,
        await Runner.open(journal, restarted, CounterSerde()),
    ):
        assert restarted.counters == machine.counters
