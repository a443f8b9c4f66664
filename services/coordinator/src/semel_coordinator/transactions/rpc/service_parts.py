"""The parts of a coordinator that its RPCs share."""

from dataclasses import dataclass

from semel_coordinator.transactions.machine import TransactionLimits, TransactionsMachine
from semel_coordinator.transactions.markers import MarkerSender
from semel_coordinator.transactions.rpc.claim import Claim
from semel_coordinator.transactions.rpc.participant_names import TopicNames
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_copy import ClusterCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """Each RPC is a class with these parts, in a file of its own."""

    runner: Runs
    machine: TransactionsMachine
    claim: Claim
    cluster: ClusterCopy
    names: TopicNames
    markers: MarkerSender
    clock: Clock
    limits: TransactionLimits
