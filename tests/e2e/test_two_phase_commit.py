"""The example of two-phase commit with a database, killed between every two of its steps."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from committed_records import decided_records, visible_records

from aiosemel import ConsumerRecord, SemelClient
from semel_local import LocalCluster
from semel_runtime.testing.default_signals import default_signals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "two_phase_commit.py"
# Runs the example, and kills itself when it has told so many of its steps.
KILLED = """
import logging, os, runpy, signal, sys

class Killer(logging.Handler):
    left, number = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    def emit(self, record):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)

logging.getLogger("bank").addHandler(Killer())
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
NEVER = 0
STEPS = 3
"""That a payment tells of."""


class Bank:
    """The example with its database and its topic."""

    def __init__(
        self, cluster: LocalCluster, client: SemelClient, folder: Path, topic: str
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._file = folder / "bank.db"
        self._places = [(topic, partition) for partition in range(4)]
        self._topic = topic

    async def run(self, killed_at: int = NEVER, by: signal.Signals = signal.SIGKILL) -> int:
        """Run the example; returns its exit status."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", KILLED, str(killed_at), str(int(by)), str(EXAMPLE)),
            str(self._file),
            *("--bootstrap", self._cluster.bootstrap, "--topic", self._topic),
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        _, told = await process.communicate()
        assert process.returncode in (0, -signal.SIGKILL, 128 + by), told.decode()
        assert b"Traceback" not in told
        return process.returncode

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Ask the database."""
        database = sqlite3.connect(self._file)
        try:
            return database.execute(statement).fetchall()
        finally:
            database.close()

    async def events(self) -> list[str]:
        """The ids of the payments in the topic, with no transaction open there."""
        return _ids(await decided_records(self._client, self._places))

    async def visible_events(self) -> list[str]:
        """The ids of the payments that readers see, whatever transaction is prepared."""
        return _ids(await visible_records(self._client, self._places))


def _ids(records: Sequence[ConsumerRecord]) -> list[str]:
    return sorted(json.loads(record.value or b"")["id"] for record in records)


@pytest.fixture
def bank(cluster: LocalCluster, client: SemelClient, tmp_path: Path, topic: str) -> Bank:
    return Bank(cluster, client, tmp_path, topic)


@pytest.mark.parametrize("step", range(1, STEPS + 2))
async def test_both_sides_agree_whatever_step_it_was_killed_after(bank: Bank, step: int) -> None:
    """The second and third process are killed too: while they recover, if there is anything."""
    for killed_at in (step, 1, 2):
        assert await bank.run(killed_at) == -signal.SIGKILL
        # The records that readers see are in the database: it has decided.
        booked = [str(row[0]) for row in bank.rows("SELECT id FROM payment ORDER BY id")]
        assert set(await bank.visible_events()) <= set(booked)
    assert await bank.run() == 0
    assert bank.rows("SELECT id FROM payment ORDER BY id") == [("order-1",), ("order-2",)]
    assert await bank.events() == ["order-1", "order-2"]
    assert bank.rows("SELECT * FROM account ORDER BY name") == [
        *(("alice", -20), ("bob", 15), ("carol", 5)),
    ]


async def test_a_process_that_was_never_killed_leaves_nothing_open(bank: Bank) -> None:
    assert await bank.run() == 0
    assert await bank.events() == ["order-1", "order-2"]
    assert await bank.run() == 0
    assert await bank.events() == ["order-1", "order-2"]


async def test_a_process_that_is_asked_to_end_leaves_what_the_next_one_finishes(bank: Bank) -> None:
    with default_signals():
        for step, number in enumerate((signal.SIGHUP, signal.SIGINT, signal.SIGTERM), start=1):
            assert await bank.run(step, number) == 128 + number
        assert await bank.run() == 0
    assert await bank.events() == ["order-1", "order-2"]
    assert bank.rows("SELECT id FROM payment ORDER BY id") == [("order-1",), ("order-2",)]
