"""The controller's machine.

Theory of operation. A cluster is made once, at the first start of coordinator 0, and its layout is
fixed from then on. Instances register at every start, and again from time to time; topics come and
go. Each change that others can see raises the version by one, and gives a new image, which every
other instance copies. An image never goes away from under a reader: it is immutable.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from semel_common.errors import InvalidConfigError
from semel_coordinator.controller.machine.access_rules import QuotaChange, added, limited, removed
from semel_coordinator.controller.machine.instances import decommissioned, held
from semel_coordinator.controller.machine.limits import ControllerLimits
from semel_coordinator.controller.machine.reassignment import (
    Completion,
    Move,
    Reassigned,
    Reassignment,
    completed,
    reassigned,
    rebalanced,
)
from semel_coordinator.controller.machine.records import (
    ClusterRecord,
    ControllerRecord,
    TopicDeletedRecord,
    TopicRecord,
)
from semel_coordinator.controller.machine.recovery import is_behind, taken_over
from semel_coordinator.controller.machine.registration import Registration, registered
from semel_coordinator.controller.machine.state import CONTROLLER, ControllerState, InstanceKey
from semel_coordinator.controller.machine.topics import (
    NewTopic,
    created,
    enlarged,
    identified,
    named,
    reconfigured,
)
from semel_runtime.access.acls import Acl, AclFilter
from semel_runtime.access.client_quotas import ClientQuota
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_image import ClusterImage, Layout, Topic
from semel_runtime.machine import Result


class ControllerMachine:
    """Decides on the cluster, its instances, its topics, and permissions."""

    def __init__(self, limits: ControllerLimits) -> None:
        """Start without a cluster."""
        self._limits = limits
        self._state = ControllerState()

    def replay(self, offset: int, record: ControllerRecord) -> None:
        """Apply one record."""
        self._state.replay(offset, record)

    def snapshot(self) -> Iterable[tuple[int, ControllerRecord]]:
        """Return records that make the same state."""
        return self._state.snapshot()

    # -- questions -----------------------------------------------------------------------------

    @property
    def has_cluster(self) -> bool:
        """Whether the cluster was made here: whether this is the controller's journal."""
        return self._state.cluster is not None

    def image(self) -> ClusterImage:
        """Return the metadata; the same object until something changes."""
        return self._state.image()

    def claim_epoch_of(self, key: InstanceKey) -> int:
        """Return the last claim epoch that an instance registered; 0 if it never did."""
        known = self._state.instances.get(key)
        return 0 if known is None else known.claim_epoch

    def marks(self) -> dict[InstanceKey, JournalMark]:
        """Return how far the journal of each instance went when it registered last."""
        return {key: known.mark for key, known in self._state.instances.items()}

    def other_instances(self) -> list[InstanceKey]:
        """Return the instances but the controller that may lead partitions, in order."""
        return sorted(
            key
            for key, known in self._state.instances.items()
            if key != CONTROLLER and not known.instance.decommissioned
        )

    # -- changes -------------------------------------------------------------------------------

    def create_cluster(
        self, cluster_id: str, layout: Layout
    ) -> Result[ClusterRecord, ControllerRecord]:
        """Make the cluster at the first start; later, check that the layout is the same.

        ``cluster_id`` counts at the first start only. Raises InvalidConfigError naming the setting
        that differs.
        """
        cluster = self._state.cluster
        if cluster is None:
            made = ClusterRecord(
                version=self._state.version + 1, cluster_id=cluster_id, layout=layout
            )
            return Result(made, (made,))
        _check_same_layout(layout, cluster.layout)
        return Result(cluster)

    def register_instance(
        self, registration: Registration, *, is_live: Callable[[InstanceKey], bool]
    ) -> Result[ClusterRecord, ControllerRecord]:
        """Note where an instance is; idempotent for one process.

        ``is_live`` tells who registered lately. Errors: see ``registration.registered``.
        """
        records = registered(self._state, registration, is_live)
        # A longer journal of a process that is known is news for the next start, so it has time.
        patient = not self._is_news(registration)
        return Result(self._state.made_cluster(), records, patient=patient)

    def is_behind(self, image: ClusterImage) -> bool:
        """Whether an image that another instance keeps is newer than the state here."""
        return is_behind(self._state, image)

    def taken_over(
        self, image: ClusterImage, marks: Mapping[InstanceKey, JournalMark]
    ) -> list[ControllerRecord]:
        """Return the records that make the metadata those of an image; see recovery.py."""
        return list(taken_over(self._state, image, marks))

    def create_topic(
        self, new: NewTopic, *, validate_only: bool = False
    ) -> Result[Topic, ControllerRecord]:
        """Create a topic, or only say what it would be. Errors: see ``topics.created``."""
        topic = created(self._state, self._limits, new)
        if validate_only:
            return Result(topic)
        return Result(topic, (TopicRecord(version=self._state.version + 1, topic=topic),))

    def create_partitions(
        self, name: str, partition_count: int, *, validate_only: bool = False
    ) -> Result[Topic, ControllerRecord]:
        """Give a topic more partitions, up to this number.

        Raises UnknownTopicOrPartitionError; see also ``topics.enlarged``.
        """
        topic = enlarged(self._state, self._limits, named(self._state, name), partition_count)
        if validate_only:
            return Result(topic)
        return Result(topic, (TopicRecord(version=self._state.version + 1, topic=topic),))

    def incremental_alter_configs(
        self,
        name: str,
        *,
        set_: Mapping[str, str],
        reset: Iterable[str] = (),
        validate_only: bool = False,
    ) -> Result[Topic, ControllerRecord]:
        """Set some options of a topic, and give others their defaults again; idempotent.

        Raises UnknownTopicOrPartitionError, InvalidConfigError.
        """
        known = named(self._state, name)
        topic = reconfigured(known, set_=set_, reset=reset)
        if validate_only or topic == known:
            return Result(topic)
        return Result(topic, (TopicRecord(version=self._state.version + 1, topic=topic),))

    def delete_topic_by_name(self, name: str) -> Result[Topic, ControllerRecord]:
        """Delete a topic. Raises UnknownTopicOrPartitionError."""
        return self._delete(named(self._state, name))

    def delete_topic_by_id(self, topic_id: str) -> Result[Topic, ControllerRecord]:
        """Delete a topic. Raises UnknownTopicIdError."""
        return self._delete(identified(self._state, topic_id))

    def alter_partition_reassignments(
        self, wanted: Sequence[Reassignment], *, validate_only: bool = False
    ) -> Result[list[Reassigned], ControllerRecord]:
        """Begin, change or give up moves, each by itself; answers in the order of the request.

        Idempotent. Errors: see ``reassignment.reassigned``.
        """
        answers, records = reassigned(self._state, wanted)
        return Result(answers, () if validate_only else records)

    def rebalance_partitions(
        self, *, validate_only: bool = False
    ) -> Result[list[Move], ControllerRecord]:
        """Begin the moves after which every instance leads its share; idempotent.

        Raises BrokerNotAvailableError if no instance of a role may lead anything.
        """
        moves, records = rebalanced(self._state)
        return Result(moves, () if validate_only else records)

    def complete_partition_reassignment(
        self, completion: Completion
    ) -> Result[None, ControllerRecord]:
        """Make the broker the leader that has taken a partition over; idempotent.

        Errors: see ``reassignment.completed``.
        """
        return Result(None, completed(self._state, completion))

    def decommission_instance(
        self, key: InstanceKey, *, to: bool = True
    ) -> Result[int, ControllerRecord]:
        """Say that an instance is to lead nothing any more, or that it may again; idempotent.

        Answers how many partitions it leads now, or that move to it. Raises
        InvalidRequestError for one that never registered, and for the controller.
        """
        records = decommissioned(self._state, key, to=to)
        return Result(held(self._state, key), records)

    def create_acls(
        self, acls: Iterable[Acl], *, validate_only: bool = False
    ) -> Result[list[Acl], ControllerRecord]:
        """Add rules, all or none; answers the new ones. Errors: see ``access.added``."""
        records = added(self._state, self._limits, acls)
        return Result([record.acl for record in records], () if validate_only else records)

    def delete_acls(
        self, filters: Sequence[AclFilter], *, validate_only: bool = False
    ) -> Result[list[Acl], ControllerRecord]:
        """Remove every rule that any filter matches; answers them."""
        records = removed(self._state, filters)
        return Result([record.acl for record in records], () if validate_only else records)

    def alter_client_quotas(
        self, changes: Sequence[QuotaChange], *, validate_only: bool = False
    ) -> Result[list[ClientQuota], ControllerRecord]:
        """Change limits of users, all or none; idempotent. Errors: see ``access.limited``."""
        after, records = limited(self._state, self._limits, changes)
        return Result(after, () if validate_only else records)

    def _is_news(self, registration: Registration) -> bool:
        known = self._state.instances.get(registration.key)
        return known is None or known.claim_token != registration.claim_token

    def _delete(self, topic: Topic) -> Result[Topic, ControllerRecord]:
        version = self._state.version + 1
        return Result(topic, (TopicDeletedRecord(version=version, topic_id=topic.topic_id),))


def _check_same_layout(given: Layout, fixed: Layout) -> None:
    """Raise InvalidConfigError, in the words of the settings, which are Kafka's."""
    for option, now, before in (
        (
            "transaction_state_log_num_partitions",
            given.transaction_log_partitions,
            fixed.transaction_log_partitions,
        ),
        ("coordinators", given.coordinators, fixed.coordinators),
        ("offsets_topic_num_partitions", given.group_partitions, fixed.group_partitions),
        ("group_coordinators", given.group_coordinators, fixed.group_coordinators),
    ):
        if now != before:
            raise InvalidConfigError(
                f"{option} is {now}, but the cluster was made with {before}, which is fixed from"
                f" then on: set it to {before}",
                option=option,
            )
