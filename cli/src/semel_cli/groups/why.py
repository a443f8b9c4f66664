"""`semel why`: the first cause why a group sees no records of a topic, with its remedy."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import is_int32
from semel_cli.shared.output import (
    Facts,
    Format,
    FormatOption,
    Json,
    examples,
    show,
)
from semel_console.insight.texts import ago_text, time_text

if TYPE_CHECKING:
    from aiosemel import ReaderStanding, SemelClient
    from semel_console.insight.reader_causes import Verdict

EXAMPLES = examples(
    "semel why reports orders",
    "semel why reports orders:0 --format json",
)


def why(
    group: Annotated[str, typer.Argument(show_default=False)],
    topic: Annotated[str, typer.Argument(metavar="TOPIC[:PARTITION]", show_default=False)],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Say why a consumer group sees no records of a topic: the first cause, and its remedy.

    Looks at the topic, the group and its members, its offsets, and the transaction that holds the
    last stable offset.
    """
    from semel_console.insight.reader_causes import verdict

    name, number = _place(topic)

    async def work(client: "SemelClient") -> "list[ReaderStanding]":
        operators = client.admin().operators
        if number is not None:
            return [await operators.explain_reader(group, (name, number))]
        known = (await client.admin().describe_topics([name])).topics.get(name)
        numbers = [0] if known is None else [each.partition for each in known.partitions]
        return [await operators.explain_reader(group, (name, each)) for each in numbers]

    found = with_client(bootstrap, work)
    blocks = [_facts(each, verdict(each)) for each in found]
    show(output_format, [_document(each, verdict(each)) for each in found], *blocks)


def _place(text: str) -> tuple[str, int | None]:
    """Read TOPIC or TOPIC:PARTITION. Raises UsageError."""
    name, colon, number = text.rpartition(":")
    if not colon:
        return text, None
    if not name or not is_int32(number):
        raise UsageError(f"{text!r} is neither TOPIC nor TOPIC:PARTITION, such as orders:0")
    return name, int(number)


def _facts(standing: "ReaderStanding", words: "Verdict") -> Facts:
    holder = standing.holder
    return Facts(
        {
            "Why": words.says,
            "Do": words.do or "nothing",
            "Group's offset": standing.committed_offset,
            "Log start": standing.log_start_offset,
            "Last stable offset": standing.last_stable_offset,
            "End": standing.high_watermark,
            "Lag": standing.lag,
            "Member": standing.member_id or None,
            "Last poll": ago_text(standing.poll_age_ms),
            "Transactional id": None if holder is None else holder.transactional_id or None,
            "Producer id": None if holder is None else holder.producer_id,
            "Epoch": None if holder is None else holder.producer_epoch,
            "Open since": None if holder is None else time_text(holder.start_time_ms),
            "Client": None if holder is None else holder.client or None,
        },
        title=str(standing.partition),
    )


def _document(standing: "ReaderStanding", words: "Verdict") -> Json:
    holder = standing.holder
    return {
        "group_id": standing.group_id,
        "topic": standing.partition.topic,
        "partition": standing.partition.partition,
        "cause": standing.cause,
        "why": words.says,
        "do": words.do or None,
        "member_id": standing.member_id or None,
        "poll_age_ms": standing.poll_age_ms,
        "committed_offset": standing.committed_offset,
        "log_start_offset": standing.log_start_offset,
        "last_stable_offset": standing.last_stable_offset,
        "high_watermark": standing.high_watermark,
        "lag": standing.lag,
        "records_held": standing.records_held,
        "holder": None
        if holder is None
        else {
            "transactional_id": holder.transactional_id or None,
            "producer_id": holder.producer_id,
            "producer_epoch": holder.producer_epoch,
            "start_time_ms": holder.start_time_ms,
            "outcome": holder.outcome,
            "time_left_ms": holder.time_left_ms,
            "client": holder.client or None,
        },
    }
