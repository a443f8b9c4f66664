"""All rules: every public function of the modules that hold them."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType

from manifests import agreement, databases, safety, schema, structure
from manifests.rendered import Objects

Rule = Callable[[Objects], Iterator[str]]


def _of(module: ModuleType) -> dict[str, Rule]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isgeneratorfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


RULES = _of(structure) | _of(agreement) | _of(databases) | _of(safety) | _of(schema)
