"""What ghz sends: a file of requests for each run, with ids and sequences that are valid.

ghz takes the messages of a file one after the other (of a stream: all in each call), so a run of
transactions has a producer for each of its calls.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from loadtest.requests import (
    Producer,
    commit_request,
    end_request,
    fetch_request,
    init_request,
    offsets_request,
    produce_request,
)
from loadtest.scenarios import DATA, FRAMES_PER_STREAM, Run
from loadtest.target import TOPIC, Target
from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1.broker_pb2_grpc import BrokerServiceStub
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.coordinator.v1.transactions_pb2_grpc import CoordinatorServiceStub
from semel.group.v1 import group_pb2 as group
from semel_common.wire.channel_options import DIRECT

if TYPE_CHECKING:
    from semel.coordinator.v1.transactions_pb2_grpc import CoordinatorServiceAsyncStub

_AT_ONCE = 64
_GROUPS = 100


class Preparation:
    """Writes the data files; the producers of one run are those of the run that ends it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._producers: Sequence[Producer] = ()
        self.groups: Sequence[str] = ()
        """The groups whose offsets the last prepared run commits."""

    async def prepare(self, run: Run) -> None:
        """Write the data file of a run."""
        messages = await self.messages(run)
        rows = [MessageToDict(message, preserving_proto_field_name=True) for message in messages]
        DATA.mkdir(parents=True, exist_ok=True)
        (DATA / f"{run.scenario}.json").write_text(json.dumps(rows), "utf-8")

    async def messages(self, run: Run) -> Sequence[Message]:
        """Return the messages of one call."""
        target = self._target
        partitions = cycle(target.partitions)
        match run.scenario:
            case "metadata":
                return [cluster.MetadataRequest(topics=[TOPIC])]
            case "init-producer-id":
                return [init_request(name) for name in await self._ids(run.calls)]
            case "produce-plain":
                return [produce_request(target, partition) for partition in target.partitions]
            case "produce-transactional":
                self._producers = await self._begin(run.calls)
                return [
                    produce_request(target, producer.partition, producer)
                    for producer in self._producers
                ]
            case "end-txn":
                return [end_request(target, producer) for producer in self._producers]
            case "commit-offsets":
                self.groups = (await self._groups())[: run.calls]
                chosen = islice(cycle(self.groups), run.calls)
                return [commit_request(batch, next(partitions)) for batch in chosen]
            case "fetch":
                await self._fill()
                return [fetch_request(target, partition, 0) for partition in target.partitions]
            case _:
                return await self._streamed(run)

    async def _streamed(self, run: Run) -> Sequence[Message]:
        """Return the messages of one stream."""
        target = self._target
        partitions = cycle(target.partitions)
        match run.scenario:
            case "stream-produce":
                appends = [
                    produce_request(target, next(partitions)) for _ in range(FRAMES_PER_STREAM)
                ]
                return [
                    broker.StreamRequest(
                        frames=[broker.RequestFrame(correlation_id=n, produce=each)]
                    )
                    for n, each in enumerate(appends, start=1)
                ]
            case "stream-txn-offset-commit":
                self._producers = await self._begin(FRAMES_PER_STREAM)
                self.groups = sorted({producer.group_id for producer in self._producers})
                return [
                    group.StreamRequest(
                        frames=[
                            group.RequestFrame(
                                correlation_id=n, txn_offset_commit=offsets_request(each)
                            )
                        ]
                    )
                    for n, each in enumerate(self._producers, start=1)
                ]
            case "stream-end-txn":
                ends = [end_request(target, producer, groups=True) for producer in self._producers]
                return [
                    transactions.StreamRequest(
                        frames=[transactions.RequestFrame(correlation_id=n, end_txn=each)]
                    )
                    for n, each in enumerate(ends, start=1)
                ]
            case _:
                raise ValueError(run.scenario)

    async def _fill(self) -> None:
        """Let there be something to read in each partition, whatever ran before."""
        async with grpc.aio.insecure_channel(self._target.broker, options=[DIRECT]) as channel:
            stub = BrokerServiceStub(channel)
            for partition in self._target.partitions:
                await stub.Produce(produce_request(self._target, partition))

    async def _begin(self, number: int) -> list[Producer]:
        """Return so many producers, each with a transaction of its own."""
        names = await self._ids(number)
        groups = await self._groups()
        limit = asyncio.Semaphore(_AT_ONCE)

        async def begin(
            stub: "CoordinatorServiceAsyncStub", name: str, partition: int, group_id: str
        ) -> Producer:
            async with limit:
                began = await stub.InitProducerId(init_request(name))
            return Producer(
                transactional_id=name, producer_id=began.producer_id,
                producer_epoch=began.producer_epoch, partition=partition, group_id=group_id,
            )  # fmt: skip

        async with grpc.aio.insecure_channel(self._target.coordinator, options=[DIRECT]) as channel:
            stub = CoordinatorServiceStub(channel)
            beginning = map(
                partial(begin, stub), names, cycle(self._target.partitions), cycle(groups)
            )
            return await asyncio.gather(*beginning)

    async def _ids(self, number: int) -> list[str]:
        return await self._target.names(cluster.COORDINATOR_TYPE_TRANSACTION, number)

    async def _groups(self) -> list[str]:
        return await self._target.names(cluster.COORDINATOR_TYPE_GROUP, _GROUPS)
