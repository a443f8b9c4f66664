"""Clusters in which some processes speak as the last release did: the simulation finds nothing."""

from collections.abc import Callable

import pytest
from simulation.dialect import Dialect
from simulation.processes import NAMES
from simulation.run import simulate
from source_tree import ROOT

from semel_local.layout import Role

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RELEASED = (ROOT / "protos" / "released.binpb").read_bytes()
SERVICES = {str(name): name.role for name in NAMES}

OF_THE_LAST_RELEASE: dict[str, Callable[[str], bool]] = {
    "clients": lambda name: name not in SERVICES,
    "services": lambda name: name in SERVICES,
    "brokers": lambda name: SERVICES.get(name) is Role.BROKER,
    "coordinators": lambda name: SERVICES.get(name) is Role.COORDINATOR,
    "group coordinators": lambda name: SERVICES.get(name) is Role.GROUP_COORDINATOR,
    "half of each": lambda name: name in SERVICES and name.endswith("0"),
}


@pytest.mark.parametrize("who", OF_THE_LAST_RELEASE)
@pytest.mark.parametrize("seed", [7001, 7002])
def test_releases_work_together(who: str, seed: int) -> None:
    report = simulate(seed, dialect=Dialect(RELEASED, OF_THE_LAST_RELEASE[who]))
    assert not report.violations, "\n".join((*report.trace, *report.violations))
    assert report.transactions >= 100
