"""The permissions that each RPC needs: one table for all services.

A method has clauses. ``Whole``: without the permission, the request is refused. ``Each``: items of
the request are refused one by one, and answered so in their places. ``Shown``: what may not be
described is left out of the answer. ``Ended``: what a transaction may be ended at. Methods that are
``cluster_only`` are what services ask of one another. ``docs/reference/permissions.md`` is made
from this table; a test holds it complete.
"""

from typing import TypeAlias

from msgspec import Struct

from semel_common.wire import methods
from semel_runtime.access.acls import Operation, ResourceType

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


class Whole(Struct, frozen=True, kw_only=True):
    """A permission without which the request is refused."""

    operation: Operation
    resource: ResourceType
    path: str = ""
    """Where the request names the resources; not of the cluster."""
    when: str = ""
    """Only if this field is given."""
    or_when: tuple[str, ...] = ()
    """Also if anything is at one of these paths, whether the resource is named or not."""
    unless: str = ""
    """Not if this field is given."""
    or_any: tuple[Operation, ResourceType] | None = None
    """The same permission on any resource of a type does, too."""


class Ended(Struct, frozen=True, kw_only=True):
    """A permission on each participant that a transaction names as it ends.

    Without it, the coordinator refuses a commit. An abort leaves that participant out: a caller
    whose send was refused must still be able to abort. An id that no topic has counts for nothing:
    a topic may be deleted before the transactions that wrote to it have ended.
    """

    operation: Operation
    resource: ResourceType
    path: str
    """Where the request names them."""
    may_abort: bool = True
    """Whether the request says how the transaction ends; if not, it is as for a commit."""


class Each(Struct, frozen=True, kw_only=True):
    """A permission that each item needs for itself."""

    operation: Operation
    resource: ResourceType
    items: str
    """The repeated field of the request."""
    answers: str
    """The repeated field of the response that answers them, in their order."""
    key: str = ""
    """Where an item names its resource; empty: the item is the name, or has topic and topic_id."""
    into: str = ""
    """Which field of an answer takes the item; empty: all fields of the same names."""
    per: str = ""
    """The repeated field of an item each entry of which has an answer; empty: the item itself."""
    only_refused: bool = False
    """Only what is refused is answered."""
    when: tuple[str, int] | None = None
    """Only if this field has this value."""
    unless: str = ""
    """Not if this field is given."""
    or_cluster: Operation | None = None
    """This permission on the cluster does, too."""


class Shown(Struct, frozen=True, kw_only=True):
    """Items that an answer leaves out unless the caller may describe them."""

    path: str
    """The repeated field."""
    keys: tuple[tuple[ResourceType, str], ...]
    """Which resources an entry names, and where; an empty one counts for nothing."""
    when: str = ""
    """Only if this field of the request is given."""


class All(Struct, frozen=True, kw_only=True):
    """A request for all resources of a type, which the answer lists beside other things."""

    when: str
    """The field of the request that asks for them."""
    resource: ResourceType
    pages: tuple[str, ...]
    """The fields of the request that have a meaning for them only."""


Clause: TypeAlias = Whole | Ended | Each | Shown


class Needs(Struct, frozen=True, kw_only=True):
    """What one method needs."""

    clauses: tuple[Clause, ...] = ()
    cluster_only: bool = False
    """Only the cluster's own services may call it."""
    cluster_only_with: tuple[str, ...] = ()
    """The same, for a request that has one of these fields."""
    ask_anyway: bool = False
    """There is something to answer even if no item is left."""
    at_once: str = ""
    """The time that the request waits, which is none when an item is refused."""
    lists: tuple[ResourceType, ...] = ()
    """All that the answer lists. A caller that may describe no resource of these types has an empty
    answer at once: no work is done for it."""
    lists_all: All | None = None
    """What a request may ask for. Such requests take turns, as lists do; a caller that may describe
    no resource of the type has an answer without them, for which no work is done."""
    because: str = ""
    """Why nothing is needed."""


def _topics(operation: Operation, items: str = "partitions", **more: str) -> Needs:
    return Needs(
        clauses=(Each(operation=operation, resource=TOPIC, items=items, answers=items, **more),)  # type: ignore[arg-type]  # all of them texts
    )


