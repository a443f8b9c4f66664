"""`semel consume`: records of topics onto standard output."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.record_io.output_bytes import check_reader, write_out
from semel_cli.record_io.output_format import Formatter, formatter
from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import EXIT_USAGE, fail, with_client
from semel_cli.shared.options import INT32_MAX, INT64_MAX, not_empty, seconds
from semel_cli.shared.output import examples, note
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import (
        Consumer,
        ConsumerOptions,
        IsolationLevel,
        OffsetReset,
        SemelClient,
        TopicPartition,
    )

    Ends = dict[TopicPartition, int]

_POLL_RECORDS = 1_000
_POLL_MS = 500
_POLL_TO_END_MS = 50
"""Aborted records and markers before the end are no records: no poll returns for them."""

EXAMPLES = examples(
    "semel consume greetings --from-beginning",
    "semel consume orders --group reports   # goes on where the group stopped",
    "semel consume orders --partition 2 --offset 100 --max-messages 10",
    "semel consume orders --format json --from-beginning --to-end | jq .value",
    "semel consume orders --from-beginning --skip-batch orders:0:42",
    "semel consume orders --format '%t-%p@%o %k = %v\\n'",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What to read, and how far."""

    topics: list[str]
    group: str | None
    partitions: list[int]
    offset: int | None
    max_messages: int | None
    timeout_s: float | None
    to_end: bool
    isolation: "IsolationLevel"
    write: Formatter


SkippedBatches = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-batch",
        metavar="TOPIC:PARTITION:OFFSET",
        help="Go on without this batch if it cannot be opened, as the error names it. May be given"
        " more than once.",
        show_default="none",
    ),
]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC", show_default=False)]
FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning",
        help="Start at the first record, not at the end of the log; with --group, in partitions for"
        " which the group has no offset.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="ID",
        help="Share the partitions with the other members, and commit offsets.",
        callback=not_empty,
        show_default="no group",
    ),
]
PartitionNumbers = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        max=INT32_MAX,
        help="May be given more than once.",
        show_default="all",
    ),
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset",
        "-o",
        min=0,
        max=INT64_MAX,
        help="Where to start in each --partition.",
        show_default="end",
    ),
]
MaxMessages = Annotated[
    int | None,
    typer.Option("--max-messages", "-n", min=1, help="Stop after so many.", show_default="none"),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        callback=seconds,
        help="Stop when no record has come for so long.",
        show_default="none",
    ),
]
ToEnd = Annotated[
    bool,
    typer.Option(
        "--to-end",
        help="Stop at the ends that the partitions have when the command starts.",
    ),
]
Isolation = Annotated[
    str, typer.Option(metavar="LEVEL", help="read_committed or read_uncommitted.")
]
RecordFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="value, key-value, json, or a template of %t topic, %p partition, %o offset,"
        " %T timestamp, %k key, %v value, %h headers.",
    ),
]


