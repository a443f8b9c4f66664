"""The main job on a cluster that is elsewhere: orders come in there, and the income is checked.

Instances of the application work in between, killed by others: `k8s/pizza` has all of it.
"""

import asyncio
import json
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.demo.topics import EXACTLY_ONCE, PARTITIONS
from semel_cli.shared.cluster_choice import BootstrapOption, Purpose, find_bootstrap
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import EXIT_FAILURE, find_security, run
from semel_cli.shared.options import seconds
from semel_cli.shared.output import Facts, Format, FormatOption, Json, examples, note, show
from semel_console.insight.offset_views import watermarks

if TYPE_CHECKING:
    from aiosemel import SemelClient
    from semel_cli.demo.input import OrderLine, Orders
    from semel_cli.demo.report import Sums

_CHUNKS_PER_SECOND = 4
_LOADER = "pizza-orders"
"""The transactional id of the process that loads the orders."""
_POLL_S = 2.0
_SETTLE_S = 0.1


def orders(
    seconds: Annotated[
        float,
        typer.Option(callback=seconds, help="How long the year takes; 0: as fast as it goes."),
    ] = 0,
    bootstrap: BootstrapOption = None,
) -> None:
    """Send the orders to an existing cluster.

    Makes the topics if need be. Interrupted, it goes on where it was when it is started again.
    """
    run(_orders(find_bootstrap(bootstrap, Purpose.CHANGE), seconds))


def income(
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", callback=seconds, help="How long to wait for all of it."),
    ] = 1_800,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Wait until all orders have become income, and fail unless it is exact.

    Says how far it is every two seconds, as JSON on standard error.
    """
    raise typer.Exit(run(_income(find_bootstrap(bootstrap), timeout, output_format)))


def application(
    instance: Annotated[str, typer.Argument(help="Its transactional id; no two have the same.")],
    bootstrap: BootstrapOption = None,
) -> None:
    """Be one instance of the application that makes income of orders, until stopped.

    After a restart with the same name, it ends the open transaction of its predecessor.
    """
    run(_application(find_bootstrap(bootstrap, Purpose.CHANGE), instance))


ORDERS_EXAMPLES = examples("semel demo orders --seconds 60")
INCOME_EXAMPLES = examples("semel demo income --format json")
APPLICATION_EXAMPLES = examples("semel demo application pizza-app-0")


def _client(bootstrap: str) -> "SemelClient":
    from aiosemel import SemelClient

    return SemelClient(bootstrap, security=find_security(bootstrap))


async def _application(bootstrap: str, instance: str) -> None:
    from semel_cli.demo.application import work

    async with _client(bootstrap) as client:
        await work(client, instance)


async def _orders(bootstrap: str, seconds: float) -> None:
    from semel_cli.demo.input import InputMissingError, read_orders

    try:
        lines = read_orders().lines
    except InputMissingError as error:
        raise CommandError(str(error)) from error
    began = time.monotonic()
    async with _client(bootstrap) as client:
        await _make_topics(client)
        loaded = await _load_through_aborts(client, lines, seconds)
    note(f"{loaded:,} order lines in {time.monotonic() - began:.1f} s")


async def _load_through_aborts(
    client: "SemelClient", lines: "Sequence[OrderLine]", seconds: float
) -> int:
    from aiosemel import AbortableTransactionError, TransactionOutcomeUnknownError

    while True:
        try:
            return await _load(client, lines, seconds)
        except TransactionOutcomeUnknownError as error:
            note(str(await error.resolve()))
        except AbortableTransactionError as error:
            note(f"goes on after: {error}")


async def _load(client: "SemelClient", lines: "Sequence[OrderLine]", seconds: float) -> int:
    """Send the missing orders, in transactions; return their number."""
    size = math.ceil(len(lines) / max(1.0, seconds * _CHUNKS_PER_SECOND))
    async with client.transactional_producer(_LOADER) as producer:
        # Settles the open transaction of a predecessor: from here on, every stored record is
        # visible.
        await producer.init_transactions()
        await _settled(client, EXACTLY_ONCE.orders)
        there = await _count(client, EXACTLY_ONCE.orders)
        began = time.monotonic()
        for start in range(there, len(lines), size):
            chunk = lines[start : start + size]
            values, keys = [line.value for line in chunk], [line.key for line in chunk]
            async with producer.transaction():
                await producer.send_columns(EXACTLY_ONCE.orders, values, keys=keys)
            due = began + seconds * (start + len(chunk) - there) / len(lines)
            await asyncio.sleep(due - time.monotonic())
    return len(lines) - there


async def _income(bootstrap: str, timeout_s: float, output_format: Format) -> int:
    """Return the exit status."""
    from semel_cli.demo.input import read_orders
    from semel_cli.demo.report import sum_up
    from semel_cli.demo.settling import all_consumed, settled_ends

    expected = read_orders()
    async with _client(bootstrap) as client:
        await _make_topics(client)
        try:
            async with asyncio.timeout(timeout_s):
                await _all_there(client, len(expected.lines))
        except TimeoutError:
            raise CommandError(f"not all income is there after {timeout_s:g} s") from None
        await all_consumed(client, EXACTLY_ONCE)
        sums = await sum_up(client, EXACTLY_ONCE.income, await settled_ends(client, EXACTLY_ONCE))
    return _report(sums, expected, output_format)


async def _make_topics(client: "SemelClient") -> None:
    for topic in (EXACTLY_ONCE.orders, EXACTLY_ONCE.income):
        await client.admin().create_topic(topic, partitions=PARTITIONS, exist_ok=True)


async def _all_there(client: "SemelClient", lines: int) -> None:
    """Wait until as many lines are income, or more, and say how far it is."""
    from aiosemel import RetriableError

    seen = 0
    while seen < lines:
        try:
            seen = await _count(client, EXACTLY_ONCE.income)
            note(json.dumps({"orders": await _count(client, EXACTLY_ONCE.orders), "income": seen}))
        except RetriableError as error:
            note(json.dumps({"waits": str(error)}))
        await asyncio.sleep(_POLL_S)


async def _settled(client: "SemelClient", topic: str) -> None:
    """Wait until no transaction is open in a topic."""
    partitions = [(topic, number) for number in range(PARTITIONS)]
    while True:
        marks = await watermarks(client, partitions)
        if all(mark.stable_end == mark.end for mark in marks):
            return
        await asyncio.sleep(_SETTLE_S)


async def _count(client: "SemelClient", topic: str) -> int:
    starts = {(topic, number): 0 for number in range(PARTITIONS)}
    return sum((await client.admin().count_records(starts)).values())


def _report(sums: "Sums", expected: "Orders", output_format: Format) -> int:
    exact = sums.is_exact(expected)
    facts: dict[str, Json] = {
        "exact": exact,
        "income": str(sums.total),
        "expected_income": str(expected.total),
        "lines": sums.lines,
        "expected_lines": len(expected.lines),
        "duplicates": sums.duplicates,
        "losses": sums.losses(expected),
    }
    shown = {name.replace("_", " ").capitalize(): str(value) for name, value in facts.items()}
    show(output_format, facts, Facts(shown))
    return 0 if exact else EXIT_FAILURE
