"""Calls to a fake cluster, as `Connection` makes them: messages are copied, as a wire does."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from google.protobuf.message import Message

from aiosemel.errors import RequestTimedOutError
from semel_common.wire.cluster_header import check_cluster
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import Method, Req, Res


class FakeServices(Protocol):
    """The services behind all addresses."""

    def cluster_at(self, address: str) -> str:
        """Return the id of the cluster of the service at an address."""
        ...

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        """Answer a request, or raise a SemelError."""
        ...


@dataclass(frozen=True, slots=True)
class FakeConnection:
    """Calls to one address. Implements ``Connection``."""

    services: FakeServices
    address: str

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        del traceparent
        check_cluster(cluster_id, self.services.cluster_at(self.address))
        copy = method.request.FromString(request.SerializeToString())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await self.services.deliver(self.address, method.name, copy)
        except TimeoutError:
            raise RequestTimedOutError(f"{self.address} did not answer {method.name}") from None
        return method.response.FromString(response.SerializeToString())
