"""`semel produce`: records from standard input into a topic."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.record_io.append import Place, append
from semel_cli.record_io.input_format import InputError, InputRecord, parse_json, parse_text
from semel_cli.record_io.input_lines import is_typed, read_lines
from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import (
    API_TIMEOUT_MS,
    EXIT_FAILURE,
    EXIT_USAGE,
    REQUEST_TIMEOUT_MS,
    fail,
    with_client,
)
from semel_cli.shared.options import INT32_MAX, INT64_MAX, not_empty
from semel_cli.shared.output import Format, examples, note
from semel_console.insight.command_lines import command_line

if TYPE_CHECKING:
    from aiosemel import Delivery, Producer, SemelClient, SemelError, Transaction

TRANSACTION_TIMEOUT_MS = 900_000
"""Input may come from a person who types: as long as a coordinator allows by default."""
DELIVERY_TIMEOUT_MS = 30_000
_UNSETTLED_MAX = 10_000
REQUEST_SIZE_BYTES = 1_000_000
REQUEST_SIZE_MIN_BYTES = 262_144
"""A batch of small records takes as much."""
REQUEST_SIZE_MAX_BYTES = 16 << 20
"""Readers open no larger batch."""

EXAMPLES = examples(
    "echo hello | semel produce greetings",
    "semel produce users --key-separator : < users.txt",
    "semel produce orders --transactional-id load-1 < orders.txt   # all or none",
    "echo me | semel produce leader -p 0 --expected-offset 7   # the first wins",
    "semel consume orders --from-beginning --format json \\",
    "  --to-end | semel produce copy --format json",
)

Parse = Callable[[bytes], InputRecord]

TransactionalId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Make the whole input one transaction of this id; Ctrl-C aborts it.",
        callback=not_empty,
        show_default="no transaction",
    ),
]


def produce(
    topic: Annotated[str, typer.Argument(show_default=False)],
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            help="The text between key and value.",
            show_default="no keys",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, max=INT32_MAX, show_default="by the key, or any"),
    ] = None,
    transactional_id: TransactionalId = None,
    expected_offset: Annotated[
        int | None,
        typer.Option(
            metavar="OFFSET",
            min=0,
            max=INT64_MAX,
            help="Store the whole input as one batch if the log of --partition ends at this offset;"
            " else nothing, and say where it ends.",
            show_default="wherever the log ends",
        ),
    ] = None,
    max_request_size: Annotated[
        int,
        typer.Option(
            metavar="BYTES",
            min=REQUEST_SIZE_MIN_BYTES,
            max=REQUEST_SIZE_MAX_BYTES,
            help="How large a record may be; the topic has a limit too, max.message.bytes.",
        ),
    ] = REQUEST_SIZE_BYTES,
    input_format: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: a value on each line; json: an object with key, value, headers, partition"
            " and timestamp_ms on each line, as `semel consume --format json` writes it.",
        ),
    ] = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Send each line of standard input as a record.

    Every record is stored exactly once, also when it has to be sent again. Says how many were
    stored on standard error. The end of a line (a newline, with or without a carriage return before
    it) does not belong to the record.
    """
    load = _Load(topic, _parser(input_format, key_separator), partition, max_request_size)
    at = _place(topic, partition, expected_offset)
    with_client(
        bootstrap, lambda client: _produce(client, load, at, transactional_id), changes=True
    )


def _place(topic: str, partition: int | None, expected_offset: int | None) -> Place | None:
    if expected_offset is None:
        return None
    if partition is None:
        fail("--expected-offset is of one partition: name it with --partition", EXIT_USAGE)
    return Place(topic, partition, expected_offset)


def _parser(input_format: Format, key_separator: str | None) -> Parse:
    if input_format is Format.JSON:
        if key_separator is not None:
            fail("--key-separator is for --format text: JSON says what is the key", EXIT_USAGE)
        return parse_json
    if not key_separator and key_separator is not None:
        fail("--key-separator is empty: nothing can stand between key and value", EXIT_USAGE)
    separator = None if key_separator is None else os.fsencode(key_separator)
    return partial(parse_text, key_separator=separator)


