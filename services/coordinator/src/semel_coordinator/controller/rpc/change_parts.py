"""The parts of the controller that all changes of the metadata share."""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from semel_coordinator.controller.machine import ControllerMachine
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_runtime.runner import Runner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """Each change is a class with these parts, in a file of its own."""

    runner: Runner[CoordinatorRecord]
    machine: ControllerMachine
    random: Random


async def at_once(changes: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Make changes that share a commit; returns their results in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(change) for change in changes]
    return [task.result() for task in tasks]
