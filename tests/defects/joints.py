"""Defects of joint transactions."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from defects.defect import collector
from semel_coordinator.transactions.machine.decisions import committed
from semel_coordinator.transactions.machine.joint import ending as ending_module
from semel_coordinator.transactions.machine.joint import joining as joining_module
from semel_coordinator.transactions.machine.joint.joint_entities import NO_VERSION, JointName
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.joint.joint_table import JOINT_TABLE, JointRow, row_of
from semel_coordinator.transactions.machine.state.entities import NOBODY, in_order
from semel_coordinator.transactions.machine.state.records import TransactionsRecord

DEFECTS, defect = collector()


@defect("joint-loser-committed", "a joint commit commits the writers that it does not name, too")
def _loser(patch: pytest.MonkeyPatch) -> None:
    def kept(
        producer: Any, ongoing: Any, *, now_ms: int, **_: object
    ) -> tuple[TransactionsRecord, ...]:
        everyone = NOBODY if ongoing is None else in_order(ongoing.participants)
        return committed(
            producer, ongoing, committing=everyone, aborting=NOBODY, traceparent="", now_ms=now_ms
        )

    patch.setattr(ending_module, "aborted", kept)


@defect("joint-dead-writer-named", "a joint commit that names a writer that is aborted succeeds")
def _dead_writer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ending_module, "is_live", lambda *_: True)


@defect("joint-older-run-not-fenced", "what an older run has open goes on when a newer one begins")
def _not_fenced(patch: pytest.MonkeyPatch) -> None:
    for module in (joining_module, ending_module):
        patch.setattr(module, "fencing", lambda *_, **__: [])


@defect("joint-older-run-heard", "a run that a newer one has superseded is heard as if it were new")
def _heard(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(JOINT_TABLE, JointRow.SUPERSEDED, JOINT_TABLE[JointRow.NEW_RUN])


@defect("joint-version-unchecked", "a version of a joint transaction is committed twice")
def _version(patch: pytest.MonkeyPatch) -> None:
    def unchecked(joint: Joint | None, name: JointName) -> JointRow:
        if joint is None:
            return row_of(joint, name)
        known = replace(joint.known, committed_version=NO_VERSION)
        as_if: Any = SimpleNamespace(known=known, is_open=joint.is_open)
        return row_of(as_if, name)

    for module in (joining_module, ending_module):
        patch.setattr(module, "row_of", unchecked)


@defect("joint-owner-unchecked", "any client may use the id of another owner's joint transactions")
def _owner(patch: pytest.MonkeyPatch) -> None:
    def unchecked(joint: Joint | None, name: JointName) -> JointRow:
        owner = name.owner if joint is None else joint.known.owner
        return row_of(joint, replace(name, owner=owner))

    for module in (joining_module, ending_module):
        patch.setattr(module, "row_of", unchecked)
