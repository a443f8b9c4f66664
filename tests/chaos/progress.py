"""How long anything stood still: when the faults were over, and after one of a kind."""

from collections.abc import Iterator
from itertools import pairwise

from semel_checker.history import History, Invoked, Returned
from semel_checker.names import Outcome, Partition, Writer
from semel_checker.observations import FaultInjected, FaultKind, FaultsOver
from semel_checker.operations import EndTransaction, Send


def longest_standstill(history: History) -> int:
    """Return the longest time, in milliseconds, in which one partition took no transaction.

    It is measured from the end of the last fault to the first transaction that was sent afterwards
    and committed, and then from one to the next.
    """
    over_ms = next((event.at_ms for event in history if isinstance(event.what, FaultsOver)), None)
    if over_ms is None:
        return 0
    taken: dict[Partition, list[int]] = {}
    places: dict[Writer, set[Partition]] = {}
    commits: dict[int, Writer] = {}
    for event in history:
        match event.what:
            case Invoked(operation=Send(writer=writer, partition=partition, transactional=True)):
                taken.setdefault(partition, [over_ms])
                places.setdefault(writer, set()).add(partition)
            case Invoked(op=op, operation=EndTransaction(writer=writer, commit=True)):
                commits[op] = writer
            case Returned(op=op, outcome=Outcome.OK) if op in commits and event.at_ms > over_ms:
                for partition in places.get(commits[op], ()):
                    taken[partition].append(event.at_ms)
            case _:
                pass
    gaps = [later - earlier for times in taken.values() for earlier, later in pairwise(times)]
    return max(gaps, default=0)


def pauses_after(history: History, victim: str) -> Iterator[int]:
    """Yield, for each kill of the victim, the time to the first commit that began afterwards.

    In milliseconds. A kill that comes before that commit is not told apart.
    """
    killed_ms: int | None = None
    begun: set[int] = set()
    for event in history:
        match event.what:
            case FaultInjected(kind=FaultKind.KILL, target=target) if target == victim:
                if killed_ms is None:
                    killed_ms = event.at_ms
            case Invoked(op=op, operation=EndTransaction(commit=True)) if killed_ms is not None:
                begun.add(op)
            case Returned(op=op, outcome=Outcome.OK) if op in begun and killed_ms is not None:
                yield event.at_ms - killed_ms
                killed_ms = None
                begun.clear()
            case _:
                pass
