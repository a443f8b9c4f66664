"""Every RPC while all disks are below their reserve: only new data of users are refused."""

from pathlib import Path

import pytest
from google.protobuf.message import Message

from access.case import TXN, Case
from access.cases import CASES
from access.cluster import ADMIN, BROKER, COORDINATOR, RESERVE_BYTES, SERVICE, Cluster
from access.test_every_rpc import at_work, errors_in
from aiosemel import DiskShortage
from semel.coordinator.v1 import transactions_pb2
from semel_common.error_codes import ErrorCode
from semel_common.errors import SemelError, ThrottlingQuotaExceededError
from semel_common.wire import methods
from semel_common.wire.methods import Method
from semel_runtime.reserve_rules import BELOW_RESERVE, BelowReserve
from semel_runtime.testing.network import Fault
from semel_runtime.testing.virtual_time import after, in_virtual_time

METHODS = {var.path: var for var in vars(methods).values() if isinstance(var, Method)}
OPERATIONS = Path(__file__).parents[2] / "docs" / "run" / "operations.md"


OF_THE_PRODUCER = {
    each.path
    for each in (
        methods.ADD_PARTITIONS_TO_TXN,
        methods.ADD_OFFSETS_TO_TXN,
        methods.END_TXN,
        methods.PREPARE_TXN,
        methods.ABORT_TRANSACTION,
    )
}


def fill(cluster: Cluster, free_bytes: int = 1) -> None:
    for volume in cluster.volumes.values():
        volume.free_bytes = free_bytes


async def codes_of(cluster: Cluster, case: Case, request: Message) -> set[int]:
    """Ask about the open transaction, and return the codes of all errors."""
    if case.method.path in OF_THE_PRODUCER:
        producer_id, producer_epoch = await _open_transaction(cluster)
        key = type(request)(producer_id=producer_id, producer_epoch=producer_epoch)
        request.MergeFrom(key)
    for dry in ("validate_only", "dry_run"):
        if dry in request.DESCRIPTOR.fields_by_name:
            request.ClearField(dry)
    principal = ADMIN if case.rules else SERVICE
    try:
        answer = await cluster.ask(principal, case.address, case.method, request)
    except SemelError as error:
        return {error.code}
    return {error.code for error in errors_in(answer)}


async def _open_transaction(cluster: Cluster) -> tuple[int, int]:
    """Return producer id and epoch."""
    request = transactions_pb2.DescribeTransactionsRequest(transactional_ids=[TXN])
    answer = await cluster.ask(ADMIN, COORDINATOR, methods.DESCRIBE_TRANSACTIONS, request)
    (found,) = answer.descriptions
    return found.producer_id, found.producer_epoch


@pytest.mark.parametrize("free_bytes", [RESERVE_BYTES // 10, RESERVE_BYTES * 6 // 10])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@in_virtual_time
async def test_only_calls_that_store_new_data_are_refused(case: Case, free_bytes: int) -> None:
    """More than half of the reserve is used, or less."""
    async with at_work(case) as (cluster, request):
        fill(cluster, free_bytes)
        codes = await codes_of(cluster, case, request)
    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED in codes
    does = BELOW_RESERVE[case.method.path]
    stores = does is BelowReserve.REFUSED or (
        does is BelowReserve.WITHIN_HALF and free_bytes < RESERVE_BYTES // 2
    )
    assert refused == (stores and not case.name.startswith("Produce of transactional batches")), (
        codes  # The batch of that case is refused for its form.
    )


@in_virtual_time
async def test_the_error_names_instance_folder_bytes_and_setting() -> None:
    case = next(each for each in CASES if each.method is methods.PRODUCE)
    async with at_work(case) as (cluster, request):
        fill(cluster)
        with pytest.raises(ThrottlingQuotaExceededError) as refusal:
            await cluster.ask(ADMIN, BROKER, case.method, request)
    assert refusal.value.message == (
        f"the disk of broker 0 at {BROKER} is below its reserve, so it stores nothing new: 1 bytes"
        " are free in /memory, and disk_reserve_bytes is 1,000; enlarge the volume, delete records"
        " or shorten retention"
    )
    assert refusal.value.details["disk_free_bytes"] == "1"


@in_virtual_time
async def test_the_controller_knows_within_two_seconds_which_disks_are_nearly_full() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        admin = client.admin()
        for free_bytes in (1, RESERVE_BYTES + 1):
            fill(cluster, free_bytes)
            await after(1_500)
            described = await admin.describe_cluster()
            short = [instance.disk_shortage for instance in described.instances]
            shortage = DiskShortage(folder="/memory", free_bytes=1, reserve_bytes=RESERVE_BYTES)
            assert short == [shortage if free_bytes == 1 else None] * len(cluster.apps)


@in_virtual_time
async def test_the_cluster_is_described_without_the_controller() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await client.admin().describe_cluster()
        cluster.network.decide = lambda address, *_: (
            Fault.LOSE_REQUEST if address == COORDINATOR else Fault.NONE
        )
        described = await client.admin().describe_cluster()
        assert len(described.instances) == len(cluster.apps)


@in_virtual_time
async def test_all_instances_start_on_disks_below_their_reserve() -> None:
    cluster = Cluster()
    async with cluster.started(nearly_full=True), cluster.client(ADMIN) as client:
        described = await client.admin().describe_cluster()
        assert len(described.instances) == len(cluster.apps)


def test_the_table_has_every_rpc_and_the_page_names_the_refused_ones() -> None:
    assert BELOW_RESERVE.keys() == METHODS.keys()
    section = OPERATIONS.read_text().split("### SemelDiskFull")[1].split("###")[0]
    for word, does in (
        ("refused", BelowReserve.REFUSED),
        ("go on until", BelowReserve.WITHIN_HALF),
    ):
        row = next(line for line in section.splitlines() if line.startswith(f"| {word}"))
        named = {METHODS[path].name for path, each in BELOW_RESERVE.items() if each is does}
        assert set(row.split("|")[2].split("`")[1::2]) == named
