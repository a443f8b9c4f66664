"""No two modules import one another, not even for types, nor through others."""

import ast
from graphlib import TopologicalSorter

from source_tree import Module, modules


def test_no_import_goes_in_a_circle() -> None:
    source = {module.dotted_name: module for module in modules() if module.is_source}
    graph = {name: imported(module, source) for name, module in source.items()}
    order = list(TopologicalSorter(graph).static_order())  # Raises CycleError with the circle.
    assert len(order) == len(source)


def imported(module: Module, source: dict[str, Module]) -> set[str]:
    """Return the project's modules that a module imports anywhere, functions included."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                found.add(full if full in source else node.module)
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
    return found & source.keys()