def _transaction(path: str = "transactional_id") -> Whole:
    return Whole(operation=Operation.WRITE, resource=TRANSACTIONAL_ID, path=path)


def _on_cluster(operation: Operation) -> Needs:
    return Needs(clauses=(Whole(operation=operation, resource=CLUSTER),))


def _ended(path: str = "participants", *, may_abort: bool = True) -> tuple[Ended, ...]:
    return (
        Ended(
            operation=Operation.WRITE, resource=TOPIC, path=f"{path}.topics", may_abort=may_abort
        ),
        Ended(
            operation=Operation.READ, resource=GROUP, path=f"{path}.group_ids", may_abort=may_abort
        ),
    )


def _read_group() -> Whole:
    return Whole(operation=Operation.READ, resource=GROUP, path="group_id")


_DESCRIBED_TRANSACTIONS = "descriptions.transactions"
_PARTICIPANT = ((TOPIC, "participant.topic_partition"), (GROUP, "participant.group_id"))

_TRANSACTIONS: dict[str, Needs] = {
    methods.INIT_PRODUCER_ID.path: Needs(
        clauses=(
            Whole(
                operation=Operation.WRITE,
                resource=TRANSACTIONAL_ID,
                path="transactional_id",
                when="transactional_id",
            ),
            Whole(
                operation=Operation.IDEMPOTENT_WRITE,
                resource=CLUSTER,
                unless="transactional_id",
                or_any=(Operation.WRITE, TOPIC),
            ),
        )
    ),
    methods.ADD_PARTITIONS_TO_TXN.path: Needs(
        clauses=(
            _transaction(),
            Whole(operation=Operation.WRITE, resource=TOPIC, path="topics"),
        )
    ),
    methods.ADD_OFFSETS_TO_TXN.path: Needs(clauses=(_transaction(), _read_group())),
    methods.END_TXN.path: Needs(clauses=(_transaction(), *_ended())),
    methods.PREPARE_TXN.path: Needs(clauses=(_transaction(), *_ended(may_abort=False))),
    methods.COMPLETE_PREPARED_TXN.path: Needs(clauses=(_transaction(),)),
    methods.JOIN_TXN.path: Needs(clauses=(_transaction("transaction.transactional_id"),)),
    methods.KEEP_ALIVE_TXN.path: Needs(clauses=(_transaction("transaction.transactional_id"),)),
    methods.END_JOINT_TXN.path: Needs(
        clauses=(_transaction("transaction.transactional_id"), *_ended("writers.participants"))
    ),
    methods.ABORT_TRANSACTION.path: Needs(clauses=(_transaction(),)),
    methods.FENCE_PRODUCER.path: Needs(clauses=(_transaction(),)),
    methods.HAND_OVER_TRANSACTIONS.path: Needs(cluster_only=True),
    methods.GET_TRANSACTION_OUTCOME.path: Needs(
        clauses=(
            Whole(
                operation=Operation.DESCRIBE,
                resource=TRANSACTIONAL_ID,
                path="transactional_id",
                when="transactional_id",
            ),
            Whole(operation=Operation.DESCRIBE, resource=CLUSTER, unless="transactional_id"),
        )
    ),
    methods.DESCRIBE_TRANSACTIONS.path: Needs(
        clauses=(
            Each(
                operation=Operation.DESCRIBE,
                resource=TRANSACTIONAL_ID,
                items="transactional_ids",
                answers="descriptions",
                into="transactional_id",
            ),
            *(
                Shown(path=f"{_DESCRIBED_TRANSACTIONS}.{field}.{names}", keys=((resource, key),))
                for field in ("participants", "missing_markers")
                for names, resource, key in (("topics", TOPIC, ""), ("group_ids", GROUP, ""))
            ),
        )
    ),
    methods.LIST_TRANSACTIONS.path: Needs(
        clauses=(Shown(path="transactions", keys=((TRANSACTIONAL_ID, "transactional_id"),)),),
        lists=(TRANSACTIONAL_ID,),
    ),
    methods.LIST_TRANSACTION_HISTORY.path: Needs(
        clauses=(
            Shown(path="transactions", keys=((TRANSACTIONAL_ID, "transactional_id"),)),
            Shown(path="transactions.participants", keys=_PARTICIPANT),
        ),
        lists=(TRANSACTIONAL_ID,),
    ),
    methods.LIST_AUDIT.path: _on_cluster(Operation.DESCRIBE),
    methods.NOTE_AUDIT.path: Needs(cluster_only=True),
    methods.INQUIRE_TRANSACTIONS.path: Needs(cluster_only=True),
}

