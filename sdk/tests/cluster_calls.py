"""Calls of a cluster's client to a fake cluster, for tests of the client itself."""

import asyncio
from random import Random

from producer_harness import BOOTSTRAP, FakeCluster

from aiosemel import ClientOptions
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._shared.name_checks import parse_bootstrap
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest, InitProducerIdResponse
from semel_common.wire.methods import INIT_PRODUCER_ID


def cluster_of(
    fake: FakeCluster, options: ClientOptions | None = None, bootstrap: str = BOOTSTRAP
) -> Cluster:
    """Return the client of a fake cluster."""
    return Cluster(parse_bootstrap(bootstrap), fake, options or ClientOptions(), Random(7))


async def init(cluster: Cluster, timeout_ms: int = 10_000) -> InitProducerIdResponse:
    """Make a call to the coordinator of a transactional id."""
    return await cluster.call(
        cluster.coordinator_of("orders"),
        INIT_PRODUCER_ID,
        InitProducerIdRequest(transactional_id="orders", instance_id="i", init_number=1),
        deadline=Deadline.after_ms(timeout_ms),
    )


def now() -> float:
    """Return the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()
