"""A year of a pizza place: 49,574 lines of 21,350 orders, as they come with great_tables."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

LINES = 49_574
TOTAL = Decimal("817860.05")
"""What the file holds: a file with anything else is not the one that the demo is about."""

_PACKAGE = "great_tables"
_FILE = "data/05-pizzaplace.csv"


class InputMissingError(Exception):
    """The package with the orders is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """One pizza of an order."""

    line: int
    """Its number in the file, from 1: two pizzas of an order may be alike."""
    id: str
    date: str
    time: str
    name: str
    size: str
    type: str
    price: str

    @property
    def key(self) -> bytes:
        """What orders are kept together by."""
        return self.id.encode()

    @property
    def value(self) -> bytes:
        """The line as the record in the topic of orders."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True)
class Orders:
    """Lines of orders, in the order of the file."""

    lines: Sequence[OrderLine]

    @cached_property
    def total(self) -> Decimal:
        """The income, summed up straight from the file."""
        return sum((Decimal(line.price) for line in self.lines), Decimal(0))

    def first(self, count: int) -> "Orders":
        """Return the first lines."""
        return Orders(self.lines[:count])


def read_orders() -> Orders:
    """Read the file from the installed package. Raises InputMissingError."""
    # Only found, not imported: the package wants pandas for the work with its files.
    package = find_spec(_PACKAGE)
    folders = package.submodule_search_locations if package else None
    files = [Path(folder) / _FILE for folder in folders or ()]
    found = next((file for file in files if file.exists()), None)
    if found is None:
        raise InputMissingError(
            f"the orders ({_FILE}) come with the package great_tables, which is not installed:"
            " pip install 'semel[demo]'"
        )
    text = found.read_text(encoding="utf-8")
    rows = csv.DictReader(io.StringIO(text))
    orders = Orders([OrderLine(line=number, **row) for number, row in enumerate(rows, start=1)])
    if (len(orders.lines), orders.total) != (LINES, TOTAL):
        raise InputMissingError(f"{found} holds {len(orders.lines)} lines, not the {LINES} known")
    return orders
