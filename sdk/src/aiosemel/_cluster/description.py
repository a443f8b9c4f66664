"""Asks for the description of the whole cluster."""

from functools import partial

from aiosemel._cluster.from_wire import whole_cluster
from aiosemel._cluster.metadata import CONTROLLER_ID, COORDINATOR
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import RetriableError
from aiosemel.types.descriptions import ClusterDescription
from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.wire.methods import DESCRIBE_CLUSTER


async def describe_cluster(cluster: Cluster, deadline: Deadline) -> ClusterDescription:
    """Ask the controller, which knows most; if it does not answer, another coordinator."""
    controller = partial(cluster.address_of, COORDINATOR, CONTROLLER_ID)
    request = wire.DescribeClusterRequest()
    try:
        response = await cluster.attempt(controller, DESCRIBE_CLUSTER, request, deadline=deadline)
    except RetriableError:
        anyone = cluster.any_coordinator()
        response = await cluster.call(anyone, DESCRIBE_CLUSTER, request, deadline=deadline)
    return whole_cluster(response)
