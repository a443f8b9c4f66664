"""One journal alone on a simulated disk: its owners come and go, and every crash meets a write.

A seed takes a tenth of a second, so thousands of them go through the orders of steps that a whole
cluster meets seldom: an owner that stands still between its write and its look at the claim, or
right behind its claim, appends of any size, files of the log that are full after a few frames,
rewrites, snapshots.
"""

import argparse
import asyncio
import sys
from functools import partial
from itertools import count
from random import Random

from semel_runtime.testing.virtual_time import after
from simulation.disk import SimulatedVolume, simulated_disks
from simulation.files import SYNC_MS
from simulation.logs import quiet
from simulation.owners import Facts, Owner
from simulation.world import SimulatedLoop, simulated_loop

_OWNERS = 12
"""Of a seed."""
_DUELS = 0.2
"""The share of owners that claim while the one before stands right behind its own claim."""
_LAST_PAYLOADS = """
SELECT payload_file, max(payload_position + payload_bytes) FROM batches
WHERE payload_bytes > 0 GROUP BY payload_file
"""


class _Story:
    """One seed: owners follow one another, in order, by a crash, or while the older one stands."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self._loop = loop
        self._random = random = Random(seed)
        self._is_large = random.random() < 0.5
        self._facts = Facts()
        self._volume = SimulatedVolume(Random(random.getrandbits(64)))
        self._living: list[tuple[Owner, asyncio.Task[None]]] = []
        self._numbers = count()

    async def run(self) -> list[str]:
        """Run it, and return the violations."""
        for _ in range(_OWNERS):
            owner, task = self._begin()
            if self._random.random() < _DUELS:
                await self._duel(owner, task)
            else:
                await self._end(owner, task)
            if self._facts.violations:
                break
        if not self._facts.violations:
            self._lose_payloads()
        return list(self._facts.violations)

    def _begin(self) -> "tuple[Owner, asyncio.Task[None]]":
        """Let the next owner begin."""
        random, number = Random(self._random.getrandbits(64)), next(self._numbers)
        owner = Owner(self._facts, self._volume, random, number, is_large=self._is_large)
        task = self._loop.start(owner.life, owner.live())
        self._living.append((owner, task))
        return owner, task

    async def _duel(self, elder: Owner, task: "asyncio.Task[None]") -> None:
        """Let another owner claim while one stands behind its claim; both go on for a while."""
        random = self._random
        self._volume.folder.sync_ms = SYNC_MS
        await self._meet(task, "claim")
        await after(random.uniform(0, random.choice((0.02, 0.3, 3))))
        self._loop.stop_life(elder.life)
        younger, task = self._begin()
        await self._meet(task, "claim")
        if random.random() < 0.5:
            await self._meet(task, "sync")
        self._loop.resume_life(elder.life)
        await after(random.uniform(0, random.choice((5, 60))))
        self._kill(younger)

    def _lose_payloads(self) -> None:
        """Cut a file of payloads in the end, if there is one: a start has to refuse the folder."""
        volume = self._volume
        names = [name for name in volume.folder.names if name.startswith("journal.payloads-")]
        rows = volume.tables.fetch(_LAST_PAYLOADS)
        ends = {f"journal.payloads-{file}": end for file, end in rows}
        if found := sorted(ends.keys() & set(names)):
            name = self._random.choice(found)
            inode = volume.folder.names[name]
            del inode.data[self._random.randrange(ends[name]) :]
            if not volume.tables.found_end().lost_payloads:
                self._facts.violations.append(f"a start does not find that {name} is cut")

    async def _end(self, owner: Owner, task: "asyncio.Task[None]") -> None:
        """Let an owner have its time, and end it or stop it."""
        random, folder = self._random, self._volume.folder
        folder.sync_ms = random.choice(((0.05, 0.6), (0.05, 0.6), (20, 60)))
        await after(random.uniform(0, random.choice((5, 60, 1_500))))
        end = random.choice(("kill", "kill", "stand", "stop"))
        meets = 0.3 if end == "stand" and self._is_large else 0.75
        if random.random() < meets and not task.done():
            meet = random.choice(("sync", "return", "clearing")) if self._is_large else "sync"
            await self._meet(task, meet)
            if meet != "clearing":
                await after(random.uniform(0, folder.sync_ms[1]))
        match end:
            case "stop":
                await asyncio.wait([task], timeout=20)
                self._kill(owner)
            case "stand" if not task.done():
                self._loop.stop_life(owner.life)
                delay_s = random.choice((0.001, 0.02, 0.1, 1.0)) * random.random()
                self._loop.call_later(delay_s, self._loop.resume_life, owner.life)
            case _:
                self._kill(owner)

    async def _meet(self, task: "asyncio.Task[None]", what: str) -> None:
        """Wait for a sync, a return of space, a deletion beside a return of space, or a claim."""
        folder = self._volume.folder
        meets = self._loop.create_future()
        meet = partial(_answer, meets)
        match what:
            case "sync":
                folder.at_next_sync = meet
            case "return":
                folder.at_next_return = meet
            case "clearing":
                folder.at_next_clearing = meet
            case _:
                folder.at_next_claim = meet
        await asyncio.wait([task, meets], return_when=asyncio.FIRST_COMPLETED)
        folder.at_next_sync = folder.at_next_return = None
        folder.at_next_clearing = folder.at_next_claim = None

    def _kill(self, owner: Owner) -> None:
        """End a process, and if the power fails, all others with it."""
        self._loop.end_life(owner.life)
        if self._volume.end_process(owner.life):
            for other, _ in self._living:
                self._loop.end_life(other.life)
            self._living.clear()


def _answer(meets: "asyncio.Future[None]") -> None:
    if not meets.done():
        meets.set_result(None)


def simulate_alone(seed: int) -> list[str]:
    """Run one seed; return its violations."""
    with quiet(), simulated_disks(Random(seed)), simulated_loop() as loop:
        return loop.run_until_complete(_Story(loop, seed).run())


def main() -> int:
    """Run many seeds, and answer whether one found anything."""
    parser = argparse.ArgumentParser(prog="simulation.alone", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    given = parser.parse_args()
    failed = 0
    for seed in range(given.first, given.first + given.seeds):
        if found := simulate_alone(seed):
            failed += 1
            sys.stdout.write(f"seed {seed}: {found[0]}\n")
    sys.stdout.write(f"{given.seeds} seeds from {given.first}: {failed} failed\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
