"""The home page: is the cluster well? No I/O."""

from aiosemel import ClusterDescription
from semel_console.insight.command_lines import command_line
from semel_console.insight.doctor_checks import ID_CHURN, Finding
from semel_console.insight.examination import Examined
from semel_console.insight.texts import counted
from semel_console.views import places
from semel_console.views.blocks import (
    Cell,
    Facts,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    badge,
    cell,
    link,
)


def home_page(examined: Examined | Missing, described: ClusterDescription | Missing) -> Page:
    """Return the findings of the doctor, each with its remedy, and facts of the cluster."""
    return Page(
        title="Is the cluster well?",
        command=command_line("doctor"),
        sections=(
            Section(title="", blocks=_findings(examined)),
            Section(title="Cluster", blocks=(_cluster(described),)),
        ),
    )


def _findings(examined: Examined | Missing) -> tuple[Notice | Grid | Missing, ...]:
    if isinstance(examined, Missing):
        return (examined,)
    remarks = tuple(Notice(text=remark, tone=Tone.WARN) for remark in examined.remarks)
    if not examined.findings:
        return (Notice(text="Nothing is wrong.", tone=Tone.GOOD), *remarks)
    count = counted(len(examined.findings), "finding")
    return (
        Notice(text=f"The cluster has {count}.", tone=Tone.BAD),
        *remarks,
        Grid(
            headings=("Check", "What is wrong", "What to do", "See"),
            rows=[_finding(found) for found in examined.findings[:FINDINGS_MAX]],
        ),
    )


FINDINGS_MAX = 50
"""The findings on one page; the command shows all."""


def _finding(found: Finding) -> Row:
    return Row(
        cells=(badge(found.check, Tone.BAD), cell(found.what), cell(found.do), _subject(found))
    )


def _subject(found: Finding) -> Cell:
    if found.transactional_id:
        return link(found.transactional_id, places.transaction(found.transactional_id))
    if found.partition is not None:
        return link(str(found.partition), places.partition(found.partition))
    if found.check == ID_CHURN:
        return link("all ids", places.address("/transactions", state="any"))
    return link("cluster", "/cluster")


def _cluster(described: ClusterDescription | Missing) -> Facts | Missing:
    if isinstance(described, Missing):
        return described
    return Facts(
        pairs=(
            ("Cluster id", cell(described.cluster_id)),
            ("Instances", link(len(described.instances), "/cluster")),
            ("Topics", link(described.topic_count, "/topics")),
            ("Partitions", cell(described.partition_count)),
        )
    )
