"""The scenarios: ghz's configurations, and which runs of them are wanted with which thresholds."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "loadtest" / "scenarios"
THRESHOLDS = ROOT / "loadtest" / "thresholds.toml"
DATA = ROOT / "build" / "loadtest" / "data"
REPORTS = ROOT / "build" / "loadtest" / "reports"

FRAMES_PER_STREAM = 200
"""How many requests each call of a stream scenario carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of ghz, and what must come out of it."""

    scenario: str
    concurrency: int
    calls: int
    """How many calls; of a stream scenario: how many streams."""
    p50_ms: float
    """Half of all calls must be faster, in milliseconds."""
    p99_ms: float
    """99 of 100 calls must be faster, in milliseconds."""
    rate_min: float
    """Operations a second: calls, or frames of streams."""

    @property
    def name(self) -> str:
        """What it is called in tables and files."""
        return f"{self.scenario}-c{self.concurrency}"

    @property
    def streams(self) -> bool:
        """Whether its calls are streams of frames."""
        return self.scenario.startswith("stream-")

    @property
    def operations(self) -> int:
        """How many requests it makes in all."""
        return self.calls * (FRAMES_PER_STREAM if self.streams else 1)


def read_runs(path: Path = THRESHOLDS) -> list[Run]:
    """Return the runs in their order."""
    return [Run(**load) for load in tomllib.loads(path.read_text("utf-8"))["run"]]


def read_config(scenario: str) -> dict[str, object]:
    """Return ghz's configuration of a scenario."""
    config: dict[str, object] = json.loads((SCENARIOS / f"{scenario}.json").read_text("utf-8"))
    return config
