"""The menu of the pizza place: titles and ingredients, from the description of the orders' data."""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "great_tables"
_FILE = "data/__init__.py"
_VARIABLE = "pizzaplace"
_DISH = re.compile(r'- `"(?P<name>\w+)"`: The (?P<title>[^()]+) Pizza \((?P<ingredients>[^()]+)\)')

DISHES = 32


class MenuMissingError(Exception):
    """The package with the menu is not installed, or describes another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dish:
    """One pizza, in all its sizes."""

    name: str
    """As orders name it."""
    title: str
    ingredients: Sequence[str]

    @property
    def key(self) -> bytes:
        """What the topic of the menu keeps the last record of."""
        return self.name.encode()

    @property
    def value(self) -> bytes:
        """The dish as a record in the topic of the menu."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def read_menu() -> Sequence[Dish]:
    """Read it from the package that has the orders. Raises MenuMissingError."""
    # Read, not imported: the package wants pandas for the work with its files.
    package = find_spec(_PACKAGE)
    folders = package.submodule_search_locations if package else None
    files = [Path(folder) / _FILE for folder in folders or ()]
    dishes = [dish for file in files for dish in _dishes(_description(file.read_text("utf-8")))]
    if len(dishes) != DISHES:
        raise MenuMissingError(f"{_PACKAGE} describes {len(dishes)} pizzas, not the {DISHES} known")
    return dishes


def _description(source: str) -> str:
    """Return the text that a module gives its pizzas as their documentation."""
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=name), attr="__doc__")],
                value=ast.Constant(value=str(text)),
            ) if name == _VARIABLE:
                return text
            case _:
                continue
    return ""


def _dishes(description: str) -> list[Dish]:
    return [
        Dish(
            name=found["name"],
            title=found["title"],
            ingredients=re.split(r", (?:and )?", found["ingredients"]),
        )
        for found in _DISH.finditer(" ".join(description.split()))
    ]