_CLUSTER: dict[str, Needs] = {
    methods.METADATA.path: Needs(
        clauses=(
            Each(
                operation=Operation.DESCRIBE,
                resource=TOPIC,
                items="topics",
                answers="topics",
                into="name",
                unless="all_topics",
            ),
            Each(
                operation=Operation.DESCRIBE,
                resource=TOPIC,
                items="topic_ids",
                answers="topics",
                into="topic_id",
                unless="all_topics",
            ),
            Shown(path="topics", keys=((TOPIC, "name"),), when="all_topics"),
        ),
        cluster_only_with=("access_rules", "all_listeners"),
        ask_anyway=True,
        lists_all=All(when="all_topics", resource=TOPIC, pages=("limit", "page_token")),
    ),
    methods.FIND_COORDINATOR.path: Needs(
        clauses=tuple(
            Each(
                operation=Operation.DESCRIBE,
                resource=resource,
                items="keys",
                answers="coordinators",
                into="key",
                when=("type", number),
            )
            for resource, number in ((GROUP, 1), (TRANSACTIONAL_ID, 2))
        )
    ),
    methods.DESCRIBE_CLUSTER.path: _on_cluster(Operation.DESCRIBE),
    methods.CREATE_TOPICS.path: Needs(
        clauses=(
            Each(
                operation=Operation.CREATE,
                resource=TOPIC,
                items="topics",
                answers="topics",
                key="name",
                or_cluster=Operation.CREATE,
            ),
        )
    ),
    methods.DELETE_TOPICS.path: Needs(
        clauses=(
            Each(
                operation=Operation.DELETE,
                resource=TOPIC,
                items="topics",
                answers="topics",
                into="name",
            ),
            Each(
                operation=Operation.DELETE,
                resource=TOPIC,
                items="topic_ids",
                answers="topics",
                into="topic_id",
            ),
        )
    ),
    methods.CREATE_PARTITIONS.path: _topics(Operation.ALTER, "topics", key="name"),
    methods.DESCRIBE_CONFIGS.path: _topics(Operation.DESCRIBE_CONFIGS, "topics", into="name"),
    methods.INCREMENTAL_ALTER_CONFIGS.path: _topics(Operation.ALTER_CONFIGS, "topics", key="name"),
    methods.CREATE_ACLS.path: _on_cluster(Operation.ALTER),
    methods.DELETE_ACLS.path: _on_cluster(Operation.ALTER),
    methods.DESCRIBE_ACLS.path: _on_cluster(Operation.DESCRIBE),
    methods.ALTER_CLIENT_QUOTAS.path: _on_cluster(Operation.ALTER_CONFIGS),
    methods.DESCRIBE_CLIENT_QUOTAS.path: _on_cluster(Operation.DESCRIBE_CONFIGS),
    methods.ALTER_PARTITION_REASSIGNMENTS.path: _on_cluster(Operation.ALTER),
    methods.REBALANCE_PARTITIONS.path: _on_cluster(Operation.ALTER),
    methods.DECOMMISSION_INSTANCE.path: _on_cluster(Operation.ALTER),
    methods.COMPLETE_PARTITION_REASSIGNMENT.path: Needs(cluster_only=True),
    methods.REGISTER_INSTANCE.path: Needs(cluster_only=True),
}

