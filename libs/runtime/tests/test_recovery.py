"""Recovering a volume: the raised counters, their order, and the refusals."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from runner_harness import Counted, Counters, CounterSerde

from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal_refusal import check_not_refused, refuse
from semel_runtime.recovery import (
    RECOVERED,
    CopyKeeper,
    Recovered,
    Recovery,
    read_image,
    recover_volume,
)
from semel_runtime.runner import Runner

ASKED = Recovery(instance_id=3, operator="ann", reason="disk", now_ms=1_700_000_000_000)
SERVICE = "counter 3"


async def raise_counter(runner: Runner[Counted]) -> dict[str, int | str]:
    """What a service does: writes some records."""
    await runner.run(lambda: Counters().add("a", 5))
    return {"counters": 1}


async def fail(runner: Runner[Counted]) -> dict[str, int | str]:
    """End in the middle, with the records written."""
    await raise_counter(runner)
    raise RuntimeError("the operator has lost patience")


async def recover(
    folder: Path,
    asked: Recovery = ASKED,
    work: Callable[[Runner[Counted]], Awaitable[dict[str, int | str]]] = raise_counter,
) -> Recovered:
    return await recover_volume(
        folder, Counters(), CounterSerde(), asked, work, service="counter", cluster_id="one"
    )


async def start(folder: Path) -> int:
    """Claim the journal as a service does; return its claim epoch."""
    async with await open_journal(folder, service=SERVICE) as journal:
        return (await journal.claim("a service")).epoch


@pytest.fixture
async def volume(tmp_path: Path) -> Path:
    """One that was refused."""
    async with await open_journal(tmp_path, service=SERVICE) as journal:
        await journal.claim("refused")
    refuse(tmp_path, "it is old")
    return tmp_path


async def test_a_recovered_volume_is_above_all_others_and_says_by_whom(volume: Path) -> None:
    recovered = await recover(volume)
    check_not_refused(volume)
    assert recovered == Recovered(claim_epoch=2, facts={"counters": 1})
    async with await open_journal(volume, service=SERVICE) as journal:
        assert journal.note(RECOVERED) == f"by ann at {ASKED.now_ms}: disk"
        assert journal.cluster_id == "one"
    assert await start(volume) == ASKED.floor + 1


async def test_a_recovery_that_was_interrupted_is_none(volume: Path) -> None:
    with pytest.raises(RuntimeError):
        await recover(volume, work=fail)
    with pytest.raises(JournalOpenError, match="it is old"):
        check_not_refused(volume)
    assert await start(volume) < ASKED.floor
    await recover(volume)


async def test_a_dry_run_leaves_the_volume_refused(volume: Path) -> None:
    await recover(volume, replace(ASKED, dry_run=True))
    with pytest.raises(JournalOpenError, match="it is old"):
        check_not_refused(volume)
    assert await start(volume) < ASKED.floor


async def test_a_clock_behind_the_last_recovery_is_refused(volume: Path) -> None:
    await recover(volume)
    with pytest.raises(JournalOpenError, match="set the clock"):
        await recover(volume, replace(ASKED, now_ms=ASKED.now_ms - 1))
    await recover(volume, replace(ASKED, now_ms=ASKED.now_ms + 1))


async def test_an_empty_folder_is_taken_for_a_lost_volume_only_if_that_is_said(
    tmp_path: Path, volume: Path
) -> None:
    with pytest.raises(JournalOpenError, match="has a journal"):
        await recover(volume, replace(ASKED, lost=True))
    empty = tmp_path / "empty"
    with pytest.raises(JournalOpenError, match="say --lost"):
        await recover(empty)
    assert not empty.exists()
    await recover(empty, replace(ASKED, lost=True))


async def test_the_metadata_of_a_refused_volume_are_not_taken(volume: Path) -> None:
    with pytest.raises(JournalOpenError, match="was refused"):
        await read_image(volume, CounterSerde(), CopyKeeper(), service=SERVICE)


def test_floors_have_room_for_a_hundred_years() -> None:
    century = replace(ASKED, now_ms=ASKED.now_ms + 100 * 365 * 86_400_000)
    assert century.producer_ids_floor < 1 << 48
    assert century.floor < 1 << 53
