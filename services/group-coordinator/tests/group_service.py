"""A whole group coordinator in memory: app, volume, and coordinators that a test scripts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias

from group_harness import CLUSTER_ID, GROUP, PRODUCER_ID, image

from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as wire
from semel_common.wire import methods
from semel_common.wire.methods import Method, Req, Res
from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_runtime.app import Environment
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import LoopClock
from semel_runtime.testing.volume import MemoryVolume


def address_of(instance_id: int) -> str:
    """Return where a group coordinator is."""
    return f"group-coordinator-{instance_id}:1"


ADDRESS = address_of(0)
COMMIT = participants.TransactionResult.TRANSACTION_RESULT_COMMIT
ABORT = participants.TransactionResult.TRANSACTION_RESULT_ABORT
OPEN = transactions.InquiryAnswer(outcome=transactions.INQUIRY_OUTCOME_ONGOING, time_left_ms=60_000)
COMMITTED = transactions.InquiryAnswer(
    outcome=transactions.INQUIRY_OUTCOME_COMMITTED, coordinator_epoch=1
)
ABORTED = transactions.InquiryAnswer(
    outcome=transactions.INQUIRY_OUTCOME_ABORTED, coordinator_epoch=1
)


Inquire: TypeAlias = Callable[
    [transactions.InquireTransactionsRequest, Call],
    Awaitable[transactions.InquireTransactionsResponse],
]


@dataclass(slots=True)
class Coordinators:
    """Both coordinators of the cluster; the first is the controller."""

    network: MemoryNetwork
    controller: ScriptedController = field(
        default_factory=lambda: ScriptedController(image({"orders": 4}))
    )
    answer: Callable[[transactions.Inquiry], transactions.InquiryAnswer] = lambda _: OPEN
    inquiries: list[tuple[int, int]] = field(default_factory=list)
    """What was asked: coordinator and producer epoch."""
    silent: set[int] = field(default_factory=set)
    """Coordinators that never answer inquiries."""

    def serve(self) -> None:
        """Be there."""
        for each in range(2):
            handlers = self.controller.handlers if each == 0 else Handlers()
            handlers.add(methods.INQUIRE_TRANSACTIONS, self._inquire(each))
            self.network.serve(f"coordinator-{each}:1", handlers)

    def topics(self, topics: Mapping[str, int]) -> None:
        """Let the cluster have these topics."""
        self.controller.publish(image(topics, version=self.controller.image.version + 1))

    def _inquire(self, coordinator: int) -> Inquire:
        async def inquire(
            request: transactions.InquireTransactionsRequest, call: Call
        ) -> transactions.InquireTransactionsResponse:
            del call
            assert request.cluster_id == CLUSTER_ID
            self.inquiries += [
                (coordinator, inquiry.producer_epoch) for inquiry in request.inquiries
            ]
            if coordinator in self.silent:
                await asyncio.Event().wait()
            answers = [self.answer(inquiry) for inquiry in request.inquiries]
            return transactions.InquireTransactionsResponse(answers=answers)

        return inquire


@dataclass(slots=True)
class GroupService:
    """A running group coordinator and those around it."""

    network: MemoryNetwork
    volume: MemoryVolume
    coordinators: Coordinators
    app: GroupApp
    address: str = ADDRESS

    async def call(self, method: Method[Req, Res], request: Req) -> Res:
        """Call the group coordinator."""
        return await self.network.connect(self.address).call(method, request, timeout_ms=60_000)

    async def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *owned: int,
        rebalance_timeout_ms: int = 60_000,
        poll_age_ms: int | None = None,
    ) -> wire.ConsumerGroupHeartbeatResponse:
        """Let a member of the group speak; it reads ``orders``."""
        request = wire.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=rebalance_timeout_ms,
            subscription=wire.Subscription(topics=["orders"]),
            owned=wire.OwnedPartitions(),
            poll_age_ms=poll_age_ms,
        )
        if owned:
            request.owned.topics.add(topic_id="orders-id", partitions=owned)
        return await self.call(methods.CONSUMER_GROUP_HEARTBEAT, request)

    async def txn_commit(
        self, offsets: Mapping[int, int], *, epoch: int = 0, producer_id: int = PRODUCER_ID
    ) -> None:
        """Commit offsets of ``orders`` in a transaction, outside of the group."""
        request = wire.TxnOffsetCommitRequest(
            transactional_id="t",
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=GROUP,
            member_epoch=-1,
            topics=[commit_topic(offsets)],
        )
        await self.call(methods.TXN_OFFSET_COMMIT, request)

    async def fetch(self, *partitions: int, require_stable: bool = False) -> list[int | str]:
        """Fetch offsets of ``orders``: a number each, or an error."""
        topic = wire.OffsetFetchTopic(topic="orders", partitions=partitions)
        request = wire.FetchOffsetsRequest(
            group_id=GROUP, topics=[topic], require_stable=require_stable
        )
        response = await self.call(methods.FETCH_OFFSETS, request)
        return [
            offset.error.message if offset.HasField("error") else offset.committed_offset
            for offset in response.offsets
        ]

    async def marker(
        self,
        result: participants.TransactionResult.ValueType,
        *,
        epoch: int = 0,
        awaited: bool = False,
    ) -> None:
        """End a transaction."""
        marker = participants.TxnMarker(
            producer_id=PRODUCER_ID,
            producer_epoch=epoch,
            result=result,
            coordinator_epoch=1,
            participants=participants.Participants(group_ids=[GROUP]),
        )
        request = participants.WriteTxnMarkersRequest(
            cluster_id=CLUSTER_ID, markers=[marker], awaited=awaited
        )
        response = await self.call(methods.GROUP_WRITE_TXN_MARKERS, request)
        assert [list(each.errors) for each in response.results] == [[]]


def commit_topic(offsets: Mapping[int, int]) -> wire.OffsetCommitTopic:
    """Return offsets of ``orders``."""
    return wire.OffsetCommitTopic(
        topic="orders",
        partitions=[
            wire.OffsetCommitPartition(partition=partition, committed_offset=offset)
            for partition, offset in offsets.items()
        ],
    )


def settings(**values: int) -> GroupSettings:
    """Return settings of a group coordinator in a test."""
    return GroupSettings.model_validate(
        {"data_dir": Path("unused"), "controller": "coordinator-0:1", **values}
    )


@asynccontextmanager
async def running(
    coordinators: Coordinators, volume: MemoryVolume, **values: int
) -> AsyncIterator[GroupService]:
    """Run a group coordinator on a volume until the end of the block."""
    network = coordinators.network
    instance_id = values.get("instance_id", 0)
    address = address_of(instance_id)
    environment = Environment(
        journal=MemoryJournal(volume, disk_reserve_bytes=100),
        connector=network,
        clock=LoopClock(),
        random=Random(volume.content.epoch),
        listeners=(Listener(name="default", host=f"group-coordinator-{instance_id}", port=1),),
    )
    async with GroupApp(settings(**values), environment) as app, asyncio.TaskGroup() as group:
        background = group.create_task(app.run(), name="background")
        network.serve(address, app.handlers)
        await app.ready.wait()
        yield GroupService(network, volume, coordinators, app, address)
        network.cut(address)
        background.cancel()


@asynccontextmanager
async def cluster_in_memory(**values: int) -> AsyncIterator[GroupService]:
    """Run a group coordinator on an empty volume, with its coordinators."""
    network = MemoryNetwork()
    coordinators = Coordinators(network)
    coordinators.serve()
    async with running(coordinators, MemoryVolume(), **values) as service:
        yield service
    await network.close()
