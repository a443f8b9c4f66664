"""Where spans go: an exporter by OTLP, set up from OpenTelemetry's own environment variables.

Off unless an endpoint is set. Needs the extra ``otlp`` (the SDK, and its exporter over gRPC), which
is imported only when it is on. A collector that is away costs spans, and nothing else: they wait in
a bounded queue, in a thread of their own, and are dropped past it.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from opentelemetry.trace import Tracer, TracerProvider

from semel_common.addresses import is_loopback

FLUSH_TIMEOUT_S = 2.0
"""How long the end of a process waits for the last spans to be sent."""
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Tracing that is on. Close it at the end of the process."""

    provider: TracerProvider
    shutdown: Callable[[], object]
    """Sends what waits, and ends: may take long."""
    force_flush: Callable[[], object]
    """Sends what waits: may take long."""

    def tracer(self, name: str) -> Tracer:
        """Return what makes spans, under the name of their process."""
        return self.provider.get_tracer(name)

    def close(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Send the spans that wait; drop the spans that are not sent in time."""
        _run(self.shutdown, timeout_s)

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Send what there is by now; wait no longer than this."""
        _run(self.force_flush, timeout_s)

    async def aclose(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Do as ``close`` does, without holding up the event loop."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def run() -> None:
            self.close(timeout_s)
            with suppress(RuntimeError):  # The loop may have been closed meanwhile.
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=run, name="end of tracing", daemon=True).start()
        await done.wait()


def open_telemetry(
    environment: Mapping[str, str], service_name: str, **resource: str
) -> Telemetry | None:
    """Set up the export of spans as the environment says; None: it is off.

    ``service_name`` and ``resource`` (``service.instance.id`` as ``service_instance_id``) are what
    the process is called where the environment does not say. Raises ValueError for an environment
    that asks for what cannot be done.
    """
    if not any(environment.get(name) for name in _ENDPOINTS):
        return None
    if (
        environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        or environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
        or environment.get("OTEL_TRACES_SAMPLER", "").strip().lower() == "always_off"
    ):
        return None
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), "grpc")
    if protocol != "grpc":
        raise ValueError(f"OTLP over {protocol} is not supported: set {_PROTOCOLS[1]} to grpc")
    return _open(environment, service_name, resource)


def _open(
    environment: Mapping[str, str], service_name: str, attributes: Mapping[str, str]
) -> Telemetry:
    try:
        from semel_common.telemetry.otlp import exporting_provider  # noqa: PLC0415 - see the module
    except ImportError as error:
        raise ValueError(f"traces need the extra otlp, such as aiosemel[otlp] ({error})") from error
    named = {name.replace("_", "."): value for name, value in attributes.items()}
    if not _names_service(environment):
        named["service.name"] = service_name
    provider = exporting_provider(named, direct=_stays_here(environment))
    return Telemetry(provider, provider.shutdown, provider.force_flush)


def _stays_here(environment: Mapping[str, str]) -> bool:
    """Whether the collector is on this machine: then no proxy leads to it."""
    endpoint = next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
    return is_loopback(urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").hostname or "")


def _run(action: Callable[[], object], timeout_s: float) -> None:
    thread = threading.Thread(target=action, name="last spans", daemon=True)
    thread.start()
    thread.join(timeout_s)


def _names_service(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("OTEL_SERVICE_NAME")) or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
