"""Transactions that read one another's values (C9)."""

from collections.abc import Iterator
from itertools import pairwise

from semel_checker.facts import Facts
from semel_checker.names import TransactionState
from semel_checker.transactions import Unit
from semel_checker.violations import Rule, Violation

Graph = dict[Unit, dict[Unit, str]]
"""From a transaction to the transactions that read a value of it, with the value."""


def check_cycles(facts: Facts) -> list[Violation]:
    """C9; one circle is reported, however many there are."""
    graph = _reads(facts)
    circle = _circle(graph)
    if not circle:
        return []
    values = [graph[writer][reader] for writer, reader in pairwise([*circle, circle[0]])]
    what = f"{len(circle)} transactions read in a circle: {', '.join(values)}"
    return [facts.violation(Rule.C9, what, *(facts.written[value].call for value in values))]


def _reads(facts: Facts) -> Graph:
    graph: Graph = {}
    for value, reader in (*_polled(facts), *_derived(facts)):
        written = facts.written.get(value)
        if written is None or facts.state_of(written) is TransactionState.ABORTED:
            continue
        if written.transactional:
            writer = facts.transactions.unit_of(written.writer)
            if writer != reader:
                graph.setdefault(writer, {}).setdefault(reader, value)
                graph.setdefault(reader, {})
    return graph


def _polled(facts: Facts) -> Iterator[tuple[str, Unit]]:
    for reading in facts.readings:
        transaction = reading.call.operation.transaction
        if transaction is not None and reading.committed:
            unit = facts.transactions.unit_of(transaction)
            if facts.transactions.state_of(transaction) is not TransactionState.ABORTED:
                yield from ((record.value, unit) for record in reading.read.records)


def _derived(facts: Facts) -> Iterator[tuple[str, Unit]]:
    for written in facts.written.values():
        source = written.record.source
        if source is None or not written.transactional:
            continue
        value = facts.log(source.partition).visible.get(source.offset)
        if value is not None and facts.state_of(written) is not TransactionState.ABORTED:
            yield value, facts.transactions.unit_of(written.writer)


def _circle(graph: Graph) -> list[Unit]:
    """Return the transactions of one circle, in order of reading; none if there is none."""
    rest = _peel(_peel(graph), backwards=True)
    if not rest:
        return []
    path = [next(iter(rest))]
    places = {path[0]: 0}
    while True:
        reader = next(unit for unit in graph[path[-1]] if unit in rest)
        if reader in places:
            return path[places[reader] :]
        places[reader] = len(path)
        path.append(reader)


def _peel(graph: Graph, *, backwards: bool = False) -> Graph:
    """Leave out, until none is left, the transactions that read of no other (or none reads of)."""
    edges = [(writer, reader) for writer, readers in graph.items() for reader in readers]
    if backwards:
        edges = [(reader, writer) for writer, reader in edges if reader in graph]
    degree = dict.fromkeys(graph, 0)
    following: dict[Unit, list[Unit]] = {unit: [] for unit in graph}
    for before, after in edges:
        if before in graph and after in graph:
            degree[after] += 1
            following[before].append(after)
    free = [unit for unit, count in degree.items() if not count]
    for unit in free:
        for after in following[unit]:
            degree[after] -= 1
            if not degree[after]:
                free.append(after)
    gone = set(free)
    return {unit: readers for unit, readers in graph.items() if unit not in gone}
