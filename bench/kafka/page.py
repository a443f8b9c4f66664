"""The section of docs/benchmarks.md that is generated: what stands between two markers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.kafka.report import Report
from bench.kafka.table import Table, tables

PAGE = Path("docs/benchmarks.md")
CHARTS = Path("docs/benchmarks")
BEGIN = "<!-- bench-kafka: begin; `make bench-kafka WRITE=1` writes what follows -->"
END = "<!-- bench-kafka: end -->"


class NoMarkersError(Exception):
    """The page has no place for the section."""


def section(report: Report) -> str:
    """Return the section as Markdown."""
    return "\n".join(_lines(report))


def replaced(page: str, text: str) -> str:
    """Return a page with its section replaced; raises NoMarkersError."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarkersError(f"the page lacks {BEGIN if not begin else END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _lines(report: Report) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"Taken {report.taken}: {report.machine}. {versions}."
    yield ""
    yield _method(report.runs)
    for failure in report.failures:
        yield f"\nFailed, and missing: {failure}"
    for table in tables(report):
        yield from ("", f"{table.title}:", "", *_table(table))
    for name, text in CHART_TEXTS.items():
        yield from ("", f"![{text}]({CHARTS.name}/{name}.svg)")


def _method(runs: int) -> str:
    return f"""\
All systems run all the time, one node each, on loopback; only one has something to do. The clients
take turns, run after run: {runs} of each, after one that does not count. A commit's time includes
that what was sent is flushed and acknowledged. Semel acknowledges after fsync, and so does
`java-flush`, Kafka with `log.flush.interval.messages=1`; `java`, `confluent` and `aiokafka` work on
Kafka as it is set by default, which does not. The settings of every client, with their reasons, are
in `bench/clients/settings.py`."""


def _table(table: Table) -> Iterator[str]:
    yield _row(table.headings)
    yield _row(["---", *["---:"] * (len(table.headings) - 1)])
    for row in table.rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


CHART_TEXTS = {
    "throughput": "Transactions a second against the number of producers, for each client",
    "latency": "The distribution of latencies, for each client",
}
"""The charts, and what they show for who does not see them."""
