"""Defects, planted by name in the real code while a test runs; the product has no switches.

Each defect breaks the protocol as a developer could by mistake. The simulation must find all of
them, and ``python -m defects`` prints the seed and the broken rule. If it misses one of them, an
invariant or a workload is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from defects import (
    clients,
    coordinators,
    forgetting,
    group_moves,
    joints,
    log_moves,
    memberships,
    moves,
    participants,
    payloads,
    storage,
    volumes,
)
from defects.defect import Defect

_MODULES = (
    coordinators,
    joints,
    participants,
    moves,
    group_moves,
    memberships,
    log_moves,
    forgetting,
    clients,
    volumes,
    storage,
    payloads,
)

DEFECTS: dict[str, Defect] = {each.name: each for module in _MODULES for each in module.DEFECTS}


OF_A_JOURNAL: frozenset[str] = frozenset(
    each.name for each in (*storage.DEFECTS, *payloads.DEFECTS)
)
"""The defects that the simulation of one journal looks for, where a whole cluster takes longer."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let the code have a defect for a while."""
    with pytest.MonkeyPatch.context() as patch:
        DEFECTS[name].plant(patch)
        yield
