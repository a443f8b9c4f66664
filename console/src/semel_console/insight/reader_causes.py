"""Why a group sees no records of a partition: each cause in words, with its remedy. No I/O."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiosemel import HoldingTransaction, ReaderCause, ReaderStanding
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import counted, duration_text


class Verdict(NamedTuple):
    """One cause, in words."""

    says: str
    do: str
    """The remedy; empty: there is nothing to do."""


def verdict(standing: ReaderStanding) -> Verdict:
    """Put a cause into words."""
    return _words()[standing.cause](standing)


def _words() -> Mapping[ReaderCause, Callable[[ReaderStanding], Verdict]]:
    return {
        ReaderCause.NO_TOPIC: _no_topic,
        ReaderCause.NO_PARTITION: lambda s: Verdict(
            f"topic {s.partition.topic!r} has no partition {s.partition.partition}",
            command_line("topics", "describe", names=(s.partition.topic,)),
        ),
        ReaderCause.NO_GROUP: lambda s: Verdict(
            f"there is no group {s.group_id!r}: no consumer has joined under this name, or it has"
            " expired",
            "semel groups list",
        ),
        ReaderCause.PARTITION_AWAY: lambda s: Verdict(
            f"the partition cannot be asked: {s.problem}", "semel doctor"
        ),
        ReaderCause.NO_MEMBER: lambda s: Verdict(
            f"group {s.group_id!r} has no members", "start a consumer of this group"
        ),
        ReaderCause.NOT_SUBSCRIBED: lambda s: Verdict(
            f"no member of group {s.group_id!r} reads topic {s.partition.topic!r}",
            command_line("groups", "describe", names=(s.group_id,)),
        ),
        ReaderCause.NOT_HELD: _not_held,
        ReaderCause.MEMBER_AWAY: lambda s: Verdict(
            f"its member {s.member_id} is away, and keeps the partition until its session ends",
            "start it again, with the same group_instance_id",
        ),
        ReaderCause.BELOW_LOG_START: lambda s: Verdict(
            f"the records at the group's offset {s.committed_offset} are deleted: the log begins at"
            f" {s.log_start_offset}",
            _reset(s, "--to-earliest"),
        ),
        ReaderCause.PAST_END: lambda s: Verdict(
            f"the group's offset {s.committed_offset} is behind the end of the log,"
            f" {s.high_watermark}",
            _reset(s, "--to-latest"),
        ),
        ReaderCause.OFFSETS_PENDING: lambda s: Verdict(
            f"newer offsets of the group wait for {_transaction(s)}", _remedy(s)
        ),
        ReaderCause.NOT_POLLED: _not_polled,
        ReaderCause.UNREAD: _unread,
        ReaderCause.OPEN_TRANSACTION: lambda s: Verdict(
            f"{_transaction(s)} holds the last stable offset, {s.last_stable_offset}:"
            f" {counted(s.records_held, 'offset')} behind it cannot be read yet",
            _remedy(s),
        ),
        ReaderCause.ABORTED_ONLY: lambda s: Verdict(
            "behind the group's offset lie only aborted records and markers, which no reader of"
            " committed records sees",
            command_line(
                *("transactions", "history", "--outcome", "aborted"),
                *("--topic", s.partition.topic, "--partition", s.partition.partition),
            ),
        ),
        ReaderCause.ALL_READ: lambda _: Verdict("the group has read everything", ""),
    }


def _no_topic(standing: ReaderStanding) -> Verdict:
    topic = standing.partition.topic
    create = command_line("topics", "create", names=(topic,))
    return Verdict(
        f"there is no topic {topic!r}",
        f"`semel topics list` shows the names of all topics; `{create}` makes this topic",
    )


def _reset(standing: ReaderStanding, to: str) -> str:
    place = f"{standing.partition.topic}:{standing.partition.partition}"
    options = ("--topic", place, to, "--dry-run")
    return command_line("groups", "reset-offsets", names=(standing.group_id,), options=options)


def _not_held(standing: ReaderStanding) -> Verdict:
    target = standing.member_id
    taker = f": member {target} is to take it" if target else ""
    return Verdict(
        f"no member holds the partition now{taker}",
        command_line("groups", "describe", names=(standing.group_id,)),
    )


def _not_polled(standing: ReaderStanding) -> Verdict:
    passed = duration_text(standing.poll_age_ms or 0)
    return Verdict(
        f"{counted(standing.lag or 0, 'record')} can be read, but member {standing.member_id} sends"
        f" heartbeats and has not polled for {passed}: its program is busy with earlier records, or"
        " stuck",
        f"look at the program of member {standing.member_id}; after max_poll_interval_ms without a"
        " poll, the member leaves the group",
    )


def _unread(standing: ReaderStanding) -> Verdict:
    there = f"{counted(standing.lag or 0, 'record')} can be read"
    if standing.committed_offset is None:
        return Verdict(
            f"{there}, and the group has committed no offset here: a consumer with"
            " auto_offset_reset latest begins at the end",
            _reset(standing, "--to-earliest"),
        )
    return Verdict(
        f"{there}: member {standing.member_id} has not read them, or has not committed so far",
        f"look at member {standing.member_id}: it is slow, waits, or does not commit",
    )


def _transaction(standing: ReaderStanding) -> str:
    holder = standing.holder
    assert holder is not None, "the cause is a transaction"
    name = repr(holder.transactional_id) if holder.transactional_id else "of an unknown id"
    client = f" of {holder.client}" if holder.client else ""
    age = "" if holder.age_ms is None else f", open for {duration_text(holder.age_ms)}"
    return f"transaction {name} (epoch {holder.producer_epoch}{age}){client}{_ends(holder)}"


def _ends(holder: HoldingTransaction) -> str:
    if holder.outcome == "PREPARED":
        return ", which is prepared and waits for its owner,"
    if holder.time_left_ms is not None:
        return f", which times out in {duration_text(holder.time_left_ms)},"
    if holder.outcome in ("COMMITTED", "ABORTED"):
        return f", which is {str(holder.outcome).lower()} and waits for its marker,"
    return ""


def _remedy(standing: ReaderStanding) -> str:
    holder = standing.holder
    assert holder is not None, "the cause is a transaction"
    if not holder.transactional_id:
        return "semel transactions find-hanging"
    name = holder.transactional_id
    if holder.outcome == "PREPARED":
        names = (name, holder.producer_epoch)
        complete = command_line(
            "transactions", "complete", names=names, options=("--commit", "--dry-run")
        )
        return f"let its owner decide, or, if its outside system has committed: {complete}"
    if holder.outcome == "ONGOING":
        options = (
            *("--producer-id", holder.producer_id, "--epoch", holder.producer_epoch),
            "--dry-run",
        )
        abort = command_line("transactions", "abort", names=(name,), options=options)
        return f"wait, or {abort}"
    return command_line("transactions", "describe", names=(name,))
