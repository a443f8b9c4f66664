"""Real processes, the real exporter, and a collector that returns the spans of a transaction."""

import os
from pathlib import Path

import pytest

from semel_common.telemetry.span_export import open_telemetry
from semel_runtime.testing.collector import collecting
from tracing.checks import check_reading, check_transaction
from tracing.spans import Trace, from_otlp
from tracing.story import APPLICATION, tell

pytestmark = pytest.mark.slow


async def test_one_trace_shows_a_transaction_whatever_became_of_its_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        telemetry = open_telemetry(os.environ, APPLICATION)
        assert telemetry is not None
        story = await tell(tmp_path, telemetry)
        await telemetry.aclose()
    seen = list(from_otlp(collector.requests))
    whole, interrupted, reading = (
        Trace(each, seen) for each in (story.whole, story.interrupted, story.reading)
    )
    assert check_transaction(whole) == [], "\n".join(whole.lines())
    assert check_transaction(interrupted, killed=True) == [], "\n".join(interrupted.lines())
    assert check_reading(reading, whole, interrupted) == [], "\n".join(reading.lines())
