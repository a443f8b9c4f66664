"""One service in all states that it comes to: each is kept once, and so is each of its steps.

A state is named by a number. It holds what its machine's snapshot says, and the facts that were
ever written, which the machine may forget. A step is a message that was handled in a state: the
machine is made of the snapshot, decides, and replays, once for each pair of state and message.
"""

from dataclasses import dataclass
from typing import Any, assert_never

from exploration.messages import Message
from exploration.services import Fact, Service, ViolationError


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of a message in a state."""

    after: int
    answers: tuple[Message, ...]


class Node:
    """One service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._numbers: dict[tuple[str, frozenset[Fact]], int] = {}
        self._entries: list[list[tuple[int, Any]]] = []
        self.facts: list[frozenset[Fact]] = []
        """By state: all facts that were ever written."""
        self._steps: dict[tuple[int, Message], Step] = {}
        self.first = self._keep(service.boot(), frozenset())

    def __len__(self) -> int:
        return len(self._entries)

    def step(self, state: int, message: Message) -> Step:
        """Handle a message. Raises ViolationError."""
        known = self._steps.get((state, message))
        if known is None:
            known = self._steps[state, message] = self._step(state, message)
        return known

    def machine(self, state: int) -> Any:
        """Make the machine of a state."""
        machine = self.service.boot()
        for offset, record in self._entries[state]:
            machine.replay(offset, record)
        return machine

    def _step(self, state: int, message: Message) -> Step:
        machine = self.machine(state)
        records, answers = self.service.decide(machine, message)
        facts = set(self.facts[state])
        offset = len(self._entries[state]) + 1
        for record in records:
            machine.replay(offset, record)
            offset += 1
            for fact in self.service.facts(record):
                _check(facts, fact)
                facts.add(fact)
        after = self._keep(machine, frozenset(facts)) if records else state
        return Step(after, answers)

    def _keep(self, machine: Any, facts: frozenset[Fact]) -> int:
        entries = list(machine.snapshot())
        # Offsets only order the records: other offsets do not make another state.
        ranks = {offset: rank for rank, offset in enumerate(sorted({each for each, _ in entries}))}
        entries = [(ranks[offset], record) for offset, record in entries]
        key = (repr(entries), facts)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._entries)
            self._entries.append(entries)
            self.facts.append(facts)
        return number


def _check(facts: set[Fact], fact: Fact) -> None:
    """Check a fact against those before it."""
    same = [each for each in facts if each.epoch == fact.epoch]
    match fact.what:
        case "written":
            if any(each.what == "ended" for each in same):
                raise ViolationError(f"epoch {fact.epoch} is written after its end")
        case "ended" | "decided":
            if any(each.what == fact.what and each != fact for each in same):
                raise ViolationError(f"epoch {fact.epoch} is {fact.what} twice, differently")
        case "current":
            highest = max((each.epoch for each in facts if each.what == "current"), default=0)
            if fact.epoch < highest:
                raise ViolationError(f"the epoch went back from {highest} to {fact.epoch}")
        case _:
            assert_never(fact.what)
