"""A year of orders comes in, some days every second; with a few lines that are no orders."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

from aiosemel import SemelClient
from semel_cli.demo.input import OrderLine, Orders

DAYS_PER_S = 6.0
LATENESS = "14 days"
"""What partitions may be apart: more than two seconds of this feed, which is a long time for a
reader to have seen the end of one partition, and not yet that of another."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What comes in together: the orders of a day."""

    lines: Sequence[OrderLine]
    bad: Sequence[bytes] = ()


def spoilt(line: OrderLine) -> Sequence[bytes]:
    """Return records that look like an order line, and are none."""
    return (
        b"no order",
        line.value[:-10],
        json.dumps(asdict(line) | {"price": 9.75, "line": None}).encode(),
        replace(line, price="12.345").value,
        replace(line, date="2015-02-30").value,
        replace(line, date="2051-01-01").value,
    )


def deliveries(orders: Orders) -> Sequence[Delivery]:
    """Return the year day by day, with invalid orders at some of the days."""
    days = [list(lines) for _, lines in groupby(orders.lines, lambda line: line.date)]
    bad = spoilt(orders.lines[0])
    step = len(days) // len(bad)
    return [
        Delivery(lines, bad[day // step : day // step + 1] if day % step == 0 else ())
        for day, lines in enumerate(days)
    ]


class Feed:
    """Sends deliveries at a steady pace; each is stored before the next one is sent."""

    def __init__(self, client: SemelClient, topic: str, year: Sequence[Delivery]) -> None:
        """Send nothing yet."""
        self._producer = client.producer()
        self._topic = topic
        self._coming = list(reversed(year))
        self.sent_lines = 0
        """Order lines that have come in."""

    async def up_to(self, lines: int) -> None:
        """Send until there are so many order lines; each is stored once, despite all kills."""
        while self._coming and self.sent_lines < lines:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(1 / DAYS_PER_S), name="pace of the feed")
                group.create_task(self._send(self._coming.pop()), name="a day's orders")

    async def _send(self, delivery: Delivery) -> None:
        values = [*(line.value for line in delivery.lines), *delivery.bad]
        keys = [*(line.key for line in delivery.lines), *(b"bad" for _ in delivery.bad)]
        await (await self._producer.send_columns(self._topic, values, keys=keys))
        self.sent_lines += len(delivery.lines)
