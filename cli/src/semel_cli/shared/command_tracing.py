"""Where the spans of commands, and of `semel up`'s services, go."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from semel_cli.shared.command_errors import CommandError, UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from semel_local.jaeger import Jaeger

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
UI_PORT = 16_686
"""Where people expect Jaeger; any other if it is taken."""


@asynccontextmanager
async def tracer_provider() -> "AsyncIterator[TracerProvider | None]":
    """Yield what takes the spans of a command, if the environment asks for them."""
    if not any(name.startswith("OTEL_") for name in os.environ):
        yield None
        return
    from aiosemel.tracing import open_telemetry

    try:
        telemetry = open_telemetry(os.environ, "semel")
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        yield None if telemetry is None else telemetry.provider
    finally:
        if telemetry is not None:
            await telemetry.aclose()


def checked_endpoint(url: str) -> str:
    """Return where spans are to go. Raises UsageError."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"--otlp is {url!r}, not a URL like http://127.0.0.1:4317")
    return url


def new_jaeger(folder: Path) -> "Jaeger":
    """Return a Jaeger that is not started yet, for the cluster of a folder.

    Raises CommandError if there is none, FolderError for a folder that is none of a cluster: Jaeger
    starts before the cluster, and writes its log there.
    """
    from semel_local.jaeger import LOG_FILE, PROGRAMS, Jaeger, find_jaeger
    from semel_local.layout import read_layout
    from semel_local.ports import is_free

    program = find_jaeger()
    if program is None:
        raise CommandError(
            f"Jaeger is not on the PATH ({' or '.join(PROGRAMS)}): `make jaeger` builds it, or"
            " start one elsewhere and name it with --otlp URL"
        )
    read_layout(folder)
    ui_port = UI_PORT if is_free(UI_PORT) else 0
    return Jaeger(program, folder / LOG_FILE, ui_port=ui_port)
