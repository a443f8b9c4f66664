"""The controller's machine with a journal of its own: decide, append, replay, no event loop."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from semel_coordinator.controller.machine import (
    ControllerLimits,
    ControllerMachine,
    InstanceKey,
    NewTopic,
    Registration,
)
from semel_coordinator.controller.machine.records import (
    ClusterRecord,
    ControllerRecord,
    InstanceRecord,
)
from semel_runtime.claims import ClaimHistory, JournalClaim
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    ServiceRole,
    Topic,
)
from semel_runtime.cluster.topic_options import Overrides
from semel_runtime.machine import Result

T = TypeVar("T")

CLUSTER_ID = "cluster-a"
LAYOUT = Layout(
    transaction_log_partitions=50, coordinators=2, group_partitions=50, group_coordinators=3
)
COORDINATOR, BROKER, GROUP_COORDINATOR = (
    ServiceRole.COORDINATOR,
    ServiceRole.BROKER,
    ServiceRole.GROUP_COORDINATOR,
)


def listener(port: int, *, name: str = "default", host: str = "127.0.0.1") -> Listener:
    return Listener(name=name, host=host, port=port)


def history_of(*claims: tuple[int, str, int], recovered_epoch: int = 0) -> ClaimHistory:
    """Return the history of a journal: claim epochs, tokens, and where the journal ended."""
    return ClaimHistory(
        claims=tuple(
            JournalClaim(claim_epoch=epoch, claim_token=token, start_offset=start)
            for epoch, token, start in claims
        ),
        recovered_epoch=recovered_epoch,
    )


class ControllerHarness:
    """A controller whose cluster is made."""

    def __init__(self, limits: ControllerLimits | None = None, layout: Layout = LAYOUT) -> None:
        self.limits = limits or ControllerLimits()
        self.machine = ControllerMachine(self.limits)
        self.journal: list[ControllerRecord] = []
        self.records: list[ControllerRecord] = []
        """What the last call wrote."""
        self.live: set[InstanceKey] = set()
        """The instances that have registered lately."""
        self._topics = 0
        self.run(self.machine.create_cluster(CLUSTER_ID, layout))

    def run(self, result: Result[T, ControllerRecord]) -> T:
        """Replay the decided records."""
        self.records = list(result.records)
        for record in self.records:
            self.machine.replay(len(self.journal), record)
            self.journal.append(record)
        return result.response

    def register(
        self,
        role: ServiceRole,
        instance_id: int,
        *,
        claim_epoch: int = 1,
        claim_token: str = "a",  # noqa: S107 - no secret, but who the process is
        cluster_id: str = "",
        listeners: Iterable[Listener] | None = None,
        history: ClaimHistory | None = None,
        end: int = 0,
    ) -> ClusterRecord:
        """Register an instance, by default at an address of its own."""
        own = (listener(1000 * role.value + instance_id),) if listeners is None else listeners
        registration = Registration(
            instance=Instance(role=role, instance_id=instance_id, listeners=tuple(own)),
            cluster_id=cluster_id,
            claim_epoch=claim_epoch,
            claim_token=claim_token,
            history=history,
            journal_end_offset=end,
        )
        return self.run(
            self.machine.register_instance(registration, is_live=self.live.__contains__)
        )

    def decommission_last(self, key: InstanceKey) -> None:
        """Decommission the last instance of a role, which older releases accepted."""
        known = next(
            each
            for _, each in self.machine.snapshot()
            if isinstance(each, InstanceRecord)
            and (each.instance.role, each.instance.instance_id) == key
        )
        instance = replace(known.instance, decommissioned=True)
        record = replace(known, version=self.image.version + 1, instance=instance)
        self.run(Result(None, [record]))

    def brokers(self, count: int) -> None:
        """Register the brokers 0 to ``count`` - 1."""
        for instance_id in range(count):
            self.register(BROKER, instance_id)

    def create(
        self,
        name: str,
        partition_count: int = 0,
        *,
        validate_only: bool = False,
        configs: Overrides = (),
    ) -> Topic:
        """Create a topic under the next id."""
        self._topics += 1
        new = NewTopic(
            name=name,
            topic_id=f"topic-{self._topics}",
            partition_count=partition_count,
            configs=configs,
        )
        return self.run(self.machine.create_topic(new, validate_only=validate_only))

    def alter(
        self, name: str, *reset: str, validate_only: bool = False, **set_: str | int
    ) -> Topic:
        """Set options, whose names are given with underscores, and reset others."""
        return self.run(
            self.machine.incremental_alter_configs(
                name,
                set_={option.replace("_", "."): str(value) for option, value in set_.items()},
                reset=reset,
                validate_only=validate_only,
            )
        )

    def enlarge(self, name: str, partition_count: int, *, validate_only: bool = False) -> Topic:
        """Give a topic more partitions."""
        return self.run(
            self.machine.create_partitions(name, partition_count, validate_only=validate_only)
        )

    def delete(self, name: str) -> Topic:
        """Delete a topic."""
        return self.run(self.machine.delete_topic_by_name(name))

    @property
    def image(self) -> ClusterImage:
        """The metadata."""
        return self.machine.image()

    def instance(self, role: ServiceRole, instance_id: int) -> Instance:
        """Return an instance of the metadata."""
        (found,) = (
            each
            for each in self.image.instances
            if each.role is role and each.instance_id == instance_id
        )
        return found

    def leaders(self, topic: Topic) -> list[int]:
        """Return who leads each partition."""
        return [leader.leader_id for leader in topic.partitions]


def replayed(entries: Iterable[tuple[int, ControllerRecord]]) -> ControllerMachine:
    """Return a machine that has seen these entries only."""
    machine = ControllerMachine(ControllerLimits())
    for offset, record in entries:
        machine.replay(offset, record)
    return machine
