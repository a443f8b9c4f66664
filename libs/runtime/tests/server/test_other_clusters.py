"""Calls that name a cluster, on every transport: a service of another cluster refuses them."""

import pytest
from server_harness import TRANSPORTS, Request, Response, echo, serving

from semel_common.errors import CoordinatorNotAvailableError, InconsistentClusterIdError
from semel_common.wire.cluster_header import ClusterConnection, check_cluster
from semel_common.wire.methods import Method


@TRANSPORTS
async def test_a_call_for_another_cluster_is_refused_before_its_handler(
    method: Method[Request, Response], *, sockets: bool
) -> None:
    async with serving(echo, sockets=sockets, cluster_id=lambda: "own") as served:
        with pytest.raises(InconsistentClusterIdError) as raised:
            await served.connection.call(method, Request(), timeout_ms=5_000, cluster_id="other")
        assert raised.value.message == (
            "the call is for cluster 'other', but this service belongs to cluster 'own';"
            " make a new client to use this cluster"
        )
        assert raised.value.details == {"cluster_id": "own", "named_cluster_id": "other"}
        assert not served.calls
        for named in ("own", ""):
            await served.connection.call(method, Request(), timeout_ms=5_000, cluster_id=named)
        assert len(served.calls) == 2


@TRANSPORTS
async def test_a_service_that_learns_its_cluster_later_answers_retriably_before(
    method: Method[Request, Response], *, sockets: bool
) -> None:
    own = ""
    async with serving(echo, sockets=sockets, cluster_id=lambda: own) as served:
        connection = ClusterConnection(served.connection, lambda: "cluster")
        with pytest.raises(CoordinatorNotAvailableError, match="does not know its cluster yet"):
            await connection.call(method, Request(), timeout_ms=5_000)
        own = "cluster"
        await connection.call(method, Request(), timeout_ms=5_000)
        own = "another"
        assert len(served.calls) == 1


@TRANSPORTS
async def test_a_process_without_a_cluster_serves_all(
    method: Method[Request, Response], *, sockets: bool
) -> None:
    async with serving(echo, sockets=sockets) as served:
        await served.connection.call(method, Request(), timeout_ms=5_000, cluster_id="any")
        assert len(served.calls) == 1


def test_an_error_repeats_no_more_of_a_cluster_id_than_one_has() -> None:
    with pytest.raises(InconsistentClusterIdError) as raised:
        check_cluster("x" * 8_000, "own")
    assert len(raised.value.message) < 300
