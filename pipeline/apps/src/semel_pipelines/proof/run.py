"""One run: both clusters start, a year of orders comes in, everything is killed, and it adds up."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from aiosemel import SemelClient
from semel_cli.demo.input import Orders, read_orders
from semel_cli.shared.output import note
from semel_local import ProcessCluster
from semel_pipelines.menu import read_menu
from semel_pipelines.proof.books import Entry, Found, differences, entry, line_number
from semel_pipelines.proof.drivers import Driver, DriverError, Pipeline
from semel_pipelines.proof.feed import LATENESS, Delivery, Feed, deliveries
from semel_pipelines.proof.kills import Kill, plan
from semel_pipelines.proof.spark_cluster import SparkCluster
from semel_pipelines.proof.topics import read

ORDERS, MENU = "pizza-orders", "pizza-menu"
INCOME, INCOME_REJECTED = "pizza-income", "pizza-income-rejected"
SALES, KITCHEN, SALES_REJECTED = "pizza-sales", "pizza-kitchen", "pizza-sales-rejected"
PARTITIONS = 2
_OUTPUTS = (INCOME, INCOME_REJECTED, SALES, KITCHEN, SALES_REJECTED)
_OFFSETS_PER_TRIGGER = "5000"

PIPELINES = (
    Pipeline(
        name="pizza_income",
        module="semel_pipelines.pizza_income",
        options={"lateness": LATENESS, "max-offsets-per-trigger": _OFFSETS_PER_TRIGGER},
    ),
    Pipeline(
        name="enrich",
        module="semel_pipelines.enrich",
        options={"max-offsets-per-trigger": _OFFSETS_PER_TRIGGER},
    ),
)
_DRIVER, _EXECUTOR = "driver of ", "executor of "


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to."""

    orders: Orders
    found: Found
    differences: Sequence[str]
    kills: Sequence[Kill]
    failures: dict[str, int]
    """How often each driver has ended by itself."""
    batches: dict[str, int]
    """How many micro-batches each has done."""
    bad: int
    """How many records were no orders."""
    took_s: float


