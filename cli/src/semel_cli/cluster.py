"""`semel cluster`: describe, moves, rebalance, decommission."""

from typing import TYPE_CHECKING

import typer

from semel_cli.moves import (
    DECOMMISSION_EXAMPLES,
    MOVES_EXAMPLES,
    REBALANCE_EXAMPLES,
    decommission,
    moves,
    rebalance,
)
from semel_cli.output import Facts, Format, FormatOption, Table, examples, show, time_text
from semel_cli.session import BootstrapOption, with_client

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
                    "role": each.role,
                    "instance_id": each.instance_id,
                    "host": each.host,
                    "port": each.port,
                    "claim_epoch": each.claim_epoch,
                    "last_registered_ms": each.last_registered_ms,
                    "leader_partitions": each.leader_partitions,
                    "controller": each.is_controller,
                    "decommissioned": each.is_decommissioned,
                }
                for each in described.instances
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
                    f"{each.role}-{each.instance_id}",
                    f"{each.host}:{each.port}",
                    each.claim_epoch,
                    each.leader_partitions,
                    time_text(each.last_registered_ms or 0),
                    _note(each),
                )
                for each in described.instances
            ],
        ),
    )


app.command(epilog=MOVES_EXAMPLES)(moves)
app.command(epilog=REBALANCE_EXAMPLES)(rebalance)
app.command(epilog=DECOMMISSION_EXAMPLES)(decommission)


def _note(instance: "InstanceDescription") -> str:
    if instance.is_controller:
        return "controller"
    return "decommissioned" if instance.is_decommissioned else ""
