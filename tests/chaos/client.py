"""One client process: ``python -m chaos.client``. Works until the phase of the run says: finish."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from simulation.joint import JointOwner, JointWorker
from simulation.network import Trace
from simulation.recorded import RecordedClient, Records
from simulation.transformer import Transformer
from simulation.workloads import (
    CLIENT,
    Plain,
    Reader,
    Transactions,
    Work,
)

from aiosemel import IsolationLevel, SemelClient, SemelError
from chaos.board import FileBoard
from chaos.clients import EXIT_GAVE_UP, Phase
from chaos.recording import open_records

ENDLESS = 1 << 60
PAUSE_MS = 80.0
_POLL_S = 0.1

log = logging.getLogger("chaos")


@dataclass(slots=True)
class Surroundings:
    """The state that all works of a process share."""

    records: Records
    folder: Path
    """Of the run."""
    life: str
    """The name of the process, and which life of it."""
    transactions: int = 0
    calm: bool = False
    pause_ms: float = PAUSE_MS
    trace: Trace = log.info

    @property
    def board(self) -> FileBoard:
        """The state of joint transactions that the processes share."""
        return FileBoard(self.folder / "board", "joint", life=self.life)


def _trace(*event: object) -> None:
    log.info("%s", event)


JOINT_TOPICS = ("a", "b")

WORKS: Mapping[str, Callable[[Surroundings], Sequence[Work]]] = {
    "writers-0": lambda around: (
        Transactions("writer-0", ENDLESS, ("a", "b"), around),
        Transactions("writer-1", ENDLESS, ("a", "in"), around),
    ),
    "writers-1": lambda around: (
        Transactions("writer-2", ENDLESS, ("a", "b", "in"), around),
        Plain(ENDLESS, (("a", 0), ("in", 0)), around),
    ),
    "duellist-0": lambda around: (Transactions("duel", ENDLESS, ("a", "b"), around),),
    "duellist-1": lambda around: (Transactions("duel", ENDLESS, ("a", "b"), around),),
    "transformer-0": lambda around: (Transformer("transformer-0", around),),
    "transformer-1": lambda around: (Transformer("transformer-1", around),),
    "joint-owner": lambda around: (JointOwner(around.board, around),),
    "joint-both": lambda around: (
        JointOwner(around.board, around),
        JointWorker(around.board, JOINT_TOPICS, around),
    ),
    "joint-workers": lambda around: (
        JointWorker(around.board, JOINT_TOPICS, around),
        JointWorker(around.board, JOINT_TOPICS, around),
    ),
    "readers": lambda _: (
        Reader(("a", "b"), IsolationLevel.READ_COMMITTED),
        Reader(("a", "b"), IsolationLevel.READ_UNCOMMITTED),
    ),
}
"""The works of each client process. A new workload is a new entry here, and a name in `clients`."""


def main() -> int:
    """Live one life."""
    parser = argparse.ArgumentParser(prog="chaos.client", description=__doc__)
    for text in ("name", "bootstrap"):
        parser.add_argument(f"--{text}", required=True)
    for number in ("life", "first", "began-ns", "seed"):
        parser.add_argument(f"--{number}", type=int, required=True)
    for path in ("events", "phase"):
        parser.add_argument(f"--{path}", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    log.setLevel(logging.INFO)
    records = open_records(options.events, began_ns=options.began_ns, first=options.first)
    folder = options.phase.parent
    around = Surroundings(records, folder, f"{options.name}.{options.life}", trace=_trace)
    return asyncio.run(_live(options, around))


async def _live(options: argparse.Namespace, around: Surroundings) -> int:
    stop = asyncio.Event()
    random = Random(options.seed)
    status = 0
    try:
        async with (
            SemelClient(options.bootstrap, options=CLIENT, random=random) as client,
            asyncio.TaskGroup() as group,
        ):
            for number, work in enumerate(WORKS[options.name](around)):
                process = f"{options.name}.{options.life}/{number}"
                recorded = RecordedClient(client, around.records, process)
                group.create_task(_work(work, recorded, random, stop))
            await _follow(options.phase, around)
            stop.set()
    except* SemelError as errors:
        log.info("gave up: %r", errors.exceptions)
        status = EXIT_GAVE_UP
    return status


async def _follow(phase: Path, around: Surroundings) -> None:
    """Return when the run is at its end; a signal might come before anybody listens."""
    while (now := _read(phase)) != Phase.FINISH:
        around.calm = now == Phase.CALM
        await asyncio.sleep(_POLL_S)


def _read(phase: Path) -> str:
    return phase.read_text(encoding="utf-8").strip()


async def _work(work: Work, client: RecordedClient, random: Random, stop: asyncio.Event) -> None:
    """Do a work; at the end let it finish what it has begun, or leave it where it is endless."""
    async with asyncio.TaskGroup() as group:
        doing = group.create_task(work.run(client, random))
        stopping = group.create_task(stop.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if isinstance(work, Transactions | Plain):
            work.finish()
        else:
            doing.cancel()


if __name__ == "__main__":
    sys.exit(main())