class Run:
    """A year of orders through both pipelines."""

    def __init__(self, folder: Path, random: Random) -> None:
        """Do no I/O yet. Data and logs go to the folder."""
        self._folder = folder
        self._random = random
        self._began = time.monotonic()
        self._orders = read_orders()
        self._year = deliveries(self._orders)
        self._semel = ProcessCluster(folder / "semel", brokers=2)
        self._drivers: dict[str, Driver] = {}

    async def run(self) -> Result:
        """Run it. Raises DriverError, SparkClusterError, OpenTransactionError, SemelError."""
        async with AsyncExitStack() as stack:
            self._say("Starting Semel, with two brokers, and Spark, with two workers")
            spark = SparkCluster(self._folder / "spark")
            async with asyncio.TaskGroup() as group:
                group.create_task(stack.enter_async_context(self._semel), name="start Semel")
                group.create_task(stack.enter_async_context(spark), name="start Spark")
            client = await stack.enter_async_context(SemelClient(self._semel.bootstrap))
            await _prepare(client)
            self._say("Starting both pipelines, each with a driver and two executors")
            for pipeline in PIPELINES:
                driver = Driver(pipeline, spark, self._semel.bootstrap, self._folder)
                self._drivers[driver.name] = await stack.enter_async_context(driver)
            kills = await self._kill_while_orders_come_in(Feed(client, ORDERS, self._year))
            self._say("All orders are in; the pipelines finish the records that are there")
            async with asyncio.TaskGroup() as group:
                for driver in self._drivers.values():
                    group.create_task(driver.finish(), name=f"finish {driver.name}")
            self._say("Reading the topics, and from Spark's state what is still open")
            return self._result(kills, await self._find(client))

    async def _kill_while_orders_come_in(self, feed: Feed) -> Sequence[Kill]:
        services = [name for name in self._semel.names if name.startswith(("broker", "coord"))]
        of_spark = [f"{kind}{name}" for kind in (_DRIVER, _EXECUTOR) for name in self._drivers]
        lines = len(self._orders.lines)
        kills = plan([*services, *of_spark], lines, self._random)
        async with asyncio.TaskGroup() as group:
            group.create_task(feed.up_to(kills[0].after_lines), name="orders come in")
            for driver in self._drivers.values():
                group.create_task(driver.working(), name=f"begin of {driver.name}")
        for kill in kills:
            await feed.up_to(kill.after_lines)
            await self._ready(kill.victim)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._kill(kill, feed), name=f"kill {kill.victim}")
                group.create_task(feed.up_to(kill.after_lines + 1), name="orders come in")
        await feed.up_to(lines)
        return kills

    async def _ready(self, victim: str) -> None:
        """Wait until the victim works: a starting process has nothing to lose."""
        driver = self._driver(victim)
        await (driver.working() if driver else self._semel.wait_ready())

    async def _kill(self, kill: Kill, feed: Feed) -> None:
        """Kill, and start again at once."""
        await asyncio.sleep(kill.delay_s)
        self._say(f"kill -9 {kill.victim}, after {feed.sent_lines:,} order lines")
        driver = self._driver(kill.victim)
        if driver is None:
            await self._semel.restart(kill.victim)
        elif kill.victim.startswith(_EXECUTOR):
            await driver.kill_executor()
        else:
            await driver.kill()
            await driver.start()

    def _driver(self, victim: str) -> Driver | None:
        """Return the driver that a victim is, or works for; None for services."""
        return self._drivers.get(victim.removeprefix(_DRIVER).removeprefix(_EXECUTOR))

    async def _find(self, client: SemelClient) -> Found:
        async with asyncio.TaskGroup() as group:
            still_open = group.create_task(self._open(), name="read the state")
            reading = {
                topic: group.create_task(read(client, topic), name=f"read {topic}")
                for topic in _OUTPUTS
            }
        values = {topic: task.result() for topic, task in reading.items()}
        return Found(
            closed=[entry(value) for value in values[INCOME]],
            open=still_open.result(),
            sold=[line_number(value) for value in values[SALES]],
            cooked=[line_number(value) for value in values[KITCHEN]],
            rejected=[values[INCOME_REJECTED], values[SALES_REJECTED]],
        )

    async def _open(self) -> Sequence[Entry]:
        """Ask for the open days as any user would. Raises DriverError."""
        log_path = self._folder / "open_windows.log"
        with log_path.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "semel_pipelines.pizza_income.open_windows"),
                f"--checkpoint={os.fspath(self._drivers['pizza_income'].checkpoint)}",
                "--master=local[2]",
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
            try:
                printed, _ = await process.communicate()
            except asyncio.CancelledError:
                process.kill()
                raise
        if process.returncode:
            raise DriverError(f"the state cannot be read: see {log_path}")
        return [entry(line) for line in printed.splitlines()]

    def _result(self, kills: Sequence[Kill], found: Found) -> Result:
        bad = _bad(self._year)
        return Result(
            orders=self._orders,
            found=found,
            differences=list(differences(found, self._orders, bad)),
            kills=kills,
            failures={name: driver.failures for name, driver in self._drivers.items()},
            batches={name: driver.batches for name, driver in self._drivers.items()},
            bad=len(bad),
            took_s=time.monotonic() - self._began,
        )

    def _say(self, what: str) -> None:
        note(f"{time.monotonic() - self._began:6.1f} s  {what}")


def _bad(year: Sequence[Delivery]) -> Sequence[bytes]:
    return [value for delivery in year for value in delivery.bad]


async def _prepare(client: SemelClient) -> None:
    """Make the topics, and write the menu."""
    for topic in (ORDERS, MENU, *_OUTPUTS):
        await client.admin().create_topic(topic, partitions=PARTITIONS)
    menu = read_menu()
    values, keys = [dish.value for dish in menu], [dish.key for dish in menu]
    await (await client.producer().send_columns(MENU, values, keys=keys))
