"""How `semel transactions describe` shows an id of joint transactions."""

from typing import TYPE_CHECKING

from semel_cli.shared.output import Facts, Table
from semel_console.insight.texts import duration_text, time_text

if TYPE_CHECKING:
    from aiosemel import JointDescription, TransactionalIdDescription


def joint_facts(described: "TransactionalIdDescription", joint: "JointDescription") -> Facts:
    """Show what there is in place of a producer id and epoch."""
    return Facts(
        {
            "Transactional id": described.transactional_id,
            "Owner": joint.owner,
            "Run": joint.run,
            "Committed version": joint.committed_version,
            "Open version": joint.open_version,
            "Opened": time_text(joint.start_time_ms or 0),
            "Kept alive": time_text(joint.kept_alive_ms or 0),
            "Timeout": duration_text(described.transaction_timeout_ms),
        }
    )


def joint_writers(joint: "JointDescription") -> Table:
    """Show the writers of the version that is open."""
    return Table(
        title="Writers",
        headings=("Writer", "Producer id", "Epoch"),
        rows=[
            (writer.writer, writer.producer_id, writer.producer_epoch) for writer in joint.writers
        ],
    )
