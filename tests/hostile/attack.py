"""An attack, and the verdict on it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hostile.callers import Caller
from hostile.observer import Observer, Usage
from hostile.polite import Politeness, polite_client
from hostile.stage import Stage

HELD_MAX_BYTES = 128 << 20
POLITE_MAX_MS = 5_000.0


@dataclass(slots=True)
class Sent:
    """The calls of an attack, and their answers. The attack fills it in while it runs."""

    calls: int = 0
    """Calls, frames or connections."""
    size_bytes: int = 0
    """Bytes of their messages."""
    results: Counter[str] = field(default_factory=Counter)
    """By name of the error code; ``OK``; ``closed`` for a connection that a service has closed."""
    violations: list[str] = field(default_factory=list)
    """Sentences, each with a wrong answer and the right ones."""

    def add(self, result: str, size_bytes: int = 0) -> None:
        """Count one call."""
        self.calls += 1
        self.size_bytes += size_bytes
        self.results[result] += 1

    def expect(self, *allowed: str) -> None:
        """Call every other result a violation."""
        for result, count in self.results.items():
            if result not in allowed:
                self.violations.append(f"{count} calls got {result}, not {' or '.join(allowed)}")


Run = Callable[[Stage, Sent], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack. Its ``run`` returns when the last answer has come or was given up."""

    name: str
    """As it is chosen on the command line: ``many-empty-frames``."""
    what: str
    """One sentence: the attacker is its subject."""
    rpc: str
    """The RPC that it misuses; ``connection`` if it sends none."""
    transport: str
    """``unary``, ``frames over gRPC``, ``frames over a socket``, ``TCP``, ``TLS``, ``HTTP``."""
    caller: Caller
    run: Run
    quick: bool = True
    """Whether the test suite runs it."""
    peak_max_bytes: int = 1 << 30
    """How much the memory of one service may rise while it runs."""
    held_max_bytes: int = HELD_MAX_BYTES
    """How much of that may be held when it is over."""
    polite_max_ms: float = POLITE_MAX_MS
    """How long one turn of the polite client may take, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of an attack."""

    attack: Attack
    sent: Sent
    usage: Mapping[str, Usage]
    politeness: Politeness
    violations: Sequence[str]
    """Empty: Semel has stood it."""


async def judge(stage: Stage, attack: Attack) -> Verdict:
    """Run an attack beside the polite client."""
    sent = Sent()
    stage.ended.clear()
    logs = stage.log_sizes()
    async with polite_client(stage) as polite:
        observer = Observer(stage.cluster.pids())
        await attack.run(stage, sent)
        politeness = await polite.end()
        usage = observer.usage()
    violations = [
        *sent.violations,
        *stage.ended,
        *stage.tracebacks(logs),
        *_of_memory(attack, usage),
        *_of_politeness(attack, politeness),
    ]
    await stage.revive()
    return Verdict(
        attack=attack, sent=sent, usage=usage, politeness=politeness, violations=violations
    )


def _of_memory(attack: Attack, usage: Mapping[str, Usage]) -> list[str]:
    found = []
    for name, each in usage.items():
        if each.peak_bytes > attack.peak_max_bytes:
            found.append(f"{name} took {each.peak_bytes >> 20} MiB at its peak")
        if each.held_bytes > attack.held_max_bytes:
            found.append(f"{name} holds {each.held_bytes >> 20} MiB afterwards")
    return found


def _of_politeness(attack: Attack, politeness: Politeness) -> list[str]:
    found = [f"the polite client got {error}" for error in politeness.errors[:3]]
    if politeness.max_ms > attack.polite_max_ms:
        found.append(f"the polite client waited {politeness.max_ms:.0f} ms for one turn")
    return found