@dataclass(slots=True)
class _Load:
    """The input on its way into a topic."""

    topic: str
    parse: Parse
    partition: int | None
    max_request_size_bytes: int
    count: int = 0
    """Records taken so far."""

    async def send_to(self, producer: "Producer | Transaction") -> "AsyncIterator[Delivery]":
        """Send all of it; yields each record on its way."""
        async for lines in read_lines():
            for line in lines:
                record = self._record(line)
                self.count += 1
                yield await self._send(producer, record)

    async def read(self) -> list[InputRecord]:
        """Read all of it, up to what one batch can hold."""
        records: list[InputRecord] = []
        size_bytes = 0
        async for lines in read_lines():
            for line in lines:
                size_bytes += len(line)
                if size_bytes > self.max_request_size_bytes:
                    raise CommandError(
                        f"the input is over --max-request-size ({self.max_request_size_bytes:,}"
                        f" bytes): it is to be one batch of topic {self.topic!r}; raise it up to"
                        f" {REQUEST_SIZE_MAX_BYTES:,}, or give less input"
                    )
                records.append(self._record(line))
                self.count += 1
        return records

    async def _send(self, producer: "Producer | Transaction", record: InputRecord) -> "Delivery":
        from aiosemel.errors import MessageTooLargeError, UnknownTopicOrPartitionError

        try:
            return await producer.send(
                self.topic,
                record.value,
                key=record.key,
                partition=self.partition if record.partition is None else record.partition,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
        except (MessageTooLargeError, UnknownTopicOrPartitionError) as error:
            raise CommandError(
                f"line {self.count} of the input cannot be stored: {_told(error, self)}"
            ) from error

    def _record(self, line: bytes) -> InputRecord:
        try:
            return self.parse(line)
        except InputError as error:
            raise CommandError(
                f"line {self.count + 1} of the input is no record: {error}"
            ) from error


async def _produce(
    client: "SemelClient", load: _Load, at: Place | None, transactional_id: str | None
) -> None:
    await client.admin().describe_topic(load.topic)  # A producer would wait for it to be made.
    if is_typed():
        note("Type a record on each line; Ctrl-D ends the input.")
    if at is not None:
        await append(
            client,
            await load.read(),
            at,
            transactional_id=transactional_id,
            max_request_size_bytes=load.max_request_size_bytes,
        )
    elif transactional_id is None:
        await _produce_each(client, load)
    else:
        await _produce_as_one(client, load, transactional_id)


async def _produce_each(client: "SemelClient", load: _Load) -> None:
    """Store each record for itself; what was taken is stored, whatever ends the input."""
    from aiosemel import ProducerOptions

    options = ProducerOptions(
        max_block_ms=API_TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        max_request_size_bytes=load.max_request_size_bytes,
    )
    unsettled: deque[Delivery] = deque()
    stored = 0
    async with client.producer(options) as producer:
        try:
            async for delivery in load.send_to(producer):
                unsettled.append(delivery)
                if len(unsettled) > _UNSETTLED_MAX:
                    if not await _is_stored(unsettled[0]):
                        break
                    unsettled.popleft()
                    stored += 1
        finally:
            await producer.flush()
            failures = list(_failures(unsettled))
            stored += len(unsettled) - len(failures)
            note(f"{_records(stored)} stored in {load.topic}")
            if failures:  # Also where something else has ended the input: both are said.
                why = _told(failures[0], load)
                note(f"semel: {_records(len(failures))} could not be stored: {why}")
    if failures:
        raise typer.Exit(EXIT_FAILURE)


async def _is_stored(delivery: "Delivery") -> bool:
    """Wait for a delivery; returns whether its record is stored."""
    from aiosemel import SemelError

    try:
        await delivery
    except SemelError:
        return False
    return True


def _failures(deliveries: "Iterable[Delivery]") -> "Iterator[SemelError]":
    from aiosemel import SemelError

    for delivery in deliveries:
        try:
            delivery.result()
        except SemelError as error:
            yield error


async def _produce_as_one(client: "SemelClient", load: _Load, transactional_id: str) -> None:
    """Store all records in one transaction, or none."""
    from aiosemel import ProducerOptions, SemelError, TransactionOutcomeUnknownError

    options = ProducerOptions(
        max_block_ms=DELIVERY_TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        max_request_size_bytes=load.max_request_size_bytes,
    )
    async with client.transactional_producer(transactional_id, options) as producer:
        await producer.init_transactions()
        try:
            async with producer.transaction(wait_until_visible=True) as transaction:
                async for _ in load.send_to(transaction):
                    pass
        except TransactionOutcomeUnknownError as error:
            raise CommandError(
                f"whether {_records(load.count)} were committed is not known ({error}); to see: "
                + command_line(
                    *("transactions", "outcome"), names=(transactional_id, error.producer_epoch)
                )
            ) from error
        except (SemelError, CommandError) as error:
            raise CommandError(f"{_told(error, load)}. {_aborted(load)}") from error
        except asyncio.CancelledError:
            note(_aborted(load))
            raise
    note(f"{_records(load.count)} stored in {load.topic}, in one transaction of {transactional_id}")


def _aborted(load: _Load) -> str:
    return f"The transaction is aborted: {_records(load.count)} read, none visible"


def _told(error: "SemelError | CommandError", load: _Load) -> str:
    """Return an error with the option or the command that lets a larger record in."""
    if isinstance(error, CommandError):
        return str(error)
    details = error.details
    if "max_request_size_bytes" in details:
        return (
            f"topic {load.topic!r}: {int(details['size_bytes']):,} bytes exceed"
            f" --max-request-size ({load.max_request_size_bytes:,}); raise it up to"
            f" {REQUEST_SIZE_MAX_BYTES:,}, and the topic's max.message.bytes, or send smaller"
            " records"
        )
    if "message_max_bytes" in details:
        options = ("--config", f"max.message.bytes={load.max_request_size_bytes}")
        return f"{error}: {command_line('topics', 'alter', names=(load.topic,), options=options)}"
    return str(error)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
