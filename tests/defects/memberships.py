"""Defects of group coordinators, in which member gets which partition."""

from collections.abc import Iterable

import pytest

from defects.defect import collector
from semel_group.loops.free_partitions import FreePartitions
from semel_group.machine.membership import rebalance
from semel_group.machine.membership.assignment import Target
from semel_group.machine.records import ConsumerGroup, Member

DEFECTS, defect = collector()


@defect("free-partitions-wait", "a free partition waits for a member that may never speak again")
def _wait(patch: pytest.MonkeyPatch) -> None:
    def meant(group: ConsumerGroup, _: Iterable[Member]) -> Target:
        return group.target

    patch.setattr(rebalance, "_last_target", meant)
    patch.setattr(FreePartitions, "look", lambda *_: None)
