"""The export of spans never disturbs or delays a service, even if the collector is away."""

import os
import time
from pathlib import Path

import pytest

from aiosemel import SemelClient
from semel_common.telemetry.span_export import FLUSH_TIMEOUT_S, open_telemetry
from semel_local import ProcessCluster

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9"
"""No process listens at the port of the discard protocol."""


async def test_a_collector_that_is_away_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOBODY)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    telemetry = open_telemetry(os.environ, "test")
    assert telemetry is not None
    async with ProcessCluster(tmp_path) as cluster:
        async with SemelClient(cluster.bootstrap, tracer_provider=telemetry.provider) as client:
            await client.admin().create_topic("orders", partitions=1)
            producer = client.transactional_producer("payer")
            await producer.init_transactions()
            group = client.consumer("payers").group_metadata()
            for number in range(50):
                async with producer.transaction() as transaction:
                    await transaction.send("orders", b"pizza")
                    await transaction.send_offsets({("orders", 0): number}, group)
        stopped = await cluster.stop()
        logs = [cluster.log_path(name).read_text() for name in stopped]
    assert set(stopped.values()) == {0}, "every service ends in order, within its grace"
    assert all("spans are not exported" in log for log in logs)
    assert all("Traceback" not in log for log in logs)
    began = time.monotonic()
    await telemetry.aclose()
    assert time.monotonic() - began < 2 * FLUSH_TIMEOUT_S


@pytest.mark.parametrize(
    "off",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": NOBODY, "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": NOBODY, "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": NOBODY, "OTEL_TRACES_SAMPLER": "always_off"},
    ],
)
def test_tracing_is_off_unless_the_environment_asks_for_it(off: dict[str, str]) -> None:
    assert open_telemetry(off, "test") is None


def test_a_protocol_that_is_not_spoken_is_refused_by_name() -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": NOBODY,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }
    with pytest.raises(ValueError, match="http/protobuf"):
        open_telemetry(environment, "test")
