"""A bit that flips in a journal is never served: a trial for each kind of page of each service.

Hundreds more: ``make damage TRIALS=24``.
"""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from damage.broker import SERVICE
from damage.pages import PageKind, flip, pages
from damage.trials import SERVICES, Outcome, Volumes, attempt, broker_outcome
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine.records import LogIdsGiven
from semel_local.checking import check
from semel_local.errors import LocalClusterError
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE

SEED = 3


@pytest.fixture(scope="module", name="volumes")
def _volumes(tmp_path_factory: pytest.TempPathFactory) -> Volumes:
    return asyncio.run(Volumes.make(tmp_path_factory.mktemp("volumes")))


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES)
async def test_no_flipped_bit_is_served(volumes: Volumes, service: str, tmp_path: Path) -> None:
    for kind in volumes.kinds(service):
        trial = await attempt(volumes, service, kind, SEED, tmp_path / "work")
        assert trial.outcome is not Outcome.WRONG, trial
        assert trial.checked or trial.outcome is Outcome.RIGHT, trial


def test_the_volume_of_the_broker_has_pages_of_each_kind(volumes: Volumes) -> None:
    assert set(volumes.kinds(SERVICE)) == set(PageKind)


@pytest.mark.parametrize("service", SERVICES)
def test_a_sound_volume_is_clean_and_stays_as_it_is(volumes: Volumes, service: str) -> None:
    folder = volumes.folder / service
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    checked = check(folder)
    assert (checked.damage, checked.service) == ((), service)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("seed", [0, 5])
async def test_reindex_brings_back_what_an_index_lost(
    volumes: Volumes, seed: int, tmp_path: Path
) -> None:
    work, random = tmp_path / "work", Random(seed)
    shutil.copytree(volumes.folder / SERVICE, work)
    leaf = random.choice(pages(work / JOURNAL_FILE)[PageKind.INDEX_LEAF])
    flip(work / JOURNAL_FILE, leaf, random, bits=1)
    assert "the pages of the file" in {each.place for each in check(work).damage}
    with closing(sqlite3.connect(work / JOURNAL_FILE)) as connection:
        connection.execute("REINDEX")
    assert check(work).damage == ()
    assert await broker_outcome(volumes.partitions, work) == (Outcome.RIGHT, "")


async def test_a_volume_with_a_write_ahead_log_is_checked_with_it(tmp_path: Path) -> None:
    running, copy = tmp_path / "running", tmp_path / "copy"
    async with await SqliteJournal.open(running, service=SERVICE) as journal:
        await journal.claim("first")
        for number in range(3):
            record = BrokerSerde().encode(LogIdsGiven(next_log_id=number))
            await journal.append(number, [record])
        with pytest.raises(LocalClusterError, match="a service is running on"):
            check(running)
        copy.mkdir()
        for path in running.glob("journal.*"):
            if not path.name.endswith(("-shm", ".lock")):
                (copy / path.name).write_bytes(path.read_bytes())
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    checked = check(copy)
    assert (checked.damage, checked.entries) == ((), 3)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
