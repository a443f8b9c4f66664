"""A cluster in memory, as far as a consumer sees it: metadata, logs, and a group coordinator.

It follows protocol.md sections 4 and 5. ``calls`` is what was asked, ``faults`` the next answers.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fake_connection import FakeConnection
from google.protobuf.message import Message

from aiosemel._shared.change_signal import Signal
from aiosemel.errors import (
    FencedMemberEpochError,
    InvalidTopicError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    SemelError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.group.v1 import group_pb2 as group
from semel_common import ids
from semel_common.record_batches.batches import Columns, control_batch, seal
from semel_common.wire import status


@dataclass(slots=True)
class Log:
    """One partition. What ``hidden`` names by base offset is aborted."""

    leader: int
    batches: list[RecordBatch] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    start: int = 0
    open_from: int | None = None

    @property
    def end(self) -> int:
        return self.batches[-1].base_offset + self.batches[-1].record_count if self.batches else 0

    @property
    def stable(self) -> int:
        return self.end if self.open_from is None else self.open_from


@dataclass(slots=True)
class Member:
    """One member as the group coordinator sees it."""

    epoch: int
    topics: tuple[str, ...] = ()
    owned: frozenset[ids.TopicPartition] = frozenset()
    given: frozenset[ids.TopicPartition] = frozenset()


class FakeCluster:
    """All services. Implements ``Connector``."""

    def __init__(self, brokers: int = 1) -> None:
        self.brokers = brokers
        self.group_host = "group"
        """Where the group coordinator is."""
        self.cluster_id = "c"
        self.version = 1
        self.topics: dict[str, str] = {}
        self.logs: dict[ids.TopicPartition, Log] = {}
        self.changed = Signal()
        self.members: dict[str, Member] = {}
        self.group_epoch = 0
        self.target: Callable[[str], frozenset[ids.TopicPartition]] = self.dealt
        self.committed: dict[ids.TopicPartition, tuple[int, str]] = {}
        self.unstable: set[ids.TopicPartition] = set()
        self.heartbeat_interval_ms = 1_000
        self.calls: list[tuple[str, str, Message]] = []
        self.faults: defaultdict[str, deque[SemelError]] = defaultdict(deque)
        self.held: dict[str, asyncio.Event] = {}
        self.refusals: defaultdict[str, deque[SemelError]] = defaultdict(deque)
        """Errors of the first partition in the next answers, as values."""
        self.illegal: set[str] = set()
        """Names that no topic can have."""
        self.surplus = False
        """Whether answers hold more partitions than were asked for."""
        self.down: set[str] = set()
        self.parked = 0
        """Fetches that wait."""

    # -- arranging -------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1) -> None:
        generation = sum(1 for log in self.logs if log.topic_id.startswith(f"id-{name}-"))
        topic_id = f"id-{name}-{generation}"
        self.topics[name] = topic_id
        self.create_partitions(name, partitions)

    def create_partitions(self, name: str, total: int) -> None:
        self.version += 1
        for partition in range(total):
            log = Log(leader=partition % self.brokers)
            self.logs.setdefault(self.key(name, partition), log)

    def delete_topic(self, name: str) -> None:
        del self.topics[name]
        self.version += 1

    def key(self, topic: str, partition: int = 0) -> ids.TopicPartition:
        return ids.TopicPartition(self.topics[topic], partition)

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.logs[self.key(topic, partition)]

    def append(
        self, topic: str, partition: int, values: Sequence[bytes | None], **columns: object
    ) -> int:
        """Append one batch; returns its base offset."""
        log = self.log(topic, partition)
        batch = seal(
            Columns(
                values=values,
                keys=columns.get("keys"),  # type: ignore[arg-type]  # a test's own
                timestamps_ms=[1_000] * len(values),
                headers=columns.get("headers", {}),  # type: ignore[arg-type]  # a test's own
            ),
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
            transactional=False,
            codec=columns.get("codec", Codec.CODEC_UNSPECIFIED),  # type: ignore[arg-type]  # a test's own
        )
        batch.base_offset = log.end
        log.batches.append(batch)
        self.changed.notify()
        return batch.base_offset

    def append_aborted(self, topic: str, partition: int, values: Sequence[bytes]) -> None:
        """Append a batch with its ABORT marker."""
        self.log(topic, partition).hidden.add(self.append(topic, partition, values))
        self.append_marker(topic, partition, committed=False)

    def append_marker(self, topic: str, partition: int, *, committed: bool) -> None:
        log = self.log(topic, partition)
        marker = control_batch(
            producer_id=1,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=1,
            timestamp_ms=1_000,
        )
        marker.base_offset = log.end
        log.batches.append(marker)
        self.changed.notify()

    def dealt(self, member_id: str) -> frozenset[ids.TopicPartition]:
        """Deal the partitions of all subscribed topics to the members, one by one."""
        members = sorted(self.members)
        wanted = {topic for member in self.members.values() for topic in member.topics}
        partitions = sorted(p for p in self.logs if self._name(p.topic_id) in wanted)
        at = members.index(member_id)
        return frozenset(p for i, p in enumerate(partitions) if i % len(members) == at)

    def expel(self, member_id: str) -> None:
        """Time a member out."""
        del self.members[member_id]
        self.group_epoch += 1

    def asked(self, name: str) -> list[Message]:
        """Return all requests of a method."""
        return [request for method, _, request in self.calls if method == name]

    # -- the network -----------------------------------------------------------------------------

    def cluster_at(self, address: str) -> str:
        del address
        return self.cluster_id

    def connect(self, address: str) -> FakeConnection:
        return FakeConnection(self, address)

    async def close(self) -> None:
        pass

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        self.calls.append((name, address, request))
        await asyncio.sleep(0)
        if address in self.down:
            await asyncio.Event().wait()
        if self.faults[name]:
            raise self.faults[name].popleft()
        if name in self.held:
            await self.held[name].wait()
        handlers: dict[str, Callable[..., object]] = {
            "Metadata": self._metadata,
            "ListOffsets": self._list_offsets,
            "ConsumerGroupHeartbeat": self._heartbeat,
            "CommitOffsets": self._commit_offsets,
            "FetchOffsets": self._fetch_offsets,
        }
        if name == "Fetch":
            assert isinstance(request, broker.FetchRequest)
            return await self._fetch(address, request)
        response = handlers[name](request)
        assert isinstance(response, Message)
        return response

    # -- metadata --------------------------------------------------------------------------------

    def _metadata(self, request: cluster.MetadataRequest) -> cluster.MetadataResponse:
        response = cluster.MetadataResponse(
            cluster_id=self.cluster_id,
            version=self.version,
            layout=cluster.ClusterLayout(
                transaction_log_partitions=1,
                coordinators=1,
                group_partitions=1,
                group_coordinators=1,
            ),
        )
        addresses = [(cluster.SERVICE_ROLE_COORDINATOR, 0, "coordinator")]
        addresses.append((cluster.SERVICE_ROLE_GROUP_COORDINATOR, 0, self.group_host))
        addresses += [(cluster.SERVICE_ROLE_BROKER, i, f"broker{i}") for i in range(self.brokers)]
        for role, instance_id, host in addresses:
            response.instances.add(role=role, instance_id=instance_id, host=host, port=1)
        for name in sorted(self.topics) if request.all_topics else request.topics:
            topic = response.topics.add(name=name)
            if name in self.illegal:
                topic.error.CopyFrom(status.to_value(InvalidTopicError(f"no name: {name}")))
                continue
            if name not in self.topics:
                topic.error.CopyFrom(
                    status.to_value(UnknownTopicOrPartitionError(f"no topic {name}"))
                )
                continue
            topic.topic_id = self.topics[name]
            for key, log in sorted(self.logs.items()):
                if key.topic_id == topic.topic_id:
                    topic.partitions.add(index=key.partition, leader_id=log.leader)
        return response

    def _name(self, topic_id: str) -> str:
        return next((name for name, its in self.topics.items() if its == topic_id), "")

    # -- the broker ------------------------------------------------------------------------------

    async def _fetch(self, address: str, request: broker.FetchRequest) -> broker.FetchResponse:
        loop = asyncio.get_running_loop()
        until = loop.time() + request.max_wait_ms / 1000
        while True:
            response = broker.FetchResponse()
            if self.refusals["Fetch"]:
                asked = request.partitions[0]
                result = response.partitions.add(topic_id=asked.topic_id, partition=asked.partition)
                result.error.CopyFrom(status.to_value(self.refusals["Fetch"].popleft()))
                return response
            for asked in request.partitions:
                response.partitions.append(self._read(address, asked, request))
            full = any(p.batches or p.HasField("error") for p in response.partitions)
            moved = any(
                p.next_offset > asked.fetch_offset
                for p, asked in zip(response.partitions, request.partitions, strict=True)
            )
            if full or moved or loop.time() >= until:
                return response
            self.parked += 1
            try:
                await self.changed.wait((until - loop.time()) * 1000)
            finally:
                self.parked -= 1

    def _read(
        self, address: str, asked: broker.FetchPartition, request: broker.FetchRequest
    ) -> broker.FetchPartitionResult:
        result = broker.FetchPartitionResult(topic_id=asked.topic_id, partition=asked.partition)
        log = self.logs[ids.TopicPartition(asked.topic_id, asked.partition)]
        error = self._refusal(address, asked.topic_id, log, asked.fetch_offset)
        if error is not None:
            result.error.CopyFrom(status.to_value(error))
            return result
        committed = request.isolation_level == broker.ISOLATION_LEVEL_READ_COMMITTED
        upto = log.stable if committed else log.end
        result.high_watermark, result.last_stable_offset = log.end, log.stable
        result.next_offset, size = asked.fetch_offset, 0
        for batch in log.batches:
            after = batch.base_offset + batch.record_count
            if after <= asked.fetch_offset or after > upto:
                continue
            if not (committed and (batch.control or batch.base_offset in log.hidden)):
                if size and size + len(batch.payload) > asked.partition_max_bytes:
                    break
                result.batches.append(batch)
                size += len(batch.payload)
            result.next_offset = after
        return result

    def _refusal(self, address: str, topic_id: str, log: Log, offset: int) -> SemelError | None:
        if topic_id not in self.topics.values():
            return UnknownTopicIdError(f"no topic has the id {topic_id}")
        if address != f"broker{log.leader}:1":
            return NotLeaderOrFollowerError(f"{address} does not lead the partition")
        if not log.start <= offset <= log.end:
            return OffsetOutOfRangeError(f"offset {offset} is not within {log.start} to {log.end}")
        return None

    def _list_offsets(self, request: broker.ListOffsetsRequest) -> broker.ListOffsetsResponse:
        response = broker.ListOffsetsResponse()
        committed = request.isolation_level == broker.ISOLATION_LEVEL_READ_COMMITTED
        for asked in request.partitions:
            log = self.logs[ids.TopicPartition(asked.topic_id, asked.partition)]
            end = log.stable if committed else log.end
            earliest = asked.spec == broker.OFFSET_SPEC_EARLIEST
            found = log.start if earliest else end
            if asked.HasField("timestamp_ms"):
                found = next(
                    (
                        b.base_offset
                        for b in log.batches
                        if b.max_timestamp_ms >= asked.timestamp_ms and b.base_offset < end
                    ),
                    -1,
                )
            response.partitions.add(
                topic_id=asked.topic_id,
                partition=asked.partition,
                offset=found,
                timestamp_ms=1_000 if asked.HasField("timestamp_ms") and found >= 0 else -1,
            )
        if self.refusals["ListOffsets"]:
            refusal = status.to_value(self.refusals["ListOffsets"].popleft())
            response.partitions[0].error.CopyFrom(refusal)
        if self.surplus:
            response.partitions.add()
        return response

    # -- the group coordinator -------------------------------------------------------------------

    def _heartbeat(
        self, request: group.ConsumerGroupHeartbeatRequest
    ) -> group.ConsumerGroupHeartbeatResponse:
        if request.member_epoch == -1:
            self.members.pop(request.member_id, None)
            self.group_epoch += 1
            return group.ConsumerGroupHeartbeatResponse(member_epoch=-1)
        if request.member_epoch == 0:
            self.group_epoch += 1
            self.members[request.member_id] = Member(0, tuple(request.subscription.topics))
        member = self._member(request.member_id, request.member_epoch)
        if request.HasField("subscription"):
            member.topics = tuple(request.subscription.topics)
        if request.HasField("owned"):
            member.owned = frozenset(
                ids.TopicPartition(topic.topic_id, partition)
                for topic in request.owned.topics
                for partition in topic.partitions
            )
            member.given = member.given & member.owned
        before = member.given
        self._reconcile(request.member_id, member)
        response = group.ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
        )
        if member.given != before or request.HasField("owned"):
            response.assignment.CopyFrom(self._assignment(member.given))
        return response

    def _reconcile(self, member_id: str, member: Member) -> None:
        target = self.target(member_id)
        if not member.owned <= target:
            member.given = member.owned & target
            return
        others = [other for name, other in self.members.items() if name != member_id]
        taken = frozenset[ids.TopicPartition]().union(*(o.owned | o.given for o in others))
        member.given = target - taken
        member.epoch = self.group_epoch

    def _assignment(self, given: Iterable[ids.TopicPartition]) -> group.Assignment:
        assignment = group.Assignment()
        for topic_id, partition in sorted(given):
            assignment.topics.add(
                topic_id=topic_id, topic=self._name(topic_id), partitions=[partition]
            )
        return assignment

    def _member(self, member_id: str, epoch: int) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"group has no member {member_id}")
        if epoch != member.epoch:
            raise FencedMemberEpochError(f"member epoch is {member.epoch}, not {epoch}")
        return member

    def _commit_offsets(self, request: group.CommitOffsetsRequest) -> group.CommitOffsetsResponse:
        if request.member_id:
            member = self.members.get(request.member_id)
            if member is None:
                raise UnknownMemberIdError(f"group has no member {request.member_id}")
            if request.member_epoch != member.epoch:
                raise StaleMemberEpochError(
                    f"member epoch is {member.epoch}, not {request.member_epoch}"
                )
        for topic in request.topics:
            for partition in topic.partitions:
                key = ids.TopicPartition(
                    topic.topic_id or self.topics[topic.topic], partition.partition
                )
                if self.refusals["CommitOffsets"]:
                    refusal = status.to_value(self.refusals["CommitOffsets"].popleft())
                    return group.CommitOffsetsResponse(
                        errors=[group.OffsetPartitionError(topic=topic.topic, error=refusal)]
                    )
                self.committed[key] = (partition.committed_offset, partition.metadata)
        return group.CommitOffsetsResponse()

    def _fetch_offsets(self, request: group.FetchOffsetsRequest) -> group.FetchOffsetsResponse:
        response = group.FetchOffsetsResponse()
        if request.member_id:
            self._member(request.member_id, request.member_epoch)
        names = {topic_id: name for name, topic_id in self.topics.items()}
        asked = [
            ids.TopicPartition(topic.topic_id or self.topics[topic.topic], partition)
            for topic in request.topics
            if topic.topic_id or topic.topic in self.topics
            for partition in topic.partitions
        ]
        for topic in request.topics:
            if not topic.topic_id and topic.topic not in self.topics:
                missing = status.to_value(UnknownTopicOrPartitionError(f"no topic {topic.topic}"))
                for partition in topic.partitions:
                    response.offsets.add(topic=topic.topic, partition=partition, error=missing)
        for key in sorted(self.committed) if request.all_partitions else asked:
            offset, metadata = self.committed.get(key, (-1, ""))
            answer = response.offsets.add(topic_id=key.topic_id, topic=names[key.topic_id])
            answer.partition, answer.committed_offset = key.partition, offset
            answer.metadata = metadata
            if key in self.unstable and request.require_stable:
                answer.committed_offset = -1
                answer.error.CopyFrom(status.to_value(UnstableOffsetCommitError("pending")))
        if self.refusals["FetchOffsets"]:
            refusal = status.to_value(self.refusals["FetchOffsets"].popleft())
            response.offsets[0].error.CopyFrom(refusal)
        return response
