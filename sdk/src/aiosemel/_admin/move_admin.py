"""The part of the admin client that says which instance leads which partition.

The controller decides a move, and the instances carry it out; it goes on after the call has
returned and its caller has ended. Producers and readers go on meanwhile. Every question here goes
to the controller itself, so each call sees the effect of the last one.
"""

from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from functools import partial

from aiosemel._admin.admin_part import AdminPart
from aiosemel._cluster.from_wire import ROLES_ON_WIRE
from aiosemel._cluster.metadata import CONTROLLER_ID, COORDINATOR, topics_in
from aiosemel._cluster.metadata_cache import TOPICS_IN_PAGE, TOPICS_IN_REQUEST
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel.types.descriptions import PartitionReassignment, ServiceRole
from aiosemel.types.offsets import PartitionKey, TopicPartition, by_partition
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import moves_pb2 as moves
from semel_common.ids import InternalTopic
from semel_common.wire import methods, status
from semel_common.wire.methods import Method, Req, Res

_INTERNAL: Mapping[str, ServiceRole] = {
    InternalTopic.CONSUMER_OFFSETS: ServiceRole.GROUP_COORDINATOR,
    InternalTopic.TRANSACTION_STATE: ServiceRole.COORDINATOR,
}
"""What leads the partitions of internal topics."""
_PARTITIONS_IN_REQUEST = 10_000
_WAIT_MS = 5_000
"""How long the controller may take until it answers that nothing has changed."""


class MoveAdmin(AdminPart):
    """Moves partitions between instances. Made by ``Admin.moves``; needs no closing."""

    async def alter_partition_reassignments(
        self, targets: Mapping[PartitionKey, int | None], *, validate_only: bool = False
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Begin to move partitions, each to a broker; None: it stays where it is led.

        None, or the broker that leads now, gives up a move under way; another broker takes the
        place of its target. Returns the result for each partition. ``validate_only`` moves nothing.
        May be repeated. Raises UnknownTopicOrPartitionError, and InvalidRequestError for a broker
        that never registered or is decommissioned; all partitions without an error move in that
        case. Partitions of the topic ``__consumer_offsets`` are those of groups, and move between
        group coordinators; partitions of ``__transaction_state`` move between coordinators, except
        the first one.
        """
        wanted = [*by_partition("targets", targets).items()]
        results: list[moves.PartitionReassignmentResult] = []
        deadline = self._deadline()
        for start in range(0, len(wanted), _PARTITIONS_IN_REQUEST):
            request = moves.AlterPartitionReassignmentsRequest(
                partitions=[
                    moves.PartitionReassignment(
                        topic=each.topic, partition=each.partition, broker_id=target
                    )
                    for each, target in wanted[start : start + _PARTITIONS_IN_REQUEST]
                ],
                validate_only=validate_only,
            )
            response = await self._ask(methods.ALTER_PARTITION_REASSIGNMENTS, request, deadline)
            results += response.partitions
        for result in results:
            if result.HasField("error"):
                raise status.from_value(result.error)
        return _reassigned(results)

    async def list_partition_reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        """Return all partitions that move, by topic and partition."""
        deadline = self._deadline()

        def ask(token: str) -> Awaitable[cluster.MetadataResponse]:
            request = cluster.MetadataRequest(
                all_topics=True, limit=TOPICS_IN_PAGE, page_token=token
            )
            return self._ask(methods.METADATA, request, deadline)

        places = [place async for page in pages(ask) for place in _places(page)]
        return {at: each for at, each in sorted(places) if _moves(each)}

    async def wait_for_reassignments(
        self, partitions: Iterable[PartitionKey]
    ) -> dict[TopicPartition, int]:
        """Return as soon as none of these partitions moves any more; by which brokers they are led.

        A topic that was deleted meanwhile is left out. It takes as long as the moves take: for
        ever, if a broker that takes part is gone. ``asyncio.timeout`` bounds it, and changes
        nothing in the moves.
        """
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for key in partitions:
            topic, partition = TopicPartition.named(key)
            wanted[topic].add(partition)
        request = cluster.MetadataRequest(max_wait_ms=_WAIT_MS)
        if len(wanted) > TOPICS_IN_REQUEST:
            request.all_topics = True
        else:
            request.topics.extend(sorted(wanted))
        while True:
            response = await self._ask(methods.METADATA, request, self._deadline())
            places = {
                at: each
                for at, each in _places(response)
                if at.partition in wanted.get(at.topic, ())
            }
            if not any(map(_moves, places.values())):
                return {at: each.leader_id for at, each in sorted(places.items())}
            request.known_version = response.version

    async def rebalance_partitions(
        self, *, validate_only: bool = False
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Begin the moves after which every instance leads its share; returns them.

        Every broker leads equally many partitions then, to within one: of each topic, and of all
        together; so do group coordinators of groups (``__consumer_offsets``), and coordinators of
        the transaction log (``__transaction_state``). Decommissioned instances have no share. As
        few partitions move as that takes; one that moves already counts where it goes, so this may
        be repeated. ``validate_only`` moves nothing. Raises BrokerNotAvailableError if no instance
        of a role may lead anything.
        """
        request = moves.RebalancePartitionsRequest(validate_only=validate_only)
        response = await self._ask(methods.REBALANCE_PARTITIONS, request, self._deadline())
        return _reassigned(response.partitions)

    async def decommission_instance(
        self, role: ServiceRole, instance_id: int, *, undo: bool = False
    ) -> int:
        """Say that an instance is to lead nothing any more; returns how many partitions it holds.

        Those are the ones that it leads, or that move to it: they stay until
        ``rebalance_partitions``. No new ones come. ``undo`` lets it lead partitions again. May be
        repeated. Raises InvalidRequestError for an instance that has never registered, and for the
        controller, which is coordinator 0.
        """
        request = cluster.DecommissionInstanceRequest(
            role=ROLES_ON_WIRE[role], instance_id=instance_id, decommissioned=not undo
        )
        response = await self._ask(methods.DECOMMISSION_INSTANCE, request, self._deadline())
        return response.leader_partitions

    async def _ask(self, method: Method[Req, Res], request: Req, deadline: Deadline) -> Res:
        controller = partial(self._cluster.address_of, COORDINATOR, CONTROLLER_ID)
        return await self._cluster.call(controller, method, request, deadline=deadline)


def _places(
    response: cluster.MetadataResponse,
) -> Iterator[tuple[TopicPartition, PartitionReassignment]]:
    """Yield the places of partitions; of internal topics, only partitions that moved before."""
    for topic in topics_in(response):
        for partition in topic.partitions:
            place = PartitionReassignment(
                leader_id=partition.leader_id, moving_to=partition.moving_to
            )
            yield TopicPartition(topic.name, partition.partition), place
    for internal in response.internal_partitions:
        known = internal.partition
        yield TopicPartition(internal.topic, known.index), _place(internal.topic, known)


def _moves(each: PartitionReassignment) -> bool:
    return each.moving_to is not None


def _reassigned(
    results: Iterable[moves.PartitionReassignmentResult],
) -> dict[TopicPartition, PartitionReassignment]:
    return {
        TopicPartition(result.topic, result.partition): _place(result.topic, result)
        for result in results
    }


def _place(
    topic: str, known: cluster.Partition | moves.PartitionReassignmentResult
) -> PartitionReassignment:
    return PartitionReassignment(
        role=_INTERNAL.get(topic, ServiceRole.BROKER),
        leader_id=known.leader_id,
        moving_to=known.moving_to if known.HasField("moving_to") else None,
    )
