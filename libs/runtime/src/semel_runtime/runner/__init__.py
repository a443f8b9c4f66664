"""The runner: takes a pure state machine and a journal, and makes a durable service of them."""

from semel_runtime.machine import Machine, Result, Serde
from semel_runtime.runner.observers import harmless
from semel_runtime.runner.runner import Runner
from semel_runtime.runner.runner_options import CommitFigures, RunnerOptions, RunnerStats

__all__ = [
    "CommitFigures",
    "Machine",
    "Result",
    "Runner",
    "RunnerOptions",
    "RunnerStats",
    "Serde",
    "harmless",
]
