"""The broker of most tests of the machine, which others replace by a fixture of their own."""

import pytest
from broker_harness import BrokerHarness


@pytest.fixture
def broker() -> BrokerHarness:
    return BrokerHarness()
