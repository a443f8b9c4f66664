"""The harness beside Apache Kafka, where it needs no Kafka: its counts, messages and files."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bench.clients.messages import Order, read_order, read_sample, write_order, write_sample
from bench.clients.meter import Meter, NothingMeasuredError
from bench.clients.settings import ClientName, settings_of
from bench.kafka.__main__ import client_commands, contestants, main
from bench.kafka.cells import CELLS, Cell, Contestant, Goal, Unit, UnknownCellError, chosen_cells
from bench.kafka.figures import SHARES, distribution, figure_of, middle, ratio, ratios
from bench.kafka.harness import Harness, Pace
from bench.kafka.page import FOLDER, page, path_of
from bench.kafka.report import (
    CellReport,
    Limit,
    LineReport,
    Report,
    Usage,
    read_report,
    write_report,
)
from bench.kafka.systems import Running
from bench.kafka.table import tables
from bench.kafka_node.server import missing
from bench.workloads import BULK_KIBIBYTES, Sample, Task, transactions

from semel_local import LocalCluster

ROOT = Path(__file__).resolve().parent.parent
RATE = Goal(unit=Unit.TRANSACTIONS, title="work", times=3)
TASK = Task(
    workload=transactions(1),
    name="run",
    source="source",
    records_max=1_000,
    warm_up_s=1.0,
    duration_s=10.0,
)
SAMPLE = Sample(elapsed_s=2.0, transactions=10, records=40, latencies_ms=tuple(range(1, 101)))
FAILING = ("sh", "-c", "read line; exit 7")
REPORT = Report(
    taken="2026-11-22",
    runs=3,
    machine="2 cores",
    versions={"Apache Kafka": "4.1.1"},
    limits=[Limit(name="fdatasync", value=0.5, unit="ms")],
    idle_mib={"semel broker-0": 80.0},
    cells=[
        CellReport(
            name="transactions-8",
            lines=[
                LineReport(
                    unit=Unit.TRANSACTIONS,
                    values={
                        Contestant.SEMEL: [900, 1_000, 1_200],
                        Contestant.JAVA: [300, 250, 240],
                        Contestant.JAVA_FLUSH: [5_000],
                    },
                )
            ],
            usage={
                Contestant.SEMEL: Usage(
                    processor_ms={"client": 1.0, "broker-0": 2.5},
                    peak_mib={"client": 60.0, "broker-0": 90.0},
                )
            },
            records_per_transaction={Contestant.SEMEL: 4.0},
            distributions={},
        )
    ],
)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def meter_at(clock: Clock, ends_s: Sequence[float], task: Task = TASK) -> tuple[Meter, list[float]]:
    """Let a transaction of 4 records end at each time; returns also when the clock started."""
    began: list[float] = []
    meter = Meter(task, lambda: began.append(clock.now_s), clock)
    for number, end_s in enumerate(ends_s):
        clock.now_s = end_s
        meter.ended(4, float(number))
    return meter, began


def test_the_clock_starts_at_the_first_end_after_the_warm_up() -> None:
    meter, began = meter_at(Clock(), [0.4, 0.9, 1.5, 2.0, 3.5])
    assert began == [1.5]
    assert meter.sample() == Sample(
        elapsed_s=2.0, transactions=2, records=8, latencies_ms=(3.0, 4.0)
    )


def test_what_ends_after_the_time_is_over_does_not_count() -> None:
    clock = Clock()
    meter, _ = meter_at(clock, [1.0, 2.0, 3.0, 10.9, 11.1])
    assert meter.over
    assert meter.sample().elapsed_s == pytest.approx(9.9)
    assert meter.sample().transactions == 3


def test_a_run_goes_on_until_some_transactions_have_ended() -> None:
    meter, _ = meter_at(Clock(), [1.0, 6.0, 12.0])
    assert not meter.over
    meter, _ = meter_at(Clock(), [1.0, 6.0, 12.0, 18.0, 24.0])
    assert meter.over
    assert meter.sample().elapsed_s == pytest.approx(17.0)
    assert meter.sample().transactions == 3


def test_reading_all_that_there_is_ends_a_run() -> None:
    meter, _ = meter_at(Clock(), [1.0, 2.0], replace(TASK, records_max=8))
    assert meter.over
    assert meter.sample().records == 4


def test_a_run_in_which_nothing_ended_measures_nothing() -> None:
    meter, _ = meter_at(Clock(), [1.0])
    assert not meter.over
    with pytest.raises(NothingMeasuredError, match="run: 4 records are too few to measure"):
        meter.sample()


@pytest.mark.parametrize("client", ClientName)
@pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])
def test_orders_are_read_as_they_were_written(client: ClientName, cell: Cell) -> None:
    task = replace(TASK, workload=cell.workload)
    order = Order(task=task, settings=settings_of(client, cell.workload))
    assert read_order(write_order(order)) == order


def test_samples_are_read_as_they_were_written() -> None:
    assert read_sample(write_sample(SAMPLE)) == SAMPLE


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        (Unit.TRANSACTIONS, 5.0),
        (Unit.RECORDS, 20.0),
        (Unit.MEGABYTES, 0.02048),
        (Unit.P50, 51),
        (Unit.P99, 100),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_every_unit_is_computed_from_a_sample(unit: Unit, value: float) -> None:
    assert figure_of(SAMPLE, unit, BULK_KIBIBYTES) == pytest.approx(value)


def test_a_distribution_has_a_latency_for_each_share() -> None:
    found = distribution([SAMPLE, SAMPLE])
    assert len(found) == len(SHARES)
    assert (found[0], found[100], found[-1]) == (1, 51, 100)
    assert distribution([replace(SAMPLE, latencies_ms=())]) == ()


@pytest.mark.parametrize(
    ("goal", "values", "times", "each_run"),
    [
        (RATE, {"semel": [90, 100, 120], "java": [30, 25, 20], "aiokafka": [5, 50, 10]}, 4.0, None),
        (RATE, {"semel": [100], "java": [25], "java-flush": [999]}, 4.0, [4.0]),
        (replace(RATE, unit=Unit.P99), {"semel": [2, 4], "java": [8, 4]}, 2.0, [4.0, 1.0]),
        (
            replace(RATE, rivals=(Contestant.JAVA,)),
            {"semel": [100], "java": [25], "confluent": [50]},
            4.0,
            [4.0],
        ),
        (RATE, {"semel": [100, 80], "java": [50]}, 1.8, [2.0]),
        (RATE, {"semel": [100]}, None, []),
        (RATE, {"java": [100]}, None, []),
        (RATE, {}, None, []),
    ],
    ids=["best", "not-flush", "less", "one-rival", "a-failed-run", "alone", "without", "nothing"],
)
def test_semel_is_compared_with_its_best_rival(
    goal: Goal,
    values: Mapping[str, Sequence[float]],
    times: float | None,
    each_run: Sequence[float] | None,
) -> None:
    named = {Contestant(name): taken for name, taken in values.items()}
    assert ratio(goal, named) == times
    if each_run is not None:
        assert ratios(goal, named) == each_run


def test_the_middle_of_nothing_is_nothing() -> None:
    assert middle({Contestant.JAVA: []}, Contestant.JAVA) is None


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    write_report(REPORT, path)
    assert tables(read_report(path)) == tables(REPORT)
    assert page(read_report(path)) == page(REPORT)


def test_tables_show_medians_the_ratio_and_its_spread() -> None:
    results, usage, limits = tables(REPORT)
    title = "transactions of 4 records, 100 B, to 4 partitions, 8 producers"
    assert list(results.rows[0]) == [
        *(title, "1,000", "250", "-", "-", "5,000", "transactions/s"),
        *("4.00", "3.00", "5.00", "≥ 1.7"),
    ]
    used = "3.50: client 1.00, broker-0 2.50"
    assert list(usage.rows[0]) == ["transactions-8", "semel", used, "90.00", "4.00"]
    assert [list(row) for row in limits.rows] == [
        ["fdatasync", "0.50", "ms"],
        ["semel broker-0, idle", "80.00", "MiB"],
    ]


def test_the_page_of_a_report_has_its_date_its_failures_and_its_charts() -> None:
    text = page(replace(REPORT, failures=["java, transactions-8: ended"]))
    assert path_of(REPORT) == FOLDER / "2026-11-22-kafka.md"
    assert "# Semel beside Apache Kafka, 2026-11-22\n" in text
    assert "(2026-11-22-kafka-throughput.svg)" in text
    assert "Taken 2026-11-22: 2 cores. Apache Kafka 4.1.1." in text
    assert "Failed, and missing: java, transactions-8: ended" in text
    assert "| ---: |" in text


def test_the_charts_of_every_page_beside_kafka_are_there() -> None:
    pages = sorted((ROOT / FOLDER).glob("*-kafka.md"))
    assert pages
    for each in pages:
        for name in re.findall(r"\]\(([^)]*\.svg)\)", each.read_text("utf-8")):
            assert (each.parent / name).is_file(), f"{each.name}: {name}"


def test_an_unknown_cell_is_named_with_the_known_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UnknownCellError, match="unknown cell nothing, none; known: transactions-1"):
        chosen_cells(["transactions-8", "nothing", "none"])
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "unknown cell nothing; known: transactions-1, " in capsys.readouterr().err


def test_cells_that_are_chosen_keep_their_order_and_without_any_all_are() -> None:
    assert [chosen_cell.name for chosen_cell in chosen_cells(["visible", "transactions-8"])] == [
        "transactions-8",
        "visible",
    ]
    assert chosen_cells([]) == CELLS


def test_no_run_at_all_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--runs", "0"])
    assert "runs is 0, less than 1" in capsys.readouterr().err


def test_figures_that_are_not_there_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--read", str(ROOT / "nothing")])
    assert "--read is no file: " in capsys.readouterr().err


def test_semel_runs_alone_where_java_and_maven_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert missing() == "java and mvn"
    assert contestants(missing()) == (Contestant.SEMEL,)
    assert contestants(None) == tuple(Contestant)


@pytest.mark.slow
async def test_a_cell_is_measured_on_a_cluster() -> None:
    (cell,) = chosen_cells(["transform-100"])
    pace = Pace(runs=2, warm_up_s=0.0, duration_s=0.3, source_records=200_000)
    async with LocalCluster() as cluster:
        systems = {
            Contestant.SEMEL: Running(bootstrap=cluster.bootstrap, pids={"all": os.getpid()})
        }
        async with Harness(systems, client_commands((Contestant.SEMEL,), systems)) as harness:
            await harness.fill(pace.source_records)
            found = await harness.measure(cell, pace)
    assert harness.failures == []
    (line,) = found.lines
    assert len(line.values[Contestant.SEMEL]) == 2
    assert min(line.values[Contestant.SEMEL]) > 0
    usage = found.usage[Contestant.SEMEL]
    assert set(usage.processor_ms) == set(usage.peak_mib) == {"client", "all"}
    assert 1 <= found.records_per_transaction[Contestant.SEMEL] <= 100


@pytest.mark.slow
async def test_a_client_that_fails_is_named_and_the_others_go_on() -> None:
    (cell,) = chosen_cells(["transactions-1"])
    pace = Pace(runs=1, warm_up_s=0.0, duration_s=0.3)
    async with LocalCluster() as cluster:
        up = Running(bootstrap=cluster.bootstrap, pids={})
        systems = {Contestant.SEMEL: up, Contestant.JAVA: up}
        commands = {
            **client_commands((Contestant.SEMEL,), systems),
            Contestant.JAVA: FAILING,
        }
        async with Harness(systems, commands) as harness:
            found = await harness.measure(cell, pace)
    assert [failure.partition(":")[0] for failure in harness.failures] == [
        "java, bench-transactions-1-java-0",
        "java, bench-transactions-1-java-1",
    ]
    assert "ended with status 7" in harness.failures[0]
    assert set(found.lines[0].values) == {Contestant.SEMEL}


async def test_a_system_that_cannot_be_filled_takes_no_further_part() -> None:
    (cell,) = chosen_cells(["transform-100"])
    up = Running(bootstrap="", pids={})
    commands = {Contestant.JAVA: FAILING, Contestant.AIOKAFKA: FAILING}
    async with Harness(dict.fromkeys(commands, up), commands) as harness:
        await harness.fill(1)
        found = await harness.measure(cell, Pace())
    assert [failure.partition(":")[0] for failure in harness.failures] == ["java, bench-source"]
    assert found.usage == {}
    assert found.lines[0].values == {}
