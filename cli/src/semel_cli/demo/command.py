"""`semel demo`: the main job, and what happens without transactions."""

import secrets
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.output import Facts, Format, FormatOption, Table, examples, note, show
from semel_cli.session import EXIT_FAILURE, CommandError, run

if TYPE_CHECKING:
    from semel_cli.demo.input import Orders
    from semel_cli.demo.job import JobResult
    from semel_cli.demo.view import DemoView

app = typer.Typer(help="See what Semel promises.", no_args_is_help=True)

BROKERS = 2
PLAIN_LINES = 6_000
"""The part of the orders that is processed without transactions too."""


@app.callback()
def demo() -> None:
    """Have subcommands even while there is only one."""


@app.command(epilog=examples("semel demo pizza", "semel demo pizza --seed 7 --no-plain"))
def pizza(
    seed: Annotated[
        int | None, typer.Option(help="Who is killed when.", show_default="a random one")
    ] = None,
    plain: Annotated[
        bool, typer.Option(help="Run a part without transactions too, to compare.")
    ] = True,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Turn a year of pizza orders into income, exactly once, while every process is killed.

    Starts a cluster in a temporary folder and two instances of an application. Each of their
    processes is killed twice (kill -9) and started again while they work. Fails unless all 49,574
    order lines are counted exactly once, and the income is right to the cent.
    """
    raise typer.Exit(run(_pizza(seed, plain=plain, output_format=output_format)))


async def _pizza(seed: int | None, *, plain: bool, output_format: Format) -> int:
    """Return the exit status."""
    from semel_cli.demo.input import InputMissingError, read_orders
    from semel_cli.demo.progress import JobError
    from semel_cli.demo.view import DemoView

    seed = secrets.randbelow(1_000_000) if seed is None else seed
    note(f"Seed {seed}: semel demo pizza --seed {seed} makes the same plan again")
    try:
        orders = read_orders()
        with DemoView() as view:
            exactly_once, compared = await _run_jobs(orders, view, Random(seed), plain=plain)
    except* (InputMissingError, JobError) as errors:
        raise CommandError("; ".join(map(str, errors.exceptions))) from None
    _report(exactly_once, compared, seed, output_format)
    return 0 if exactly_once.sums.is_exact(orders) else EXIT_FAILURE


async def _run_jobs(
    orders: "Orders", view: "DemoView", random: Random, *, plain: bool
) -> "tuple[JobResult, JobResult | None]":
    from aiosemel import SemelClient
    from semel_cli.demo.job import JobRun, Workplace
    from semel_cli.demo.topics import EXACTLY_ONCE, PLAIN, SETTINGS
    from semel_local import ProcessCluster

    with tempfile.TemporaryDirectory(prefix="semel-demo-") as folder:
        view.phase(f"Starting a cluster with {BROKERS} brokers")
        cluster = ProcessCluster(Path(folder) / "cluster", brokers=BROKERS, settings=SETTINGS)
        async with cluster, SemelClient(cluster.bootstrap) as client:
            place = Workplace(cluster=cluster, client=client, folder=Path(folder))
            exactly_once = await JobRun(place, EXACTLY_ONCE, orders, view, random).run()
            if not plain:
                return exactly_once, None
            view.phase("The same kills again, without transactions")
            part = orders.first(PLAIN_LINES)
            return exactly_once, await JobRun(place, PLAIN, part, view, random).run()


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
