"""The examination of a cluster whose coordinators are not all there."""

import pytest

from aiosemel import ClientOptions
from aiosemel.errors import RequestTimedOutError
from semel_console.insight.doctor_checks import Thresholds
from semel_console.insight.examination import examine
from semel_local import LocalCluster

QUICK = ClientOptions(request_timeout_ms=500, default_api_timeout_ms=1_000)


@pytest.mark.parametrize(("name", "left_out"), [("coordinator-1", 1), ("coordinator-0", 2)])
async def test_a_coordinator_that_is_away_is_a_finding(name: str, left_out: int) -> None:
    """The controller also knows the moves of partitions."""
    async with LocalCluster(coordinators=2) as cluster, cluster.client(options=QUICK) as client:
        await client.admin().list_transactions()  # The client has heard of both.
        assert (await examine(client.admin(), Thresholds())).findings == ()
        await cluster.stop_service(name)
        examined = await examine(client.admin(), Thresholds())
        (finding,) = examined.findings
        assert finding.check == "unreachable"
        assert finding.what.startswith(f"{name}: ")
        assert len(examined.remarks) == left_out
        assert examined.remarks[0].startswith("transactional ids are left out: ")
        await cluster.start_service(name)


async def test_a_cluster_without_coordinators_is_not_examined() -> None:
    async with LocalCluster() as cluster, cluster.client(options=QUICK) as client:
        await client.admin().list_transactions()
        await cluster.stop_service("coordinator-0")
        with pytest.raises(RequestTimedOutError):
            await examine(client.admin(), Thresholds())
        await cluster.start_service("coordinator-0")
