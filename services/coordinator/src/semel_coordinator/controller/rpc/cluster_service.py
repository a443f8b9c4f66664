"""The RPCs of ClusterService, each with the object that answers it.

Every coordinator answers questions. Changes are made by the controller; the other coordinators
pass them on (``forward_to_controller``).
"""

from collections.abc import Callable
from dataclasses import dataclass

from semel_common.wire import methods
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.machine import ControllerMachine
from semel_coordinator.controller.rpc.access.alter_client_quotas import QuotaAlterer
from semel_coordinator.controller.rpc.access.create_acls import AclCreator
from semel_coordinator.controller.rpc.access.delete_acls import AclDeleter
from semel_coordinator.controller.rpc.access.describe_acls import AclDescriber
from semel_coordinator.controller.rpc.access.describe_client_quotas import QuotaDescriber
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.current_topics import TopicsNow
from semel_coordinator.controller.rpc.find_coordinator import CoordinatorFinder
from semel_coordinator.controller.rpc.instances.decommission_instance import Decommissioner
from semel_coordinator.controller.rpc.instances.describe_cluster import ClusterDescriber
from semel_coordinator.controller.rpc.instances.register_instance import InstanceRegistrar
from semel_coordinator.controller.rpc.metadata import MetadataTeller
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_coordinator.controller.rpc.metadata_versions import VersionGate
from semel_coordinator.controller.rpc.moves.alter_partition_reassignments import Reassigner
from semel_coordinator.controller.rpc.moves.complete_partition_reassignment import (
    ReassignmentCompleter,
)
from semel_coordinator.controller.rpc.moves.rebalance_partitions import Rebalancer
from semel_coordinator.controller.rpc.topics.create_partitions import PartitionCreator
from semel_coordinator.controller.rpc.topics.create_topics import TopicCreator
from semel_coordinator.controller.rpc.topics.delete_topics import TopicDeleter
from semel_coordinator.controller.rpc.topics.describe_configs import ConfigDescriber
from semel_coordinator.controller.rpc.topics.incremental_alter_configs import ConfigAlterer
from semel_runtime.claims import JournalMark
from semel_runtime.server.calls import Handlers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQuestions:
    """Everything that answers questions about the cluster."""

    reader: MetadataReader
    controller: ControllerMachine
    versions: VersionGate
    liveness: Liveness
    controller_mark: Callable[[], JournalMark | None]
    topics_now: TopicsNow

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        reader = self.reader
        teller = MetadataTeller(
            reader,
            versions=self.versions,
            controller_mark=self.controller_mark,
            topics_now=self.topics_now,
        )
        describer = ClusterDescriber(reader, self.controller, self.liveness)
        handlers.add(methods.METADATA, teller.metadata)
        handlers.add(methods.FIND_COORDINATOR, CoordinatorFinder(reader).find_coordinator)
        handlers.add(methods.DESCRIBE_CLUSTER, describer.describe_cluster)
        handlers.add(methods.DESCRIBE_CONFIGS, ConfigDescriber(reader).describe_configs)
        handlers.add(methods.DESCRIBE_ACLS, AclDescriber(reader).describe_acls, is_list=True)
        handlers.add(methods.DESCRIBE_CLIENT_QUOTAS, QuotaDescriber(reader).describe_client_quotas)


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """Everything that changes the cluster: this instance is the controller."""

    parts: ChangeParts
    registrar: InstanceRegistrar

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        parts = self.parts
        reassigner, completer = Reassigner(parts), ReassignmentCompleter(parts)
        alterer = ConfigAlterer(parts)
        handlers.add(methods.CREATE_TOPICS, TopicCreator(parts).create_topics)
        handlers.add(methods.DELETE_TOPICS, TopicDeleter(parts).delete_topics)
        handlers.add(methods.CREATE_PARTITIONS, PartitionCreator(parts).create_partitions)
        handlers.add(methods.INCREMENTAL_ALTER_CONFIGS, alterer.incremental_alter_configs)
        handlers.add(methods.CREATE_ACLS, AclCreator(parts).create_acls)
        handlers.add(methods.DELETE_ACLS, AclDeleter(parts).delete_acls)
        handlers.add(methods.ALTER_CLIENT_QUOTAS, QuotaAlterer(parts).alter_client_quotas)
        handlers.add(methods.REGISTER_INSTANCE, self.registrar.register_instance)
        handlers.add(
            methods.ALTER_PARTITION_REASSIGNMENTS, reassigner.alter_partition_reassignments
        )
        handlers.add(methods.REBALANCE_PARTITIONS, Rebalancer(parts).rebalance_partitions)
        handlers.add(methods.DECOMMISSION_INSTANCE, Decommissioner(parts).decommission_instance)
        handlers.add(
            methods.COMPLETE_PARTITION_REASSIGNMENT, completer.complete_partition_reassignment
        )
