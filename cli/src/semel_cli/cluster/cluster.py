"""`semel cluster`: describe, moves, rebalance, decommission."""

from typing import TYPE_CHECKING

import typer

from semel_cli.cluster.moves import (
    DECOMMISSION_EXAMPLES,
    MOVES_EXAMPLES,
    REBALANCE_EXAMPLES,
    decommission,
    moves,
    rebalance,
)
from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.output import Facts, Format, FormatOption, Table, examples, show
from semel_console.insight.texts import time_text

if TYPE_CHECKING:
    from aiosemel import InstanceDescription

app = typer.Typer(
    help="Describe the cluster, and share its partitions out over its instances.",
    no_args_is_help=True,
)


@app.command(epilog=examples("semel cluster describe", "semel cluster describe --format json"))
def describe(output_format: FormatOption = Format.TEXT, bootstrap: BootstrapOption = None) -> None:
    """Describe the cluster and its instances."""
    described = with_client(bootstrap, lambda client: client.admin().describe_cluster())
    show(
        output_format,
        {
            "cluster_id": described.cluster_id,
            "version": described.version,
            "transaction_log_partitions": described.transaction_log_partitions,
            "group_partitions": described.group_partitions,
            "topics": described.topic_count,
            "partitions": described.partition_count,
            "instances": [
                {
                    "role": instance.role,
                    "instance_id": instance.instance_id,
                    "host": instance.host,
                    "port": instance.port,
                    "claim_epoch": instance.claim_epoch,
                    "last_registered_ms": instance.last_registered_ms,
                    "leader_partitions": instance.leader_partitions,
                    "controller": instance.is_controller,
                    "decommissioned": instance.is_decommissioned,
                    "disk_shortage": None
                    if instance.disk_shortage is None
                    else document(instance.disk_shortage),
                }
                for instance in described.instances
            ],
        },
        Facts(
            {
                "Cluster": described.cluster_id,
                "Metadata version": described.version,
                "Topics": described.topic_count,
                "Partitions": described.partition_count,
            }
        ),
        Table(
            headings=("Instance", "Address", "Starts", "Leads", "Last heard of", "Note"),
            rows=[
                (
                    f"{instance.role}-{instance.instance_id}",
                    f"{instance.host}:{instance.port}",
                    instance.claim_epoch,
                    instance.leader_partitions,
                    time_text(instance.last_registered_ms or 0),
                    _note(instance),
                )
                for instance in described.instances
            ],
        ),
    )


app.command(epilog=MOVES_EXAMPLES)(moves)
app.command(epilog=REBALANCE_EXAMPLES)(rebalance)
app.command(epilog=DECOMMISSION_EXAMPLES)(decommission)


def _note(instance: "InstanceDescription") -> str:
    notes = {
        "controller": instance.is_controller,
        "decommissioned": instance.is_decommissioned,
        "its disk is nearly full": instance.disk_shortage is not None,
    }
    return ", ".join(note for note, holds in notes.items() if holds)