def consume(  # noqa: PLR0913, PLR0917 - each option is an argument
    topics: Topics,
    from_beginning: FromBeginning = False,
    group: Group = None,
    partition: PartitionNumbers = None,
    offset: Offset = None,
    max_messages: MaxMessages = None,
    timeout: Timeout = None,
    to_end: ToEnd = False,
    isolation: Isolation = "read_committed",
    record_format: RecordFormat = "value",
    skip_batch: SkippedBatches = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Write the records of topics to standard output, as they come, until Ctrl-C.

    Reads committed records only, unless told otherwise. With a group, offsets are committed after
    records were written: a crash may repeat records, but loses none. An error names a batch that
    cannot be opened: --skip-batch goes on without it.
    """
    if partition and (group is not None or len(topics) > 1):
        fail("--partition goes with one topic, and without --group", EXIT_USAGE)
    if offset is not None and not partition:
        fail("--offset needs a --partition", EXIT_USAGE)
    if offset is not None and from_beginning:
        fail("--offset and --from-beginning both say where to start: give one", EXIT_USAGE)
    if to_end and group is not None:
        fail("--to-end goes without --group: members share the partitions", EXIT_USAGE)
    try:
        write = formatter(record_format)
    except ValueError as error:
        fail(str(error), EXIT_USAGE)
    request = _Request(
        topics=topics,
        group=group,
        partitions=partition or [],
        offset=offset,
        max_messages=max_messages,
        timeout_s=timeout,
        to_end=to_end,
        isolation=_isolation(isolation),
        write=write,
    )
    reset = _reset(offset, from_beginning=from_beginning)
    options = _options(request.isolation, reset, skip_batch or ())

    async def work(client: "SemelClient") -> int:
        async with client.consumer(group, options) as consumer:
            await _choose_partitions(client, consumer, request)
            ends = await _ends(client, consumer, request) if to_end else None
            return await _write_all(consumer, request, ends)

    count = with_client(bootstrap, work, changes=group is not None)
    if sys.stderr.isatty():
        note(counted(count, "record"))


def _reset(offset: int | None, *, from_beginning: bool) -> "OffsetReset":
    """Return where to start; a caller that names an offset is told if the log lacks it."""
    from aiosemel import OffsetReset

    if offset is not None:
        return OffsetReset.NONE
    return OffsetReset.EARLIEST if from_beginning else OffsetReset.LATEST


def _isolation(text: str) -> "IsolationLevel":
    from aiosemel import IsolationLevel

    try:
        return IsolationLevel(text)
    except ValueError:
        raise UsageError(f"isolation {text!r} is neither {' nor '.join(IsolationLevel)}") from None


def _options(
    level: "IsolationLevel", reset: "OffsetReset", skipped: Sequence[str]
) -> "ConsumerOptions":
    from aiosemel import BatchPlace, ConsumerOptions
    from aiosemel.errors import InvalidConfigError

    try:
        batches = tuple(map(BatchPlace.parse, skipped))
    except InvalidConfigError as error:
        raise UsageError(error.message) from None
    return ConsumerOptions(isolation_level=level, auto_offset_reset=reset, skip_batches=batches)


async def _choose_partitions(
    client: "SemelClient", consumer: "Consumer", request: _Request
) -> None:
    """Subscribe, or take the partitions that were asked for; unknown topics are an error."""
    described = [await client.admin().describe_topic(topic) for topic in request.topics]
    if request.group is not None:
        consumer.subscribe(request.topics)
        return
    partitions = [
        (topic.name, partition.partition) for topic in described for partition in topic.partitions
    ]
    if request.partitions:
        partitions = [(request.topics[0], number) for number in request.partitions]
    consumer.assign(partitions)
    if request.offset is not None:
        for partition in partitions:
            consumer.seek(partition, request.offset)


async def _ends(client: "SemelClient", consumer: "Consumer", request: _Request) -> "Ends":
    """Return where the partitions end now, for a reader of this isolation level.

    An offset behind the end of a log has an end of its own: a poll raises what is wrong with it.
    """
    from aiosemel import IsolationLevel

    ends = await _latest(client, consumer, request.isolation)
    if request.offset is None:
        return ends
    logs = await _latest(client, consumer, IsolationLevel.READ_UNCOMMITTED)
    return {at: request.offset + 1 if request.offset > logs[at] else ends[at] for at in ends}


async def _latest(client: "SemelClient", consumer: "Consumer", level: "IsolationLevel") -> "Ends":
    from aiosemel import OffsetSpec

    found = await client.admin().list_offsets(
        dict.fromkeys(consumer.assignment(), OffsetSpec.LATEST), isolation_level=level
    )
    return {partition: at.offset for partition, at in found.items() if at is not None}


async def _is_before(consumer: "Consumer", ends: "Ends | None") -> bool:
    """Whether there is something to read before the ends; without ends there always may be."""
    if ends is None:
        return True
    for partition, end in ends.items():
        if await consumer.position(partition) < end:
            return True
    return False


async def _write_all(consumer: "Consumer", request: _Request, ends: "Ends | None") -> int:
    """Write records until told to stop, or there are enough; returns how many there were."""
    count = 0
    quiet_since = asyncio.get_running_loop().time()
    enough = request.max_messages or sys.maxsize
    try:
        while count < enough and await _is_before(consumer, ends):
            records_max = min(_POLL_RECORDS, enough - count)
            polled = await consumer.poll(records_max, timeout_ms=_poll_ms(request, quiet_since))
            records = [record for batch in polled.values() for record in batch]
            now = asyncio.get_running_loop().time()
            if records:
                await write_out(b"".join(map(request.write, records)))
                count += len(records)
                quiet_since = now
                if request.group is not None:
                    await consumer.commit()
                continue
            check_reader()
            if request.timeout_s is not None and now - quiet_since >= request.timeout_s:
                break
    except asyncio.CancelledError:
        # Ctrl-C is how reading ends.
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    return count


def _poll_ms(request: _Request, quiet_since: float) -> int:
    poll_ms = _POLL_TO_END_MS if request.to_end else _POLL_MS
    if request.timeout_s is None:
        return poll_ms
    left_s = quiet_since + request.timeout_s - asyncio.get_running_loop().time()
    return max(0, min(poll_ms, int(left_s * 1000) + 1))
