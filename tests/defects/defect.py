"""Planted defects, by name."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect."""

    name: str
    says: str
    """The fault, in a sentence."""
    plant: Plant


def collector() -> tuple[list[Defect], Callable[[str, str], Callable[[Plant], Plant]]]:
    """Make a list of defects, and the decorator that adds to it."""
    found: list[Defect] = []

    def defect(name: str, says: str) -> Callable[[Plant], Plant]:
        def add(plant: Plant) -> Plant:
            found.append(Defect(name, says, plant))
            return plant

        return add

    return found, defect
