"""`semel demo`: the main job, and what happens without transactions."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.demo import remote
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import EXIT_FAILURE, run
from semel_cli.shared.options import path
from semel_cli.shared.output import Facts, Format, FormatOption, Table, examples, note, show

if TYPE_CHECKING:
    from semel_cli.demo.input import Orders
    from semel_cli.demo.report import JobResult
    from semel_cli.demo.view import DemoView

app = typer.Typer(help="See what Semel promises.", no_args_is_help=True)

BROKERS = 2
ROUNDS = 2
"""How often each process is killed."""
PLAIN_LINES = 12_000
"""The part of the orders that is processed without transactions too."""
_SLOW_S = 30.0
"""A machine that takes longer with transactions has to do half the kills without them."""


app.command(epilog=remote.ORDERS_EXAMPLES)(remote.orders)
app.command(epilog=remote.INCOME_EXAMPLES)(remote.income)
app.command(epilog=remote.APPLICATION_EXAMPLES)(remote.application)


@app.command(epilog=examples("semel demo pizza", "semel demo pizza --seed 7 --no-plain"))
def pizza(
    seed: Annotated[
        int | None,
        typer.Option(help="The order in which processes are killed.", show_default="a random one"),
    ] = None,
    plain: Annotated[
        bool, typer.Option(help="Run a part without transactions too, to compare.")
    ] = True,
    data: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            metavar="FOLDER",
            help="Keep data and logs in this folder.",
            show_default="a temporary one",
        ),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Turn a year of pizza orders into income, exactly once, while every process is killed.

    Starts a new cluster and two instances of an application. Each of their
    processes is killed twice (kill -9) and started again while they work. Fails unless all 49,574
    order lines are counted exactly once, and the income is right to the cent.
    """
    raise typer.Exit(run(_pizza(seed, data, plain=plain, output_format=output_format)))


async def _pizza(seed: int | None, data: Path | None, *, plain: bool, output_format: Format) -> int:
    """Return the exit status."""
    from semel_cli.demo.input import InputMissingError, read_orders
    from semel_cli.demo.progress import JobError
    from semel_cli.demo.view import DemoView
    from semel_local.errors import first_of

    seed = secrets.randbelow(1_000_000) if seed is None else seed
    note(f"Seed {seed}: semel demo pizza --seed {seed} makes the same plan again")
    try:
        orders = read_orders()
        with DemoView() as view, _folder(data) as folder:
            jobs = _run_jobs(orders, folder, view, Random(seed), plain=plain)
            exactly_once, compared = await jobs
    except InputMissingError as error:
        raise CommandError(str(error)) from error
    except BaseExceptionGroup as group:
        failed = group.subgroup(JobError)
        if failed is None:
            raise
        kept = "" if data else " (--data FOLDER keeps data and logs)"
        raise CommandError(f"{first_of(failed)}{kept}") from group
    _report(exactly_once, compared, seed, output_format)
    return 0 if exactly_once.sums.is_exact(orders) else EXIT_FAILURE


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Return where data and logs go; without a folder to keep, they go with the demo."""
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="semel-demo-") as folder:
        yield Path(folder)


async def _run_jobs(
    orders: "Orders", folder: Path, view: "DemoView", random: Random, *, plain: bool
) -> "tuple[JobResult, JobResult | None]":
    from aiosemel import SemelClient
    from semel_cli.demo.job import JobRun, Workplace
    from semel_cli.demo.topics import EXACTLY_ONCE, PLAIN, SETTINGS
    from semel_local import ProcessCluster

    view.phase(f"Starting a cluster with {BROKERS} brokers")
    cluster = ProcessCluster(folder / "cluster", brokers=BROKERS, settings=SETTINGS)
    async with cluster, SemelClient(cluster.bootstrap) as client:
        place = Workplace(cluster=cluster, client=client, folder=folder)
        exactly_once = await JobRun(
            place, EXACTLY_ONCE, orders, view=view, random=random, rounds=ROUNDS
        ).run()
        if not plain:
            return exactly_once, None
        rounds = ROUNDS if exactly_once.took_s < _SLOW_S else 1
        part = orders.first(PLAIN_LINES)
        compared = JobRun(place, PLAIN, part, view=view, random=random, rounds=rounds)
        return exactly_once, await compared.run()


def _report(
    exactly_once: "JobResult", compared: "JobResult | None", seed: int, output_format: Format
) -> None:
    from semel_cli.demo.report import document, exactly_once_facts, income_table, plain_facts

    blocks: list[Facts | Table] = [
        income_table(exactly_once.sums),
        exactly_once_facts(exactly_once),
    ]
    if compared is not None:
        blocks.append(plain_facts(compared))
    show(output_format, document(exactly_once, compared, seed), *blocks)
