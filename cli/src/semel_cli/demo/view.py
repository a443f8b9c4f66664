"""The view of a running job: orders in, income out, transactions, and the last kill.

On a terminal it lives; elsewhere it is a line for each phase, and no more.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from semel_cli.demo.tally import Tally
from semel_cli.shared.output import note

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_REFRESHES_PER_SECOND = 8
_EVENTS_SHOWN = 5
_JUST_KILLED_S = 2.0


@dataclass(slots=True, kw_only=True)
class JobState:
    """A job as it is shown; others change it as they go."""

    title: str
    lines: int
    kills: int
    """How many are planned."""
    tally: Tally
    running: Callable[[], Mapping[str, bool]]
    """Whether each process is there."""
    loaded: int = 0
    killed: dict[str, list[float]] = field(default_factory=dict)
    """When each process was killed, by the view's clock."""


class DemoView:
    """Shows the demo. Use with ``with``."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._began = time.monotonic()
        self._events: deque[str] = deque(maxlen=_EVENTS_SHOWN)
        self._state: JobState | None = None
        self._live: Live | None = None

    def phase(self, sentence: str) -> None:
        """Say what happens now."""
        if self._live is None:
            note(sentence)
        else:
            self._happened(f"[bold]{sentence}[/]")

    def follow(self, state: JobState) -> None:
        """Show this job from now on."""
        self._state = state

    def killed(self, name: str) -> None:
        """Show a kill."""
        if self._state is not None:
            self._state.killed.setdefault(name, []).append(time.monotonic())
        self._happened(f"[red]kill -9[/] {name}")

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self._render,
                refresh_per_second=_REFRESHES_PER_SECOND,
                transient=True,
            )
            self._live.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(exc_type, exc, traceback)

    def _happened(self, event: str) -> None:
        self._events.append(f"[dim]{time.monotonic() - self._began:5.1f} s[/]  {event}")

    # -- on a terminal ------------------------------------------------------------------------

    def _render(self) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        happened = Text.from_markup("\n".join(self._events))
        state = self._state
        if state is None:
            return happened
        return Panel(
            Group(
                _bars(state), Text(), _numbers(state), Text(), _processes(state), Text(), happened
            ),
            title=state.title,
            title_align="left",
        )


def _bars(state: JobState) -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, count in (("orders in", state.loaded), ("income out", state.tally.visible.lines)):
        grid.add_row(
            name,
            ProgressBar(total=state.lines, completed=min(count, state.lines), width=40),
            f"{count:,} of {state.lines:,}",
        )
    return grid


def _numbers(state: JobState) -> "RenderableType":
    from rich.text import Text

    tally = state.tally
    kills = sum(map(len, state.killed.values()))
    return Text.from_markup(
        f"income [bold]{tally.visible.total:,.2f}[/]   transactions [green]{len(tally.committed):,}"
        f" committed[/], [yellow]{len(tally.aborted):,} aborted[/]   kills {kills} of {state.kills}"
    )


def _processes(state: JobState) -> "RenderableType":
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, is_running in state.running().items():
        killed = state.killed.get(name, [])
        just_killed = bool(killed) and time.monotonic() - killed[-1] < _JUST_KILLED_S
        mark = "[green]●[/]" if is_running and not just_killed else "[red]✗[/]"
        said = "[red]just killed[/]" if just_killed else ""
        grid.add_row(mark, name, f"killed: {len(killed)}" if killed else "", said)
    return grid
