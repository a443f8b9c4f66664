"""A coordinator in this process: what it costs is what this process costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import Method, Req, Res
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_runtime.app import Environment
from semel_runtime.authentication.principal import Origin
from semel_runtime.clock import SystemClock
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.journal.contract import Journal
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.server.calls import Call

_LISTENER = Listener(name="default", host="127.0.0.1", port=1)


async def its_journal(folder: Path) -> Journal:
    """Open the journal of a coordinator in a folder."""
    return await open_journal(folder, service="semel-coordinator-0")


@asynccontextmanager
async def coordinator(
    folder: Path, settings: CoordinatorSettings | None = None
) -> AsyncIterator[CoordinatorApp]:
    """Run a coordinator on the journal in a folder; the body begins as soon as it is loaded."""
    connector = GrpcConnector()
    async with await its_journal(folder) as journal:
        environment = Environment(
            journal=journal,
            connector=connector,
            clock=SystemClock(),
            random=Random(),
            listeners=(_LISTENER,),
        )
        used = settings or CoordinatorSettings(data_dir=folder)
        async with CoordinatorApp(used, environment) as app, asyncio.TaskGroup() as group:
            running = group.create_task(app.run())
            yield app
            running.cancel()
    await connector.close()


async def call(app: CoordinatorApp, method: Method[Req, Res], request: Req) -> Res:
    """Let a coordinator answer a request, without any wire."""
    endpoint = app.handlers.find(method.path)
    assert endpoint is not None
    response = await endpoint.handler(request, Call(origin=Origin(listener=_LISTENER.name)))
    assert isinstance(response, method.response)
    return response
