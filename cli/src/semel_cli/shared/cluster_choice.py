"""Which cluster a command works with: the one that is named, or else one of `semel up`.

Without a name, it is the cluster of this user that was started last and still runs. A command that
changes something says which one that is; a person is also told of one that the environment names.
It refuses a cluster that its user does not expect: not the one that was used last, and not one that
was started since, after the other one has ended.
"""

import time
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated

import typer

from semel_cli.local.running_clusters import (
    LastUsed,
    RunningCluster,
    read_last_used,
    read_running,
    write_last_used,
)
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.confirmation import can_ask, can_see, confirm
from semel_cli.shared.options import not_empty
from semel_cli.shared.output import note

VARIABLE = "SEMEL_BOOTSTRAP"


class Purpose(Enum):
    """What a command does with its cluster."""

    READ = auto()
    CHANGE = auto()


def _given(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """Note whether the environment names the cluster."""
    source = context.get_parameter_source(parameter.name or "")
    is_from_environment = source is not None and source.name == "ENVIRONMENT"
    _line.get().is_from_environment = is_from_environment
    return not_empty(given)


@dataclass(slots=True)
class _Line:
    """One command line: all parts of it work with one cluster."""

    is_from_environment: bool = False
    """Whether the environment names the cluster."""
    bootstrap: str | None = None
    """The cluster that was chosen."""
    purpose: Purpose = Purpose.READ
    """Why the cluster was chosen."""


_line = ContextVar("line", default=_Line())  # noqa: B039 - each command line sets its own


def begin_command_line() -> None:
    """Let this command choose a cluster of its own."""
    _line.set(_Line())


BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar=VARIABLE,
        metavar="HOST:PORT",
        help="A coordinator of the cluster; by default, of the last `semel up` that still runs.",
        callback=_given,
        show_default=False,
    ),
]


def find_bootstrap(given: str | None, purpose: Purpose = Purpose.READ) -> str:
    """Return the address of the cluster to work with; of one command line always the same.

    Raises UsageError for a cluster that cannot be found, or that a change is not meant for;
    typer.Abort when a person does not want the change there.
    """
    line = _line.get()
    if line.bootstrap is not None and purpose in {line.purpose, Purpose.READ}:
        return line.bootstrap
    if given is not None:
        line.bootstrap = _named(given, purpose, from_environment=line.is_from_environment)
    else:
        line.bootstrap = _found(purpose).bootstrap
    line.purpose = purpose
    return line.bootstrap


def _named(given: str, purpose: Purpose, *, from_environment: bool) -> str:
    if from_environment and purpose is Purpose.CHANGE and can_see():
        note(f"cluster {given} ({VARIABLE})")
    for cluster in read_running():
        if cluster.bootstrap == given and cluster.is_alive:
            _use(cluster)
    return given


def _found(purpose: Purpose) -> RunningCluster:
    known = read_running()
    alive = [each for each in known if each.is_alive]
    if not alive:
        raise UsageError(_nothing_runs(known))
    cluster, last = alive[0], read_last_used()
    if _is_expected(cluster, last, alive):
        if purpose is Purpose.CHANGE:
            note(f"cluster {cluster.bootstrap} in {cluster.folder}")
        elif len(alive) > 1 and can_see():
            note(f"{len(alive)} clusters run here: this is the last one, in {cluster.folder}")
        _use(cluster)
        return cluster
    assert last is not None
    _confirm_other(cluster, last, purpose, runs=any(each.folder == last.folder for each in alive))
    return cluster


def _is_expected(
    cluster: RunningCluster, last: LastUsed | None, alive: list[RunningCluster]
) -> bool:
    if last is None or cluster.folder == last.folder:
        return True
    has_ended = all(each.folder != last.folder for each in alive)
    return has_ended and cluster.started_ms > last.used_ms


def _confirm_other(
    cluster: RunningCluster, last: LastUsed, purpose: Purpose, *, runs: bool
) -> None:
    """Say that this is another cluster than before; of a change, ask, or refuse it."""
    state = "is another one that runs" if runs else "has ended"
    sentence = (
        f"this is cluster {cluster.bootstrap} in {cluster.folder}; the one used last,"
        f" {last.bootstrap} in {last.folder}, {state}"
    )
    if purpose is Purpose.READ:
        note(f"semel: {sentence}")
    elif can_ask():
        confirm(f"{sentence}. Change this one?")
        _use(cluster)
    else:
        raise UsageError(f"{sentence}: name the one to change with --bootstrap HOST:PORT")


def _use(cluster: RunningCluster) -> None:
    """Remember the cluster; a command that cannot write the file goes on without it."""
    now_ms = time.time_ns() // 1_000_000
    write_last_used(LastUsed(folder=cluster.folder, bootstrap=cluster.bootstrap, used_ms=now_ms))


def _nothing_runs(known: list[RunningCluster]) -> str:
    if known:
        return (
            f"the cluster of `semel up` in {known[0].folder} is not running any more: start it"
            f" again, or name another one with --bootstrap HOST:PORT or {VARIABLE}"
        )
    return (
        "which cluster? Start one here with `semel up`, or name one with --bootstrap HOST:PORT or"
        f" {VARIABLE}"
    )
