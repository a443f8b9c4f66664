"""The problems that `semel doctor` looks for, and the remedy for each. No I/O.

Every check takes what the cluster has answered, and yields what is wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import duration_text, place

if TYPE_CHECKING:
    from aiosemel import (
        ClusterDescription,
        OpenTransaction,
        OpenTransactions,
        PartitionReassignment,
        TopicPartition,
        TransactionListing,
        TransactionOutcomeDescription,
    )
    from aiosemel.errors import SemelError

_COORDINATOR = "coordinator"
_ONGOING = "Ongoing"
_PREPARED = "Prepared"
_DECIDED = ("PrepareCommit", "PrepareAbort")
_UNDECIDED = ("ONGOING", "PREPARED")
_USED_ONCE_EPOCH = 2
"""An id whose producer has come no further has done one transaction."""
_DUEL = 3
ID_CHURN = "id churn"
_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From when on something is worth a word."""

    stuck_ms: int = 60_000
    """Open at a participant after its outcome is decided: it asks every 10 seconds by default."""
    late_ms: int = 30_000
    """Decided, and markers are missing."""
    timeout_share: float = 0.8
    """Of the transaction time-out that has passed."""
    prepared_ms: int = 3_600_000
    idle_ms: int = 3_600_000
    """After which an id that was used once counts as left behind."""
    churn_ids: int = 100
    """So many ids that were used once, and are more than half of all, are churn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    check: str
    what: str
    do: str
    transactional_id: str = ""
    """The id that it is about, if it is about one."""
    partition: "TopicPartition | None" = None
    """The partition that it is about, if it is about one."""


def unreachable(found: "OpenTransactions") -> Iterator[Finding]:
    """Instances that do not answer."""
    for instance in found.unreachable:
        yield Finding(
            check="unreachable",
            what=f"{instance}",
            do="start it again, or repair its network: transactions that wrote there wait for it",
        )


def silent_coordinators(
    described: "ClusterDescription", errors: Iterable["SemelError"]
) -> Iterator[Finding]:
    """Coordinators that do not answer, each once."""
    names = {
        f"{each.host}:{each.port}": f"{each.role}-{each.instance_id}"
        for each in described.instances
        if each.role.value == _COORDINATOR
    }
    silent = {names.get(str(each.details.get("address", "")), ""): each for each in errors}
    for name, error in silent.items():
        yield Finding(
            check="unreachable",
            what=f"{name}: {error.message}" if name else error.message,
            do="start it again, or repair its network: its transactional ids wait for it",
        )


def full_disks(described: "ClusterDescription") -> Iterator[Finding]:
    """Instances that refuse new data: the free space of their disks is below the reserve."""
    for instance in described.instances:
        shortage = instance.disk_shortage
        if shortage is None:
            continue
        state = "below its reserve" if shortage.free_bytes else "full"
        yield Finding(
            check="disk",
            what=(
                f"the disk of {instance.role}-{instance.instance_id}"
                f" at {instance.host}:{instance.port} is {state}:"
                f" {shortage.free_bytes:,} bytes are free in {shortage.folder}, and"
                f" disk_reserve_bytes is {shortage.reserve_bytes:,}; the instance refuses new data"
            ),
            do=(
                "enlarge the volume, delete records (`semel topics delete-records`, `semel topics"
                " delete`), or shorten retention (`semel topics alter`)"
            ),
        )


def waiting_moves(
    moving: Mapping["TopicPartition", "PartitionReassignment"], found: "OpenTransactions"
) -> Iterator[Finding]:
    """Partitions on their way between instances of which one does not answer: they wait for it."""
    away = {each.partition(":")[0] for each in found.unreachable}
    for at, each in moving.items():
        for instance in (each.leader, each.target):
            if instance in away:
                yield Finding(
                    check="waiting move",
                    what=(
                        f"{at} moves from {each.leader} to {each.target}, and {instance} does not"
                        " answer"
                    ),
                    do=(f"start {instance} again, or give the move up: `{_cancelled(at)}`"),
                    partition=at,
                )


def stuck(found: Iterable["OpenTransaction"], limits: Thresholds) -> Iterator[Finding]:
    """Decided transactions that are still open at a participant."""
    for transaction in found:
        if transaction.age_ms < limits.stuck_ms or not transaction.coordinator_answered:
            continue
        if transaction.known is None:
            says = f"its coordinator says: {transaction.problem}"
        elif transaction.known.outcome.value not in _UNDECIDED:
            says = f"its coordinator says: {transaction.known.outcome}"
        else:
            continue
        yield Finding(
            check="stuck",
            what=(
                f"{place(transaction)} has had transaction"
                f" {transaction.producer_id}/{transaction.producer_epoch} open"
                f" for {duration_text(transaction.age_ms)}; {says}"
            ),
            do=(
                "this instance should have asked its coordinator: check that it reaches the"
                " coordinators, and read the lines about inquiries in its log; then restart it"
            ),
            partition=transaction.partition,
        )


def nearly_timed_out(found: Iterable["OpenTransaction"], limits: Thresholds) -> Iterator[Finding]:
    """Open transactions whose time is almost over, each once."""
    seen: set[tuple[int, int]] = set()
    for transaction in found:
        key = (transaction.producer_id, transaction.producer_epoch)
        known = transaction.known
        if known is None or known.time_left_ms is None or key in seen:
            continue
        whole_ms = transaction.age_ms + known.time_left_ms
        if transaction.age_ms < limits.timeout_share * whole_ms:
            continue
        seen.add(key)
        yield Finding(
            check="nearly timed out",
            what=(
                f"transaction {known.transactional_id}/{transaction.producer_epoch} has been open"
                f" for {duration_text(transaction.age_ms)}, and aborts in"
                f" {duration_text(known.time_left_ms)}"
            ),
            do=(
                "if its producer is alive, give it smaller transactions or a longer"
                f" transaction_timeout_ms; if not, `{_aborted(transaction, known)}` frees its"
                " readers now"
            ),
            transactional_id=known.transactional_id,
            partition=transaction.partition,
        )


def late_markers(
    listed: Iterable["TransactionListing"], limits: Thresholds, now_ms: int
) -> Iterator[Finding]:
    """Decided transactions that wait for their markers."""
    for entry in listed:
        waits = entry.incomplete_transactions and (entry.state in _DECIDED)
        if waits and now_ms - entry.last_update_time_ms >= limits.late_ms:
            yield Finding(
                check="late",
                what=(
                    f"{entry.transactional_id} has {entry.incomplete_transactions} decided"
                    " transactions whose markers are not all written, for"
                    f" {duration_text(now_ms - entry.last_update_time_ms)}"
                ),
                do=(
                    f"`{_described(entry)}` names the participants without markers: check that"
                    " their instances run and can be reached"
                ),
                transactional_id=entry.transactional_id,
            )


def prepared_for_long(
    listed: Iterable["TransactionListing"], limits: Thresholds, now_ms: int
) -> Iterator[Finding]:
    """Transactions that wait for the decision of their owner, however long it takes."""
    for entry in listed:
        age_ms = now_ms - (entry.start_time_ms or now_ms)
        if entry.state.value == _PREPARED and age_ms >= limits.prepared_ms:
            yield Finding(
                check="prepared",
                what=(
                    f"transaction {entry.transactional_id}/{entry.producer_epoch} has been prepared"
                    f" for {duration_text(age_ms)}; readers wait behind it"
                ),
                do=(
                    "let its owner complete it. If its application keeps a database with Semel"
                    " (with_database) and no process of it comes back, `semel transactions resolve"
                    " --database URL` reads the decision there; it passes over transactions of"
                    " other applications. If another system decides, learn its decision and"
                    f" use `{_completed(entry)}`, or --abort in place of --commit"
                ),
                transactional_id=entry.transactional_id,
            )


def duels(listed: Iterable["TransactionListing"]) -> Iterator[Finding]:
    """Ids that several producers take from one another."""
    for entry in listed:
        if entry.fenced_transactions >= _DUEL:
            yield Finding(
                check="duel",
                what=(
                    f"{entry.transactional_id} was taken over {entry.fenced_transactions} times in"
                    " its last 256 transactions"
                ),
                do=(
                    "give every instance of the application an id of its own; if it restarts this"
                    " often, its log says why"
                ),
                transactional_id=entry.transactional_id,
            )


def churn(
    listed: Sequence["TransactionListing"], limits: Thresholds, now_ms: int
) -> Iterator[Finding]:
    """Ids that are made for one transaction each."""
    once = [
        entry
        for entry in listed
        if entry.producer_epoch <= _USED_ONCE_EPOCH
        and entry.state.value != _ONGOING
        and now_ms - entry.last_update_time_ms >= limits.idle_ms
    ]
    if len(once) >= limits.churn_ids and 2 * len(once) > len(listed):
        yield Finding(
            check=ID_CHURN,
            what=(
                f"{len(once)} of {len(listed)} transactional ids were used once, and left, such as"
                f" {', '.join(entry.transactional_id for entry in once[:_EXAMPLES])}"
            ),
            do=(
                "keep each id over restarts: a new id for each run cannot fence the run before, and"
                " the coordinator keeps it for transactional_id_expiration_ms"
            ),
        )


def _cancelled(at: "TopicPartition") -> str:
    options = ("--partition", at.partition, "--cancel")
    return command_line("topics", "move", names=(at.topic,), options=options)


def _aborted(transaction: "OpenTransaction", known: "TransactionOutcomeDescription") -> str:
    epoch = transaction.producer_epoch
    options = ("--producer-id", transaction.producer_id, "--epoch", epoch)
    names = (known.transactional_id,)
    return command_line("transactions", "abort", names=names, options=options)


def _described(entry: "TransactionListing") -> str:
    return command_line("transactions", "describe", names=(entry.transactional_id,))


def _completed(entry: "TransactionListing") -> str:
    names = (entry.transactional_id, entry.producer_epoch)
    return command_line("transactions", "complete", names=names, options=("--commit",))
