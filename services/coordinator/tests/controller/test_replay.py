"""After any requests in any order, the journal, or any snapshot of it, is the whole state."""

from collections.abc import Callable

from controller_harness import ControllerHarness, listener, replayed
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import SemelError
from semel_coordinator.controller.journal.controller_serde import (
    controller_from_journal,
    controller_to_journal,
)
from semel_coordinator.controller.machine import (
    Completion,
    ControllerLimits,
    ControllerMachine,
    InstanceKey,
    QuotaChange,
    Reassignment,
)
from semel_coordinator.controller.machine.records import TopicRecord
from semel_runtime.access.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from semel_runtime.cluster.metadata_image import ServiceRole

Step = Callable[[ControllerHarness], object]

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "not legal"])
KEYS = st.builds(InstanceKey, st.sampled_from(ServiceRole), st.integers(0, 3))
LIMITS = ControllerLimits(topic_partitions_max=6, partitions_max=12, topics_max=3)


def register(key: InstanceKey, ports: set[int], claim_epoch: int, token: str) -> Step:
    listeners = [listener(port, name=f"on-{port}") for port in sorted(ports)]
    return lambda controller: controller.register(
        key.role,
        key.instance_id,
        claim_epoch=claim_epoch,
        claim_token=token,
        listeners=listeners,
    )


def create(name: str, partition_count: int) -> Step:
    return lambda controller: controller.create(name, partition_count)


def alter(name: str, retention_ms: int, reset: list[str]) -> Step:
    return lambda controller: controller.alter(name, *reset, retention_ms=retention_ms)


def enlarge(name: str, partition_count: int) -> Step:
    return lambda controller: controller.enlarge(name, partition_count)


def delete(name: str) -> Step:
    return lambda controller: controller.delete(name)


def live(keys: set[InstanceKey]) -> Step:
    return lambda controller: setattr(controller, "live", keys)


def allow(acl: Acl) -> Step:
    return lambda controller: controller.run(controller.machine.create_acls([acl]))


def forbid(name: str) -> Step:
    wanted = AclFilter(resource_name=name)
    return lambda controller: controller.run(controller.machine.delete_acls([wanted]))


def limit(user: str, rate: float, *, remove: bool) -> Step:
    change = QuotaChange(
        user=user,
        set_={} if remove else {"request_rate": rate},
        remove=("request_rate",) if remove else (),
    )
    return lambda controller: controller.run(controller.machine.alter_client_quotas([change]))


def move(name: str, partition: int, broker_id: int | None) -> Step:
    wanted = [Reassignment(topic=name, partition=partition, broker_id=broker_id)]
    return lambda controller: controller.run(
        controller.machine.alter_partition_reassignments(wanted)
    )


def complete(name: str, partition: int) -> Step:
    """Let the broker take a partition over to which it moves, if it does."""

    def step(controller: ControllerHarness) -> None:
        for topic in controller.image.topics:
            if topic.name == name and partition < len(topic.partitions):
                leader = topic.partitions[partition]
                completion = Completion(
                    topic_id=topic.topic_id,
                    partition=partition,
                    leader_epoch=leader.leader_epoch,
                    broker_id=leader.next_leader_id,
                )
                controller.run(controller.machine.complete_partition_reassignment(completion))

    return step


def decommission(key: InstanceKey, *, to: bool) -> Step:
    return lambda controller: controller.run(controller.machine.decommission_instance(key, to=to))


def rebalance() -> Step:
    return lambda controller: controller.run(controller.machine.rebalance_partitions())


