"""Where the load goes: ghz calls one address, so all ids are chosen to belong to one instance."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count, islice

import grpc

from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import cluster_pb2_grpc
from semel_common.wire.channel_options import DIRECT

TOPIC = "load-test"
_PARTITIONS_PER_BROKER = 4
_CANDIDATES = 500
_FRUITLESS_MAX = 10
"""How many requests in a row may find none; by chance alone, one hardly ever does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One instance of each service, and the names that belong to it."""

    run_id: str
    """Random: ids of one load test differ from those of all others."""
    channel: grpc.aio.Channel
    bootstrap: str
    coordinator: str
    broker: str
    group_coordinator: str
    topic_id: str
    partitions: tuple[int, ...]
    """Those of the topic that the broker leads."""

    def address(self, call: str) -> str:
        """Return whom to call, for ``package.Service/Method``."""
        service = call.partition("/")[0].rpartition(".")[2]
        return {
            "ClusterService": self.bootstrap,
            "CoordinatorService": self.coordinator,
            "BrokerService": self.broker,
            "GroupService": self.group_coordinator,
        }[service]

    async def names(self, kind: "cluster.CoordinatorType.ValueType", number: int) -> list[str]:
        """Return so many new transactional ids, or groups, that this target looks after.

        Raises LookupError if it looks after none, as when all partitions have moved away from it.
        """
        transactional = kind == cluster.COORDINATOR_TYPE_TRANSACTION
        wanted = self.coordinator if transactional else self.group_coordinator
        stub = cluster_pb2_grpc.ClusterServiceStub(self.channel)
        chosen: list[str] = []
        fruitless = 0
        prefix = f"load-{self.run_id}-{uuid.uuid4().hex[:8]}"
        numbers = count()
        while len(chosen) < number:
            keys = [f"{prefix}-{each}" for each in islice(numbers, _CANDIDATES)]
            request = cluster.FindCoordinatorRequest(type=kind, keys=keys)
            located = (await stub.FindCoordinator(request)).coordinators
            found = [each.key for each in located if _address(each.instance) == wanted]
            fruitless = 0 if found else fruitless + 1
            if fruitless == _FRUITLESS_MAX:
                raise LookupError(f"{wanted} looks after none of {fruitless * _CANDIDATES} names")
            chosen += found
        return chosen[:number]


@asynccontextmanager
async def find_target(bootstrap: str) -> AsyncIterator[Target]:
    """Make the topic if it is not there, and choose instances."""
    async with grpc.aio.insecure_channel(bootstrap, options=[DIRECT]) as channel:
        stub = cluster_pb2_grpc.ClusterServiceStub(channel)
        everyone = (await stub.Metadata(cluster.MetadataRequest())).instances
        brokers = [each for each in everyone if each.role == cluster.SERVICE_ROLE_BROKER]
        partitions = _PARTITIONS_PER_BROKER * len(brokers)
        topic = cluster.NewTopic(name=TOPIC, partitions=partitions)
        # Of a topic that is there already, there is nothing to do.
        await stub.CreateTopics(cluster.CreateTopicsRequest(topics=[topic]))
        known = await stub.Metadata(cluster.MetadataRequest(topics=[TOPIC]))
        leader = known.topics[0].partitions[0].leader_id
        yield Target(
            run_id=uuid.uuid4().hex[:8],
            channel=channel,
            bootstrap=bootstrap,
            coordinator=_first(known, cluster.SERVICE_ROLE_COORDINATOR),
            broker=_first(known, cluster.SERVICE_ROLE_BROKER, leader),
            group_coordinator=_first(known, cluster.SERVICE_ROLE_GROUP_COORDINATOR),
            topic_id=known.topics[0].topic_id,
            partitions=tuple(
                partition.index
                for partition in known.topics[0].partitions
                if partition.leader_id == leader
            ),
        )


def _first(
    known: cluster.MetadataResponse, role: "cluster.ServiceRole.ValueType", instance_id: int = 0
) -> str:
    return next(
        _address(instance)
        for instance in known.instances
        if instance.role == role and instance.instance_id == instance_id
    )


def _address(instance: cluster.Instance) -> str:
    return f"{instance.host}:{instance.port}"