_BROKER: dict[str, Needs] = {
    methods.PRODUCE.path: Needs(
        clauses=(
            Whole(
                operation=Operation.WRITE,
                resource=TRANSACTIONAL_ID,
                path="transactional_id",
                when="transactional_id",
                # Else a caller without an id could write into any transaction.
                or_when=("partitions.batches.transactional", "partitions.records.transactional"),
            ),
            Each(
                operation=Operation.WRITE, resource=TOPIC, items="partitions", answers="partitions"
            ),
        )
    ),
    methods.FETCH.path: Needs(
        clauses=(
            Each(
                operation=Operation.READ, resource=TOPIC, items="partitions", answers="partitions"
            ),
        ),
        at_once="max_wait_ms",
    ),
    methods.LIST_OFFSETS.path: _topics(Operation.DESCRIBE),
    methods.COUNT_RECORDS.path: _topics(Operation.DESCRIBE),
    methods.DELETE_RECORDS.path: _topics(Operation.DELETE),
    methods.DESCRIBE_PRODUCERS.path: _topics(Operation.READ, into="partition"),
    methods.DESCRIBE_WRITES.path: _topics(Operation.READ),
    methods.COPY_LOG.path: Needs(cluster_only=True),
    methods.HAND_OVER_LOG.path: Needs(cluster_only=True),
}

_OFFSET_TOPICS = Each(
    operation=Operation.READ,
    resource=TOPIC,
    items="topics",
    answers="errors",
    per="partitions",
    only_refused=True,
)

_GROUP: dict[str, Needs] = {
    methods.HAND_OVER_GROUPS.path: Needs(cluster_only=True),
    methods.CONSUMER_GROUP_HEARTBEAT.path: Needs(
        clauses=(
            _read_group(),
            Whole(operation=Operation.DESCRIBE, resource=TOPIC, path="subscription.topics"),
        )
    ),
    methods.COMMIT_OFFSETS.path: Needs(clauses=(_read_group(), _OFFSET_TOPICS)),
    methods.FETCH_OFFSETS.path: Needs(
        clauses=(
            Whole(operation=Operation.DESCRIBE, resource=GROUP, path="group_id"),
            Each(
                operation=Operation.DESCRIBE,
                resource=TOPIC,
                items="topics",
                answers="offsets",
                per="partitions",
                unless="all_partitions",
            ),
            Shown(path="offsets", keys=((TOPIC, ""),), when="all_partitions"),
        )
    ),
    methods.TXN_OFFSET_COMMIT.path: Needs(
        clauses=(
            _transaction(),
            _read_group(),
            Whole(operation=Operation.READ, resource=TOPIC, path="topics"),
        )
    ),
    methods.LIST_GROUPS.path: Needs(
        clauses=(Shown(path="groups", keys=((GROUP, "group_id"),)),), lists=(GROUP,)
    ),
    methods.DESCRIBE_GROUPS.path: Needs(
        clauses=(
            Each(
                operation=Operation.DESCRIBE,
                resource=GROUP,
                items="group_ids",
                answers="groups",
                into="group_id",
            ),
            Shown(path="groups.members.subscribed_topics", keys=((TOPIC, ""),)),
            Shown(path="groups.members.assignment", keys=((TOPIC, ""),)),
            Shown(path="groups.members.target", keys=((TOPIC, ""),)),
            Shown(path="groups.pending.topics", keys=((TOPIC, ""),)),
        )
    ),
    methods.DELETE_OFFSETS.path: Needs(
        clauses=(
            Whole(operation=Operation.DELETE, resource=GROUP, path="group_id"),
            _OFFSET_TOPICS,
        )
    ),
    methods.DELETE_GROUPS.path: Needs(
        clauses=(
            Each(
                operation=Operation.DELETE,
                resource=GROUP,
                items="group_ids",
                answers="groups",
                into="group_id",
            ),
        )
    ),
}

_COMMON: dict[str, Needs] = {
    methods.BROKER_WRITE_TXN_MARKERS.path: Needs(cluster_only=True),
    methods.LIST_OPEN_TRANSACTIONS.path: Needs(
        clauses=(Shown(path="transactions", keys=_PARTICIPANT),),
        lists=(TOPIC, GROUP),
    ),
    methods.OPEN_FRAMES.path: Needs(because="each request in a frame is checked for itself"),
}

NEEDS: dict[str, Needs] = _TRANSACTIONS | _CLUSTER | _BROKER | _GROUP | _COMMON
"""By the path of the unary call."""
