"""`semel transactions timeline` of a transaction that is open: its steps, and its participants."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semel_cli.shared.output import Cell, Facts, Json, Table
from semel_cli.transactions.timeline_steps import Step, in_order, steps_document, steps_table
from semel_cli.transactions.views import (
    age_text,
    client_document,
    client_text,
    transaction_document,
)

if TYPE_CHECKING:
    from aiosemel import (
        Admin,
        TopicPartition,
        TransactionalIdDescription,
        TransactionDescription,
    )
    from aiosemel.errors import SemelError
    from semel_console.insight.open_writes import FirstWrite, Offsets, OpenWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """An open transaction, and the answers of its participants."""

    described: "TransactionalIdDescription"
    chosen: "TransactionDescription"
    writes: "OpenWrites"

    @property
    def producer_id(self) -> int:
        """The producer that writes it."""
        return self.chosen.producer_id or self.described.producer_id


async def open_transactions(
    admin: "Admin", transactional_id: str, epoch: int, producer_id: int | None
) -> list[OpenTransaction]:
    """Return the open ones of an epoch: of an id of joint transactions, each writer has its own."""
    from aiosemel.errors import TransactionalIdNotFoundError
    from semel_console.insight.open_writes import UNDECIDED, open_writes

    try:
        described = await admin.describe_transactions(transactional_id)
    except TransactionalIdNotFoundError:
        return []
    return [
        OpenTransaction(
            described=described, chosen=each, writes=await open_writes(admin, described, each)
        )
        for each in described.transactions
        if each.producer_epoch == epoch
        and each.state in UNDECIDED
        and producer_id in {None, each.producer_id or described.producer_id}
    ]


def open_blocks(found: OpenTransaction) -> Iterator[Table | Facts]:
    """Return an open transaction, for people."""
    described, chosen = found.described, found.chosen
    yield Facts(
        {
            "Transactional id": described.transactional_id,
            "Producer id": found.producer_id,
            "Epoch": chosen.producer_epoch,
            "State": chosen.state,
            "Age": age_text(chosen.start_time_ms),
            "Client": client_text(described.client),
            "Trace": chosen.traceparent or None,
        }
    )
    yield steps_table(_steps(found))
    yield Table(
        headings=("Partition or group", "First offset", "Offsets to commit"),
        rows=[*_partitions(found), *_groups(found)],
        empty="The coordinator knows of no partition or group yet.",
    )


def open_document(found: OpenTransaction) -> Json:
    """Return an open transaction, for programs."""
    return {
        "transaction": {
            "transactional_id": found.described.transactional_id,
            **transaction_document(found.chosen),
            "producer_id": found.producer_id,
            "client": client_document(found.described.client),
        },
        "first_writes": [
            _write_document(at, each) for at, each in found.writes.first_writes.items()
        ],
        "offsets_to_commit": [
            _offsets_document(group_id, each) for group_id, each in found.writes.offsets.items()
        ],
        "steps": steps_document(_steps(found)),
    }


def _steps(found: OpenTransaction) -> list[Step]:
    from semel_console.insight.open_writes import FirstWrite

    chosen = found.chosen
    steps = [
        Step(f"first write: {each.partition}, offset {each.first_offset}", each.time_ms)
        for each in found.writes.first_writes.values()
        if isinstance(each, FirstWrite)
    ]
    if chosen.start_time_ms is not None:
        steps.append(Step("registered with its coordinator", chosen.start_time_ms))
    if chosen.prepared_time_ms is not None:
        steps.append(Step("prepared", chosen.prepared_time_ms))
    return in_order(steps)


def _partitions(found: OpenTransaction) -> Iterator[tuple[Cell, ...]]:
    from aiosemel.errors import SemelError

    for at in found.chosen.participants.partitions:
        each = found.writes.first_writes.get(at)
        if isinstance(each, SemelError):
            yield str(at), str(each), None
        else:
            yield str(at), None if each is None else each.first_offset, None


def _groups(found: OpenTransaction) -> Iterator[tuple[Cell, ...]]:
    from aiosemel.errors import SemelError
    from semel_console.insight.open_writes import offsets_text

    for group_id in found.chosen.participants.group_ids:
        each = found.writes.offsets.get(group_id)
        if each is None or isinstance(each, SemelError):
            yield f"group {group_id}", None, None if each is None else str(each)
        else:
            yield f"group {group_id}", None, offsets_text(each) or None


def _write_document(at: "TopicPartition", each: "FirstWrite | SemelError | None") -> Json:
    from aiosemel.errors import SemelError

    place: dict[str, Json] = at._asdict()
    if isinstance(each, SemelError):
        return {**place, "error": str(each)}
    return {
        **place,
        "first_offset": None if each is None else each.first_offset,
        "time_ms": None if each is None else each.time_ms,
    }


def _offsets_document(group_id: str, each: "Offsets | SemelError") -> Json:
    from aiosemel.errors import SemelError

    if isinstance(each, SemelError):
        return {"group_id": group_id, "error": str(each)}
    return {
        "group_id": group_id,
        "offsets": [{**at._asdict(), "offset": each[at]} for at in sorted(each)],
    }
