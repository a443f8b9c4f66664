"""What this half of the coordinator needs of the runner, which both halves share."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from semel_coordinator.transactions.machine import TransactionsRecord
from semel_runtime.machine import Result

T = TypeVar("T")


class Runs(Protocol):
    """Decides, appends, replays, and answers once it is durable: see semel_runtime.runner."""

    async def run(
        self, handler: Callable[[], Result[T, TransactionsRecord]], *, privileged: bool = False
    ) -> T:
        """Run one handler."""
        ...

    def run_lazily(
        self, handler: Callable[[], Result[T, TransactionsRecord]], *, privileged: bool = False
    ) -> T:
        """Run one handler whose records no caller waits for."""
        ...

    def on_durable(self, listener: Callable[[Sequence[object]], None]) -> None:
        """Call `listener` with the records of each commit, in order, once they are durable."""
        ...