ACLS = st.builds(
    Acl,
    resource_type=st.just(ResourceType.TOPIC),
    resource_name=st.sampled_from(["a", "b"]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:a", "User:*"]),
    operation=st.sampled_from([Operation.READ, Operation.WRITE]),
    permission=st.sampled_from(Permission),
)
PORTS = st.sets(st.integers(1, 4), min_size=1, max_size=3)
STEPS = st.one_of(
    st.builds(register, KEYS, PORTS, st.integers(1, 3), st.sampled_from(["a", "b"])),
    st.builds(create, NAMES, st.integers(0, 7)),
    st.builds(delete, NAMES),
    st.builds(enlarge, NAMES, st.integers(0, 7)),
    st.builds(
        alter,
        NAMES,
        st.integers(-2, 3),
        st.lists(st.sampled_from(["retention.bytes", "retention.ms"]), max_size=1),
    ),
    st.builds(move, NAMES, st.integers(0, 3), st.none() | st.integers(0, 3)),
    st.builds(complete, NAMES, st.integers(0, 3)),
    st.builds(decommission, KEYS, to=st.booleans()),
    st.builds(rebalance),
    st.builds(live, st.sets(KEYS, max_size=2)),
    st.builds(allow, ACLS),
    st.builds(forbid, st.sampled_from(["a", "b", ""])),
    st.builds(limit, st.sampled_from(["", "a"]), st.sampled_from([1.0, 2.0]), remove=st.booleans()),
)


def run(steps: list[Step]) -> ControllerHarness:
    controller = ControllerHarness(LIMITS)
    controller.brokers(2)
    for step in steps:
        try:
            step(controller)
        except SemelError:
            continue
    return controller


def state(machine: ControllerMachine) -> object:
    """Return everything that decisions depend on."""
    known = machine._state
    return (
        known.version,
        known.instances,
        known.holders,
        known.topics,
        known.topic_ids,
        known.names,
        +known.led,
        set(known.acls),
        known.client_quotas,
        machine.image(),
    )


@given(st.lists(STEPS, max_size=30), st.data())
def test_any_prefix_of_the_journal_is_the_state_of_that_time(
    steps: list[Step], data: st.DataObject
) -> None:
    controller = run(steps)
    end = data.draw(st.integers(1, len(controller.journal)))
    entries = list(enumerate(controller.journal))
    restarted = replayed(entries[:end])
    for offset, record in entries[end:]:
        restarted.replay(offset, record)
    assert state(restarted) == state(controller.machine)
    assert [record.version for record in controller.journal] == sorted(
        record.version for record in controller.journal
    )


@given(st.lists(STEPS, max_size=30), st.data())
def test_a_snapshot_takes_the_place_of_what_came_before_it(
    steps: list[Step], data: st.DataObject
) -> None:
    controller = run(steps)
    at = data.draw(st.integers(1, len(controller.journal)))
    entries = list(enumerate(controller.journal))
    snapshot = list(replayed(entries[:at]).snapshot())
    restarted = replayed([*snapshot, *entries[at:]])
    assert state(restarted) == state(controller.machine)
    assert {offset for offset, _ in snapshot} <= set(range(at))
    assert sorted(restarted.snapshot(), key=str) == sorted(controller.machine.snapshot(), key=str)


@given(st.lists(STEPS, max_size=30))
def test_each_address_belongs_to_one_instance_of_a_role(steps: list[Step]) -> None:
    controller = run(steps)
    addresses = [
        (instance.role, own.address)
        for instance in controller.image.instances
        for own in instance.listeners
    ]
    assert len(addresses) == len(set(addresses))


@given(st.lists(STEPS, max_size=30))
def test_the_leader_of_a_partition_changes_only_under_a_higher_epoch(steps: list[Step]) -> None:
    led: dict[tuple[str, int, int], int] = {}
    for record in run(steps).journal:
        if isinstance(record, TopicRecord):
            for index, leader in enumerate(record.topic.partitions):
                at = (record.topic.topic_id, index, leader.leader_epoch)
                assert led.setdefault(at, leader.leader_id) == leader.leader_id


@given(st.lists(STEPS, max_size=30))
def test_records_come_back_from_the_disk_as_they_were(steps: list[Step]) -> None:
    for record in run(steps).journal:
        assert controller_from_journal(controller_to_journal(record)) == record
