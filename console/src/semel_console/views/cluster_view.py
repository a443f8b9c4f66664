"""The instances of the cluster, and partitions on their way between them. No I/O."""

from collections.abc import Mapping

from aiosemel import (
    ClusterDescription,
    InstanceDescription,
    PartitionReassignment,
    TopicPartition,
)
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import time_text
from semel_console.views import places
from semel_console.views.blocks import (
    Bar,
    Block,
    Cell,
    Chart,
    Facts,
    Grid,
    Missing,
    Page,
    Row,
    Section,
    Tone,
    badge,
    cell,
    link,
)

MOVES_MAX = 100


def cluster_page(
    described: ClusterDescription | Missing,
    moving: Mapping[TopicPartition, PartitionReassignment] | Missing,
) -> Page:
    """Return the instances and the moves."""
    return Page(
        title="Cluster",
        command=command_line("cluster", "describe"),
        sections=(
            Section(title="", blocks=_instances(described)),
            Section(
                title="Partitions that move",
                blocks=(moving if isinstance(moving, Missing) else _moves(moving),),
            ),
        ),
    )


def _instances(described: ClusterDescription | Missing) -> tuple[Block, ...]:
    if isinstance(described, Missing):
        return (described,)
    facts = Facts(
        pairs=(
            ("Cluster id", cell(described.cluster_id)),
            ("Metadata version", cell(described.version)),
            ("Topics", link(described.topic_count, "/topics")),
            ("Partitions", cell(described.partition_count)),
        )
    )
    brokers = [each for each in described.instances if each.role.value == "broker"]
    chart = Chart(
        caption="Partitions of topics that each broker leads",
        bars=[
            Bar(label=_name(each), value=each.leader_partitions, text=str(each.leader_partitions))
            for each in brokers
        ],
    )
    grid = Grid(
        headings=("Instance", "Address", "Starts", "Leads", "Last registered", "Note"),
        numbers=frozenset({2, 3}),
        rows=[
            Row(
                cells=(
                    cell(_name(each)),
                    cell(f"{each.host}:{each.port}"),
                    cell(each.claim_epoch),
                    cell(each.leader_partitions),
                    cell(time_text(each.last_registered_ms or 0)),
                    _note(each),
                )
            )
            for each in described.instances
        ],
    )
    return (facts, chart, grid) if len(brokers) > 1 else (facts, grid)


def _name(each: InstanceDescription) -> str:
    return f"{each.role}-{each.instance_id}"


def _note(each: InstanceDescription) -> Cell:
    if each.disk_shortage is not None:
        free = f"{each.disk_shortage.free_bytes:,} bytes free"
        return badge(f"its disk is nearly full: {free}", Tone.BAD)
    if each.is_decommissioned:
        return badge("decommissioned", Tone.MUTED)
    return badge("controller", Tone.GOOD) if each.is_controller else cell(None)


def _moves(moving: Mapping[TopicPartition, PartitionReassignment]) -> Grid:
    return Grid(
        headings=("Partition", "From", "To"),
        rows=[
            Row(
                cells=(
                    link(str(at), places.partition(at)),
                    cell(each.leader),
                    cell(each.target, Tone.WARN),
                )
            )
            for at, each in list(moving.items())[:MOVES_MAX]
        ],
        empty="No partition moves.",
    )
