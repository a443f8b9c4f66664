"""The cluster of most tests of the service; its disk, network and clock outlive coordinators."""

import pytest
from transactions_service_harness import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
