"""A service of the workload `quotas`: its callers are who their listener says.

Identities without certificates and tokens: what they cost is no matter of quotas. Run as
``python -m bench.quotas_service coordinator|broker --data_dir …``.
"""

import sys

from google.protobuf.message import Message
from msgspec.structs import replace

from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_runtime.app import App, Environment, main
from semel_runtime.server.calls import Call, Endpoint, Guards
from semel_runtime.server.principal import Origin, Principal

SERVICES = "default"
"""The listener on which services reach one another."""


class ByListener:
    """Takes callers for who their listener says. Implements ``Guards``."""

    def __init__(self, guard: Guards) -> None:
        """Let this guard see them so."""
        self._guard = guard

    async def answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Message:
        """Answer as the guard does."""
        listener = call.origin.listener
        principal = Principal(name=listener, is_cluster=listener == SERVICES)
        known = replace(call, origin=Origin(listener=listener, principal=principal))
        return await self._guard.answer(endpoint, request, known)


def _known(app: App) -> App:
    guard = app.handlers._guard  # noqa: SLF001 - before any handler is added
    assert guard is not None
    app.handlers._guard = ByListener(guard)  # noqa: SLF001 - the same
    return app


def _coordinator(settings: CoordinatorSettings, environment: Environment) -> App:
    return _known(CoordinatorApp(settings, environment))


def _broker(settings: BrokerSettings, environment: Environment) -> App:
    return _known(BrokerApp(settings, environment))


if __name__ == "__main__":
    role = sys.argv.pop(1)
    if role == "coordinator":
        main(role, CoordinatorSettings, _coordinator)
    else:
        main(role, BrokerSettings, _broker)
