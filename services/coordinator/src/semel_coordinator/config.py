"""Settings of the coordinator."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from semel_common.ids import TRANSACTION_LOG_PARTITIONS_MAX
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.machine import ControllerLimits
from semel_coordinator.transactions.machine import HistoryLimits, TransactionLimits
from semel_coordinator.transactions.markers import MarkerOptions
from semel_runtime.cluster.metadata_image import Layout
from semel_runtime.config import Count, ServiceSettings
from semel_runtime.moving.take_over_loop import TakeOverOptions

PartitionCount = Annotated[int, Field(ge=1, le=TRANSACTION_LOG_PARTITIONS_MAX)]
InstanceCount = Annotated[int, Field(ge=1, le=10_000)]


class CoordinatorSettings(ServiceSettings):
    """What a coordinator needs to know.

    Coordinator 0 is the controller: it reads the layout when it makes the cluster, after which the
    layout is fixed, and the limits of topics at every start. The others take both from it.
    """

    coordinators: InstanceCount = 1
    """Number of coordinator instances. Fixed when the cluster is made; read by coordinator 0."""
    transaction_state_log_num_partitions: PartitionCount = 50
    """Partitions over which transactional ids are spread. Fixed when the cluster is made; read by
    coordinator 0."""
    group_coordinators: InstanceCount = 1
    """Number of group coordinator instances. Fixed when the cluster is made; read by coordinator
    0."""
    offsets_topic_num_partitions: PartitionCount = 50
    """Partitions over which consumer groups are spread. Fixed when the cluster is made; read by
    coordinator 0."""
    num_partitions: Count = 1
    """Partitions of a new topic whose creator names no number."""
    topic_partitions_max: Count = 10_000
    """Partitions of one topic, at most."""
    partitions_max: Count = 100_000
    """Partitions of all topics together, at most."""
    topics_max: Count = 10_000
    """Topics, at most."""
    instance_live_ms: Annotated[int, Field(ge=0)] = 15_000
    """How long an address belongs to one instance alone after its registration, in milliseconds."""
    controller_others_wait_ms: Annotated[int, Field(ge=0)] = 3_000
    """How long coordinator 0, after its start, waits for all instances that it knows to register,
    once a first one has, in milliseconds. Before that, it gives out nothing and changes nothing,
    because these instances know whether its volume is an older copy. If none has come after this
    time, it says that it is ready, because they may be started only then, and waits on."""
    transaction_max_timeout_ms: Count = 900_000
    """The longest timeout that a producer may ask for its transactions, in milliseconds."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: Count = 1_000
    """How often to look for transactions that are past their timeout, in milliseconds."""
    transactional_ids_per_principal_max: Annotated[int, Field(ge=0)] = 25_000
    """Transactional ids that one principal may have at one coordinator; 0: as many as there is room
    for. An id belongs to the principal that made it. Counts where callers are told apart."""
    transactional_id_expiration_ms: Count = 604_800_000
    """How long a transactional id is kept after its last transaction, in milliseconds."""
    transaction_remove_expired_transaction_cleanup_interval_ms: Count = 3_600_000
    """How often to look for transactional ids that have expired, in milliseconds."""

    transaction_history_entries_max: Annotated[int, Field(ge=0)] = 10_000
    """Ended transactions in the history of each transaction-log partition: so many committed ones,
    and as many aborted ones; 0: none."""
    transaction_history_bytes_max: Count = 1_048_576
    """The memory of that history in each transaction-log partition, in bytes, at most: so much for
    committed ones, and as much for aborted ones."""
    transaction_history_retention_ms: Count = 86_400_000
    """How long the history keeps an ended transaction, in milliseconds."""
    audit_entries_max: Count = 10_000
    """Requests of operators in the audit of each coordinator, at most."""

    @model_validator(mode="after")
    def _check_controller(self) -> Self:
        if self.instance_id != CONTROLLER_ID and not self.controller:
            raise ValueError(
                f"controller must be set: coordinator {self.instance_id} has to know where"
                f" coordinator {CONTROLLER_ID} is"
            )
        return self

    @model_validator(mode="after")
    def _check_owners(self) -> Self:
        """Every instance owns something, or it would never be asked."""
        for instances, partitions in (
            ("coordinators", "transaction_state_log_num_partitions"),
            ("group_coordinators", "offsets_topic_num_partitions"),
        ):
            if getattr(self, instances) > getattr(self, partitions):
                raise ValueError(
                    f"{instances} is {getattr(self, instances)}, more than {partitions},"
                    f" which is {getattr(self, partitions)}"
                )
        return self

    def layout(self) -> Layout:
        """Return the layout of a cluster that is made now."""
        return Layout(
            transaction_log_partitions=self.transaction_state_log_num_partitions,
            coordinators=self.coordinators,
            group_partitions=self.offsets_topic_num_partitions,
            group_coordinators=self.group_coordinators,
        )

    def controller_limits(self) -> ControllerLimits:
        """Return the limits of the metadata."""
        return ControllerLimits(
            num_partitions=self.num_partitions,
            topic_partitions_max=self.topic_partitions_max,
            partitions_max=self.partitions_max,
            topics_max=self.topics_max,
        )

    def transaction_limits(self) -> TransactionLimits:
        """Return the limits of transactions."""
        tells_apart = self.authenticates or self.authorizes
        ids_max = self.transactional_ids_per_principal_max if tells_apart else 0
        return TransactionLimits(
            transactional_ids_per_principal_max=ids_max,
            transaction_max_timeout_ms=self.transaction_max_timeout_ms,
            transactional_id_expiration_ms=self.transactional_id_expiration_ms,
            audit_entries_max=self.audit_entries_max,
            history=HistoryLimits(
                entries_max=self.transaction_history_entries_max,
                bytes_max=self.transaction_history_bytes_max,
                age_max_ms=self.transaction_history_retention_ms,
            ),
        )

    def marker_options(self) -> MarkerOptions:
        """Return how markers are sent."""
        return MarkerOptions(
            listener=self.inter_broker_listener_name, request_timeout_ms=self.request_timeout_ms
        )

    def take_over_options(self) -> TakeOverOptions:
        """Return how transaction-log partitions that move here are taken over."""
        return TakeOverOptions(
            listener=self.inter_broker_listener_name, request_timeout_ms=self.request_timeout_ms
        )
