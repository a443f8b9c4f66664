"""Calls without the SDK, which has no use for producers by the ten thousand."""

import asyncio
import itertools
from collections.abc import Sequence

from aiosemel import SemelClient, ServiceRole
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.record_batches.batches import Columns, seal
from semel_common.wire import methods
from semel_common.wire.connection import Connection
from semel_common.wire.grpc_connection import GrpcConnector

IN_REQUEST = 500
TIMEOUT_MS = 60_000
TRANSACTION_TIMEOUT_MS = 900_000
"""Longer than any curve takes: nothing that is open ends by itself."""
_ONE = Columns(values=[b"x"], keys=None, timestamps_ms=[0], headers={})


class Wire:
    """To the coordinator and to the first broker."""

    def __init__(self, coordinator: Connection, leader: Connection, cluster_id: str) -> None:
        self._coordinator = coordinator
        self._leader = leader
        self._cluster_id = cluster_id
        self._numbers = itertools.count()

    @classmethod
    async def find(cls, client: SemelClient, connector: GrpcConnector, bootstrap: str) -> "Wire":
        """Return the wire to a cluster."""
        cluster = await client.admin().describe_cluster()
        leader = next(
            instance for instance in cluster.instances if instance.role is ServiceRole.BROKER
        )
        address = f"{leader.host}:{leader.port}"
        return cls(connector.connect(bootstrap), connector.connect(address), cluster.cluster_id)

    async def init_producer_id(self) -> int:
        """Begin with one more transactional id; returns its producer id."""
        number = next(self._numbers)
        request = transactions.InitProducerIdRequest(
            transactional_id=f"growth-{number}",
            instance_id=f"{number}",
            init_number=1,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        method = methods.INIT_PRODUCER_ID
        response = await self._coordinator.call(method, request, timeout_ms=TIMEOUT_MS)
        return response.producer_id

    async def producer_ids(self, count: int) -> list[int]:
        """Begin with so many transactional ids."""
        ids: list[int] = []
        while len(ids) < count:
            some = min(IN_REQUEST, count - len(ids))
            ids += await asyncio.gather(*(self.init_producer_id() for _ in range(some)))
        return ids

    async def open(self, topic: str, producer_ids: Sequence[int], epoch: int = 0) -> None:
        """Write one record in a transaction of each producer."""
        for start in range(0, len(producer_ids), IN_REQUEST):
            request = broker.ProduceRequest()
            partition = request.partitions.add(topic=topic)
            for producer_id in producer_ids[start : start + IN_REQUEST]:
                partition.batches.append(
                    seal(
                        _ONE,
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        base_sequence=0,
                        transactional=True,
                    )
                )
            response = await self._leader.call(methods.PRODUCE, request, timeout_ms=TIMEOUT_MS)
            assert not response.partitions[0].HasField("error"), response.partitions[0].error

    async def abort(self, topic_id: str, producer_ids: Sequence[int], epoch: int) -> None:
        """Write the ABORT marker of each producer's transaction."""
        where = participants.Participants()
        where.topics.add(topic_id=topic_id, partitions=[0])
        request = participants.WriteTxnMarkersRequest(cluster_id=self._cluster_id)
        for producer_id in producer_ids:
            request.markers.add(
                producer_id=producer_id,
                producer_epoch=epoch,
                result=participants.TRANSACTION_RESULT_ABORT,
                coordinator_epoch=1,
                participants=where,
            )
        method = methods.BROKER_WRITE_TXN_MARKERS
        response = await self._leader.call(method, request, timeout_ms=TIMEOUT_MS)
        assert not any(result.errors for result in response.results)
