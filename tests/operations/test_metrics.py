"""Prometheus sees the state of the cluster; pages, panels and alerts name existing metrics only."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from operations.conftest import TOPIC, Families, Watched
from prometheus_client.metrics_core import Metric

from semel.broker.v1.broker_pb2 import ProducePartition, ProduceRequest
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.error_codes import ErrorCode
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import PRODUCE

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

ROOT = Path(__file__).resolve().parents[2]
SERVICES = {
    "coordinator": "coordinator-0",
    "partition-broker": "broker-0",
    "group-coordinator": "group-coordinator-0",
}
PARTITION = {"topic": TOPIC.topic, "partition": str(TOPIC.partition)}
VISIBLE_RECORDS = 3
"""Of the three that were committed, the one that was aborted, and the one that is open."""
NOT_OURS = {"up"}
"""Series that Prometheus makes itself."""
ADDED = {"namespace"}
"""Labels that Prometheus adds to the metrics that it scrapes."""


def value(families: Families, name: str, **labels: str) -> float:
    """Return the one sample with these labels, or more."""
    family = families[name.removesuffix("_count").removesuffix("_sum").removesuffix("_total")]
    (found,) = [
        sample.value
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found


async def test_how_transactions_stand(watched: Watched) -> None:
    # A producer tells the coordinator of its participants, and waits for nothing.
    # Its age is 0 within the millisecond in which it comes.
    seen = await watched.scrape_until(
        "coordinator-0",
        lambda seen: value(seen, "semel_transaction_oldest_age_seconds", state="ongoing") > 0,
    )
    assert value(seen, "semel_transactions", state="ongoing") == 1
    assert value(seen, "semel_transactions", state="prepared") == 0
    assert value(seen, "semel_transaction_oldest_age_seconds", state="prepared") == 0
    assert value(seen, "semel_transactions_late") == 0
    assert value(seen, "semel_transactional_ids") == 2
    assert value(seen, "semel_request_duration_seconds_count", method="EndTxn") == 4


async def test_how_long_the_phases_of_transactions_take(watched: Watched) -> None:
    seen = await watched.scrape_until(
        "coordinator-0",
        lambda seen: (
            value(seen, "semel_transaction_phase_duration_seconds_count", phase="fan_out") == 4
        ),
    )
    assert value(seen, "semel_transaction_phase_duration_seconds_count", phase="open") == 4
    assert value(seen, "semel_markers_pending", role="broker", instance_id="0") == 0
    assert value(seen, "semel_markers_oldest_age_seconds") == 0


async def test_metrics_name_the_transaction_that_holds_readers_up(watched: Watched) -> None:
    seen = await watched.scrape("broker-0")
    producer_id, producer_epoch = watched.open_producer
    assert value(seen, "semel_partition_open_transactions", **PARTITION) == 1
    assert value(seen, "semel_partition_lso_lag", **PARTITION) == 1
    held = {"producer_id": str(producer_id), "producer_epoch": str(producer_epoch)}
    assert value(seen, "semel_partition_lso_held_seconds", **PARTITION, **held) > 0


async def test_a_lag_counts_what_the_group_will_see(watched: Watched) -> None:
    lag = {"group": "readers", **PARTITION}
    seen = await watched.scrape_until(
        "group-coordinator-0", lambda seen: bool(seen["semel_group_lag_records"].samples)
    )
    assert value(seen, "semel_group_lag_records", **lag) == VISIBLE_RECORDS
    assert value(seen, "semel_group_members", group="readers", state="empty") == 0


async def test_requests_that_are_refused_are_counted_by_reason(watched: Watched) -> None:
    seen = await watched.scrape("coordinator-0")
    refused = {"method": "InitProducerId", "code": "INVALID_TRANSACTION_TIMEOUT"}
    assert value(seen, "semel_requests_refused_total", **refused) == 1


async def test_errors_inside_an_answer_are_counted_once_for_each_request(watched: Watched) -> None:
    damaged = RecordBatch(record_count=1, payload=b"changed on its way", crc32c=1)
    part = ProducePartition(topic=TOPIC.topic, batches=[damaged])
    connector = GrpcConnector()
    broker = connector.connect(watched.cluster.address("broker-0"))
    answer = await broker.call(PRODUCE, ProduceRequest(partitions=[part, part]), timeout_ms=5_000)
    await connector.close()
    codes = {ErrorCode(partition.error.code) for partition in answer.partitions}
    assert codes == {ErrorCode.CORRUPT_MESSAGE}
    seen = await watched.scrape("broker-0")
    refused = {"method": "Produce", "code": "CORRUPT_MESSAGE"}
    assert value(seen, "semel_requests_refused_total", **refused) == 1


@pytest.mark.parametrize("service", SERVICES.values())
async def test_the_journal_is_seen(watched: Watched, service: str) -> None:
    seen = await watched.scrape(service)
    assert value(seen, "semel_journal_commit_duration_seconds_count") > 0
    written_s = value(seen, "semel_journal_write_duration_seconds_sum")
    assert 0 < written_s < value(seen, "semel_journal_commit_duration_seconds_sum")
    assert value(seen, "semel_journal_next_offset") > 0
    assert value(seen, "semel_disk_has_room") == 1
    assert value(seen, "semel_disk_free_bytes") > 0


async def test_the_page_lists_every_metric(watched: Watched) -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `.*", page, re.MULTILINE))
    rows = {row async for row in _rows(watched)}
    assert sorted(listed) == sorted(rows)


async def _rows(watched: Watched) -> AsyncIterator[str]:
    families = {role: await watched.scrape(name) for role, name in SERVICES.items()}
    for name in sorted({name for each in families.values() for name in each}):
        served = [role for role, each in families.items() if name in each]
        family = families[served[0]][name]
        where = "all" if len(served) == len(SERVICES) else ", ".join(served)
        labels = ", ".join(
            sorted({key for sample in family.samples for key in sample.labels} - {"le"})
        )
        yield f"| `{name}` | {family.type} | {labels} | {where} | {family.documentation} |"


async def test_panels_and_alerts_name_existing_metrics(watched: Watched) -> None:
    families = [await watched.scrape(name) for name in SERVICES.values()]
    there = {name: labels for family in families for name, labels in _series(family.values())}
    for expression in _expressions():
        named = {
            name: set(re.findall(r"(\w+)(?:=|!=|=~|!~)", matchers))
            for name, matchers in re.findall(r"\b(semel_\w+|up)\b(?:\{([^}]*)\})?", expression)
        }
        assert named, expression
        for name, labels in named.items():
            if name not in NOT_OURS:
                assert name in there, f"{name} of {expression!r} is not there"
                assert labels <= there[name] | ADDED, f"{name} has no label {labels - there[name]}"


def _series(families: Iterable[Metric]) -> Iterator[tuple[str, set[str]]]:
    for family in families:
        for name in {sample.name for sample in family.samples}:
            keys = {key for each in family.samples if each.name == name for key in each.labels}
            yield name, keys
        if family.type == "counter":  # one that has not counted yet has no sample
            yield f"{family.name}_total", {"service", "method", "code"}


def _expressions() -> Iterator[str]:
    dashboard = json.loads((ROOT / "observability" / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    alerts = (ROOT / "observability" / "alerts.yml").read_text()
    yield from re.findall(r"expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", alerts)
