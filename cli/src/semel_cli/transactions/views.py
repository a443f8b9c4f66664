"""How parts of transactions are shown, whichever command shows them."""

import time
from typing import TYPE_CHECKING

from semel_cli.shared.documents import document
from semel_cli.shared.output import Json
from semel_console.insight.texts import duration_text

if TYPE_CHECKING:
    from aiosemel import Participants, TransactionClient, TransactionDescription


def names(participants: "Participants") -> str:
    """Return what a transaction wrote to, for people."""
    groups = (f"group {group_id}" for group_id in participants.group_ids)
    return ", ".join((*map(str, participants.partitions), *groups))


def age_ms(time_ms: int | None) -> int | None:
    """Return how long ago a time was; None if there is none."""
    return max(0, time.time_ns() // 1_000_000 - time_ms) if time_ms else None


def age_text(time_ms: int | None) -> str | None:
    """Return how long ago a time was, for people."""
    passed_ms = age_ms(time_ms)
    return None if passed_ms is None else duration_text(passed_ms)


def client_text(client: "TransactionClient | None") -> str | None:
    """Return which program writes transactions, for people."""
    return None if client is None else str(client)


def client_document(client: "TransactionClient | None") -> Json:
    """Return the same, for programs."""
    if client is None:
        return None
    names = {"client_id": client.client_id or None, "principal": client.principal or None}
    return document(client, **names)


def transaction_document(each: "TransactionDescription") -> dict[str, Json]:
    """Return a transaction that is not complete, for programs."""
    return {
        "producer_id": each.producer_id or None,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "start_time_ms": each.start_time_ms,
        "participants": document(each.participants),
        "missing_markers": document(each.missing_markers),
        "abort_reason": each.abort_reason,
        "traceparent": each.traceparent or None,
        "prepared_time_ms": each.prepared_time_ms,
        "decided_time_ms": each.decided_time_ms,
    }
