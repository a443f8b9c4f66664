"""Defects of the checks for older copies of volumes."""

import pytest

from defects.defect import collector
from semel_coordinator.controller.loops import own_volume
from semel_coordinator.controller.machine import registration

DEFECTS, defect = collector()


@defect("missing-commits-let-in", "the controller asks for a higher claim epoch, and nothing else")
def _let_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registration, "missing", lambda *_, **__: "")


@defect("controller-believes-its-volume", "the controller ignores what others know of its journal")
def _believes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(own_volume, "missing", lambda *_, **__: "")
