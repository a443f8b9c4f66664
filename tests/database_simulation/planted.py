"""Defects of the SDK beside a database, planted by name, and the search for them."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
from defects.defect import Defect, collector

from aiosemel import OffsetAndMetadata, TopicPartition
from aiosemel._database import positions_table, restored
from aiosemel._database.decisions import Decisions
from aiosemel._database.driver_errors import passing_errors
from aiosemel._database.input_positions import InputPositions
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.open_session import OpenSession
from aiosemel._database.resolver import Resolver
from aiosemel._database.restored import Rules, Witnesses
from aiosemel._outbox import outbox_table
from aiosemel._outbox.outbox_table import Charge, OutboxTable
from aiosemel._outbox.relay import Relay
from aiosemel._transform.poison import Input
from aiosemel.database import DatabaseSession
from aiosemel.types.prepared_transaction import PreparedTransactionId
from database_simulation.run import Report, simulate

_FOUND, defect = collector()


# -- which transaction has what ------------------------------------------------------------------


@defect("position-unchecked", "a position moves wherever it is, so two instances process a record")
def _unchecked(patch: pytest.MonkeyPatch) -> None:
    move = positions_table._MOVE.removesuffix("next_offset = ?") + "? >= 0"
    patch.setattr(positions_table, "_MOVE", move)


@defect(
    "position-apart", "a position moves in a transaction of its own, before that of its records"
)
def _apart(patch: pytest.MonkeyPatch) -> None:
    move = InputPositions.move

    async def apart(
        self: InputPositions,
        _: DatabaseSession[object],
        ends: Mapping[TopicPartition, OffsetAndMetadata],
        taken: Input,
    ) -> None:
        async with self._database.transaction() as own:
            await move(self, own, ends, taken)

    patch.setattr(InputPositions, "move", apart)


@defect("completed-before-commit", "the cluster commits before the database has committed")
def _before(patch: pytest.MonkeyPatch) -> None:
    commit = JointCommit._commit

    async def early(
        self: JointCommit, prepared: PreparedTransactionId, opened: OpenSession[object]
    ) -> None:
        await self._completions.add(prepared, commit=True, is_own=True)
        await commit(self, prepared, opened)

    patch.setattr(JointCommit, "_commit", early)


# -- decisions -----------------------------------------------------------------------------------


def _guessing(patch: pytest.MonkeyPatch, *, commit: bool) -> None:
    settle = JointCommit._settle

    async def guess(self: JointCommit, prepared: PreparedTransactionId, *, is_own: bool) -> bool:
        if not is_own:
            return await settle(self, prepared, is_own=is_own)
        await self._completions.add(prepared, commit=commit, is_own=True)
        return commit

    patch.setattr(JointCommit, "_settle", guess)


@defect("doubt-aborts", "a commit that was not answered counts as failed")
def _doubt_aborts(patch: pytest.MonkeyPatch) -> None:
    _guessing(patch, commit=False)


@defect("doubt-commits", "a commit that was not answered counts as done")
def _doubt_commits(patch: pytest.MonkeyPatch) -> None:
    _guessing(patch, commit=True)


@defect("decision-not-written", "a commit does not write down that it decides")
def _unwritten(patch: pytest.MonkeyPatch) -> None:
    async def nothing(
        _: Decisions,
        transaction: DatabaseSession[object],
        prepared: PreparedTransactionId,
        completed: Collection[PreparedTransactionId],
    ) -> None:
        """Write nothing."""

    patch.setattr(Decisions, "note_committed", nothing)


@defect("abort-not-noted", "a process that finds no decision aborts, and does not write that down")
def _not_noted(patch: pytest.MonkeyPatch) -> None:
    async def look(self: Decisions, prepared: PreparedTransactionId) -> bool:
        with passing_errors():
            async with self._database.transaction() as transaction:
                rows = await transaction.fetch(self._read, (str(prepared),))
        return [tuple(row) for row in rows] == [("committed",)]

    patch.setattr(Decisions, "is_committed", look)


@defect("resolver-asleep", "no process settles what one that never comes back has left prepared")
def _asleep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Resolver, "start", lambda _: None)


# -- the outbox ----------------------------------------------------------------------------------


@defect("relay-deletes-by-id", "a relay deletes all rows up to the last one that it has sent")
def _by_id(patch: pytest.MonkeyPatch) -> None:
    last = "(SELECT max(id) FROM semel_outbox WHERE version = ?)"
    delete = f"DELETE FROM semel_outbox WHERE outbox = ? AND id <= {last}"  # noqa: S608 - of this test
    patch.setattr(outbox_table, "_DELETE", delete)


@defect("relay-new-version", "a relay gives another version to rows that were perhaps sent")
def _new_version(patch: pytest.MonkeyPatch) -> None:
    async def forget(self: OutboxTable) -> list[int]:
        await self.forget_versions()
        return []

    patch.setattr(OutboxTable, "versions", forget)


# -- restores ------------------------------------------------------------------------------------


@defect("restore-unnoticed", "the group's committed offset is not compared with the database")
def _restored(patch: pytest.MonkeyPatch) -> None:
    start = restored.starting_point

    def trusting(what: str, known: Witnesses, rules: Rules) -> int:
        return start(what, replace(known, committed=None), rules)

    patch.setattr("aiosemel._database.input_positions.starting_point", trusting)


@defect("outbox-restore-unnoticed", "a relay does not look for versions that its database lost")
def _outbox_restored(patch: pytest.MonkeyPatch) -> None:
    async def trust(_: Relay, charge: Charge) -> Charge:
        return charge

    patch.setattr(Relay, "_check_restored", trust)


DEFECTS: dict[str, Defect] = {each.name: each for each in _FOUND}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let the code have a defect for a while."""
    with pytest.MonkeyPatch.context() as patch:
        DEFECTS[name].plant(patch)
        yield


def hunt(name: str, seeds: int = 300, first: int = 0) -> Report | None:
    """Return the report of the first seed that finds the defect; None if no seed does."""
    with planted(name):
        for seed in range(first, first + seeds):
            report = simulate(seed)
            if report.violations:
                return report
    return None
