"""A small model of a journal with a log in front of its tables, and a search through its states.

A few processes claim one journal, one after the other or at the same time, and append to it. Any of
them may stand still between any two steps, or be killed; and the power may fail. A commit of the
tables is one step, and durable. A frame that is written can be read by all, and is durable after
its sync; a loss of power leaves it, or tears it, or takes it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

TORN = -1
"""The value of a frame that is not whole."""
DEFECTS = frozenset(
    {
        "acknowledged before the look",
        "acknowledged before the sync",
        "look before the write",
        "log read before the claim",
        "claim that begins no log of its own",
        "logs of all others removed",
        "older logs taken",
        "torn frame taken",
        "file written again too early",
        "tables filled without a look",
        "log carried over without a look",
        "log not carried over",
        "log begun without a look",
    }
)


class Frame(NamedTuple):
    """One append in a log."""

    at: int
    value: int
    synced: bool


Change: TypeAlias = Callable[[tuple[Frame, ...]], tuple[Frame, ...]]


class Process(NamedTuple):
    """One handle of the journal."""

    phase: str = "new"
    epoch: int = 0
    log: int = 0
    found: tuple[int, ...] = ()
    """What it has read in the older log, from offset `start` on."""
    start: int = 0
    """Where the journal ends, as far as it knows."""
    left: int = 0
    """Appends that it will make."""
    own: tuple[int, ...] = ()
    """The newest of its appends up to `start`, in memory."""


class State(NamedTuple):
    """All of a journal, and the acknowledged records."""

    epoch: int
    log: int
    records: tuple[int, ...]
    """The tables."""
    files: tuple[tuple[int, tuple[Frame, ...]], ...]
    """The logs by their numbers."""
    processes: tuple[Process, ...]
    acknowledged: frozenset[tuple[int, int]] = frozenset()
    losses: int = 0
    """How often the power will fail."""


class Violation(Exception):  # noqa: N818 - the result of a search, no error of a program
    """An acknowledged record is lost, or two records have one offset."""


class Model:
    """Its steps, with a defect or none."""

    def __init__(self, defect: str = "") -> None:
        assert not defect or defect in DEFECTS
        self._defect = defect

    def first(self, *, processes: int, appends: int, losses: int) -> State:
        """Return the state of an empty journal."""
        new = Process(left=appends)
        return State(0, 0, (), (), (new,) * processes, losses=losses)

    def following(self, state: State) -> Iterator[State]:
        """Yield all states that can follow."""
        for number, process in enumerate(state.processes):
            if process.phase == "dead":
                continue
            for after, change in self._steps(state, number, process):
                yield _with(after, number, change)
            if process.phase != "new":
                yield _with(state, number, Process("dead"))
            else:
                break  # They are all alike: only the first new one begins.
        if state.losses:
            yield from _after_a_loss(state)

    def _steps(
        self, state: State, number: int, process: Process
    ) -> Iterator[tuple[State, Process]]:
        match process.phase:
            case "new" if self._has("log read before the claim"):
                yield self._read(state, process, phase="read first")
            case "new" | "read first":
                epoch = state.epoch + 1
                phase = "claimed" if process.phase == "new" else "read"
                yield state._replace(epoch=epoch), process._replace(phase=phase, epoch=epoch)
            case "claimed":
                yield self._read(state, process, phase="read")
            case "read":
                yield from self._carry_over(state, process)
            case "carried over":
                yield from self._begin(state, process)
            case "begun":
                files = self._removed(state, process)
                yield state._replace(files=files), process._replace(phase="serving")
            case _:
                yield from self._append(state, number, process)
                yield from self._fill(state, number, process)

    def _read(self, state: State, process: Process, *, phase: str) -> tuple[State, Process]:
        found: list[int] = []
        logs = [
            frames
            for log, frames in state.files
            if log == state.log or self._has("older logs taken")
        ]
        for frame in sorted(frame for frames in logs for frame in frames):
            is_whole = frame.value != TORN or self._has("torn frame taken")
            if is_whole and frame.at == len(state.records) + len(found):
                found.append(frame.value)
        start = len(state.records)
        return state, process._replace(phase=phase, found=tuple(found), start=start)

    def _carry_over(self, state: State, process: Process) -> Iterator[tuple[State, Process]]:
        holds = state.epoch == process.epoch and len(state.records) == process.start
        if holds or self._has("log carried over without a look"):
            found = () if self._has("log not carried over") else process.found
            changed = process._replace(phase="carried over", found=())
            yield state._replace(records=state.records + found), changed
        else:
            yield state, Process("dead")

    def _begin(self, state: State, process: Process) -> Iterator[tuple[State, Process]]:
        if state.epoch != process.epoch and not self._has("log begun without a look"):
            yield state, Process("dead")
            return
        own = self._has("claim that begins no log of its own") and state.log
        log = state.log if own else state.log + 1
        files = state.files if own else (*state.files, (log, ()))
        after = state._replace(log=log, files=files)
        check_owner(after)
        yield after, process._replace(phase="begun", log=log, start=len(state.records))

    def _removed(self, state: State, process: Process) -> tuple[tuple[int, tuple[Frame, ...]], ...]:
        if self._has("logs of all others removed"):
            return tuple(each for each in state.files if each[0] == process.log)
        if self._has("older logs taken"):
            return state.files
        return tuple(each for each in state.files if each[0] >= process.log)

    def _append(
        self, state: State, number: int, process: Process
    ) -> Iterator[tuple[State, Process]]:
        """Make the next step of an append; which these are, and in which order, is the point."""
        frame = Frame(process.start, 10 * number + process.left, synced=False)
        order = ["write", "sync", "look", "acknowledge"]
        if self._has("acknowledged before the look"):
            order = ["write", "sync", "acknowledge", "look"]
        if self._has("acknowledged before the sync"):
            order = ["write", "look", "acknowledge", "sync"]
        if self._has("look before the write"):
            order = ["look", "write", "sync", "acknowledge"]
        done = 0 if process.phase == "serving" else int(process.phase)
        if not process.left:
            return
        after = state
        match order[done]:
            case "write":
                after = _in_log(state, process.log, lambda frames: (*frames, frame))
            case "sync":
                after = _in_log(
                    state,
                    process.log,
                    lambda frames: tuple(each._replace(synced=True) for each in frames),
                )
            case "look" if (state.epoch, state.log) != (process.epoch, process.log):
                yield state, Process("dead")
                return
            case "acknowledge":
                after = _acknowledged(state, frame)
            case _:
                pass
        if done + 1 < len(order):
            yield after, process._replace(phase=str(done + 1))
        else:
            yield (
                after,
                process._replace(
                    phase="serving",
                    start=frame.at + 1,
                    left=process.left - 1,
                    own=(*process.own, frame.value),
                ),
            )

    def _fill(self, state: State, number: int, process: Process) -> Iterator[tuple[State, Process]]:
        """Put the next append into the tables, or write the file again from its start."""
        holds = (state.epoch, state.log) == (process.epoch, process.log)
        own = process.own
        if self._has("tables filled without a look"):
            holds = True
            own = (*own, 10 * number + process.left)  # The one that is not acknowledged yet, too.
        index = len(state.records) - process.start + len(process.own)
        if holds and 0 <= index < len(own):
            yield state._replace(records=(*state.records, own[index])), process
        stored = len(state.records)
        if self._has("file written again too early"):
            stored = process.start
        after = _in_log(
            state,
            process.log,
            lambda frames: tuple(each for each in frames if each.at >= stored),
        )
        if after != state:
            yield after, process

    def _has(self, defect: str) -> bool:
        return self._defect == defect


def check_owner(state: State) -> None:
    """Check that a new owner, with the older log carried over, finds all acknowledged records."""
    for at, value in state.acknowledged:
        found = state.records[at] if at < len(state.records) else None
        if found != value:
            raise Violation(f"acknowledged at {at}: {value}; its owner finds {found}")


def check_tables(state: State) -> None:
    """Check that the tables have no other record in the place of an acknowledged one."""
    for at, value in state.acknowledged:
        if at < len(state.records) and state.records[at] != value:
            raise Violation(f"acknowledged at {at}: {value}; the tables have {state.records[at]}")
    if TORN in state.records:
        raise Violation("a torn frame was taken for a record")


def explore(model: Model, *, processes: int, appends: int, losses: int) -> int:
    """Go through all states; return how many there are. Raises Violation."""
    first = model.first(processes=processes, appends=appends, losses=losses)
    seen, waiting = {first}, [first]
    while waiting:
        for after in model.following(waiting.pop()):
            if after not in seen:
                check_tables(after)
                seen.add(after)
                waiting.append(after)
    return len(seen)


def _acknowledged(state: State, frame: Frame) -> State:
    if any(at == frame.at and value != frame.value for at, value in state.acknowledged):
        raise Violation(f"two records are acknowledged at {frame.at}")
    return state._replace(acknowledged=state.acknowledged | {(frame.at, frame.value)})


def _with(state: State, number: int, process: Process) -> State:
    processes = (*state.processes[:number], process, *state.processes[number + 1 :])
    return state._replace(processes=processes)


def _in_log(state: State, log: int, change: Change) -> State:
    """Change the frames of a log; one that was removed has no name any more, so no one reads it."""
    files = tuple((each, change(frames) if each == log else frames) for each, frames in state.files)
    return state._replace(files=files)


def _after_a_loss(state: State) -> Iterator[State]:
    """Yield what a loss of power leaves: each frame that was not synced as it is, torn, or gone."""
    processes = tuple(each if each.phase == "new" else Process("dead") for each in state.processes)
    left = [state._replace(processes=processes, losses=state.losses - 1, files=())]
    for log, frames in state.files:
        kept = tuple(frame for frame in frames if frame.synced)
        unsynced = [frame for frame in frames if not frame.synced]
        outcomes = [kept]
        for frame in unsynced:
            outcomes += [(*each, frame) for each in outcomes]
            outcomes += [(*kept, frame._replace(value=TORN))]
        left = [each._replace(files=(*each.files, (log, one))) for each in left for one in outcomes]
    yield from left
