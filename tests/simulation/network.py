"""The network between processes: every message takes its time, and may be lost, repeated or held.

Requests and answers travel as bytes. The weather on a link, from one name to another, decides the
fate of each message, one direction at a time. If a request or an answer is lost, its caller learns
it some time later, or not before its time-out; the handler is then told to stop, as a frame stream
tells it. A repeated request arrives again later, when the caller may have gone on long ago, but
before the caller's sequences have begun again (`sequences_sent`).
"""

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from google.protobuf.message import Message

from semel.common.v1.errors_pb2 import Error
from semel_common.errors import NetworkExceptionError, RequestTimedOutError, SemelError
from semel_common.wire import status
from semel_common.wire.messages.message_pieces import Outgoing, message_of
from semel_common.wire.methods import Method, Req, Res
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call, Endpoint, Handlers
from semel_runtime.server.handler_call import answer
from simulation.dialect import Dialect
from simulation.sequences_sent import Mark, SequencesSent
from simulation.world import WORLD, Life, SimulatedLoop

Trace = Callable[..., None]
"""Notes an event: its name, then its facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """The delays and losses of the messages of a link."""

    delay_ms: tuple[float, float] = (0.1, 0.9)
    slow: float = 0.01
    """How many of a thousand... as a share: messages that take ``slow_ms``."""
    slow_ms: tuple[float, float] = (2.0, 40.0)
    lost: float = 0.0
    """The share of messages that never arrive."""
    repeated: float = 0.0
    """The share of requests that arrive twice."""
    repeated_ms: tuple[float, float] = (0.0, 4_000.0)
    """How much later they do."""


FAIR = Weather()
CUT = Weather(lost=1.0)


class Observer(Protocol):
    """Sees the requests to services, and their answers."""

    def arrived(self, service: str, life: Life, request: Message) -> object:
        """See a request. `answered` gets the result, with the answer."""
        ...

    def answered(self, service: str, request: Message, response: Message, seen: object) -> None:
        """See an answer that is no error."""
        ...


class _Nobody:
    def arrived(self, service: str, life: Life, request: Message) -> object:
        """See `Observer`."""

    def answered(self, service: str, request: Message, response: Message, seen: object) -> None:
        """See `Observer`."""


@dataclass(slots=True)
class Server:
    """The process that answers at an address."""

    name: str
    life: Life
    handlers: Handlers
    exchanges: "dict[Exchange, None]" = field(default_factory=dict)
    """The calls that it has not answered yet."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One call on its way, for its caller."""

    source: str
    server_name: str
    address: str
    method: Method[Message, Message]
    request: bytes
    timeout_ms: int
    answer: "asyncio.Future[bytes]"
    number: int
    cluster_id: str
    """That the call is for; empty: it names none."""
    sequences: Mark
    """Where its sequences begin."""
    task: "asyncio.Task[None] | None" = None
    cancelled: bool = False


class Network:
    """All addresses of a simulation."""

    def __init__(self, loop: SimulatedLoop, random: Random, trace: Trace) -> None:
        self._loop = loop
        self._random = random
        self._trace = trace
        self._servers: dict[str, Server] = {}
        self._names: dict[str, str] = {}
        self._calls = 0
        self._sequences_sent = SequencesSent()
        self.weather: dict[tuple[str, str], Weather] = {}
        """By link, (from, to); of all others it is fair."""
        self.general = FAIR
        """The weather of links that have none of their own."""
        self.failures: list[str] = []
        """Errors that no handler should ever raise."""
        self.observer: Observer = _Nobody()
        self.dialect: Dialect | None = None
        """Of those processes that are of an older release."""

    # -- addresses -------------------------------------------------------------------------------

    def serve(self, address: str, name: str, life: Life, handlers: Handlers) -> None:
        """Let a process answer at an address."""
        self._servers[address] = Server(name, life, handlers)
        self._names[address] = name

    def leave(self, address: str, life: Life) -> None:
        """Take a process off its address; its callers get an error, or wait for their time-out."""
        server = self._servers.get(address)
        if server is None or server.life is not life:
            return
        del self._servers[address]
        for exchange in server.exchanges:
            if self._random.random() < 0.8:
                self._fail(exchange, f"{address} went away")

    def clear(self) -> None:
        """Forget all processes."""
        self._servers.clear()

    def connector(self, name: str) -> "Connector":
        """Return the connector of a process."""
        return Connector(self, name)

    # -- a call ----------------------------------------------------------------------------------

    async def call(
        self,
        source: str,
        address: str,
        method: Method[Req, Res],
        request: Req,
        timeout_ms: int,
        cluster_id: str = "",
    ) -> Res:
        """Make one call; see ``Connection.call``."""
        loop = self._loop
        self._calls += 1
        server_name = self._names.get(address, address)
        exchange = Exchange(
            source=source,
            server_name=server_name,
            address=address,
            method=method,
            request=self._written(request, source, server_name, method),
            timeout_ms=timeout_ms,
            answer=loop.create_future(),
            number=self._calls,
            cluster_id=cluster_id,
            sequences=self._sequences_sent.note(request),
        )
        self._send(exchange)
        timer = loop.call_later(timeout_ms / 1000, _time_out, exchange)
        try:
            return method.response.FromString(await exchange.answer)
        finally:
            timer.cancel()
            if not exchange.answer.done() or exchange.answer.cancelled() or exchange.cancelled:
                loop.call_later(self._delay_s(FAIR), self._cancel, exchange, context=WORLD)

    def _send(self, exchange: Exchange) -> None:
        weather = self._weather(exchange.source, exchange.server_name)
        random = self._random
        if weather.lost and random.random() < weather.lost:
            self._trace("lost", exchange.number, exchange.source, exchange.server_name)
            self._lose(exchange)
            return
        if weather.repeated and random.random() < weather.repeated:
            later_s = random.uniform(*weather.repeated_ms) / 1000
            nobody = self._loop.create_future()
            again = Exchange(
                exchange.source,
                exchange.server_name,
                exchange.address,
                exchange.method,
                exchange.request,
                exchange.timeout_ms,
                nobody,
                exchange.number,
                exchange.cluster_id,
                exchange.sequences,
            )
            self._loop.call_later(later_s, self._arrive_again, again, context=WORLD)
        self._loop.call_later(self._delay_s(weather), self._arrive, exchange, context=WORLD)

    def _arrive_again(self, exchange: Exchange) -> None:
        if not self._sequences_sent.is_outlived(exchange.sequences):
            self._arrive(exchange)

    def _arrive(self, exchange: Exchange) -> None:
        server = self._servers.get(exchange.address)
        self._trace(
            "request",
            exchange.number,
            exchange.source,
            exchange.address,
            exchange.method.name,
            len(exchange.request),
        )
        if server is None or not server.life.alive:
            self._fail(exchange, f"no service answers at {exchange.address}")
            return
        endpoint = server.handlers.find(exchange.method.path)
        if endpoint is None or not self._is_known(exchange.method, server.name):
            self._fail(exchange, f"{exchange.method.path} is not served at {exchange.address}")
            return
        server.exchanges[exchange] = None
        context = server.life.context.copy()
        exchange.task = self._loop.create_task(
            self._serve(exchange, server, endpoint), context=context
        )

    async def _serve(
        self, exchange: Exchange, server: Server, endpoint: Endpoint[Message, Message]
    ) -> None:
        request = exchange.method.request.FromString(exchange.request)
        expected = self.observer.arrived(server.name, server.life, request)
        deadline = self._loop.time() + exchange.timeout_ms / 1000
        try:
            server.handlers.check_cluster(exchange.cluster_id)
            response = await answer(
                endpoint, request, Call(origin=Origin(listener="default"), deadline=deadline)
            )
        except SemelError as error:
            if error.code == -1:
                cause = "".join(traceback.format_exception(error.__cause__ or error))
                self.failures.append(f"{exchange.method.name} at {server.name} failed: {cause}")
            self._reply(exchange, server.name, status.to_value(error))
        else:
            self.observer.answered(server.name, request, response, expected)
            self._reply(exchange, server.name, response)
        finally:
            server.exchanges.pop(exchange, None)

    def _reply(self, exchange: Exchange, server_name: str, message: Message) -> None:
        weather = self._weather(server_name, exchange.source)
        if weather.lost and self._random.random() < weather.lost:
            self._trace("reply lost", exchange.number, server_name, exchange.source)
            self._lose(exchange)
            return
        data = self._written(message, server_name, exchange.source, exchange.method)
        error = isinstance(message, Error)
        delay_s = self._delay_s(weather)
        self._loop.call_later(delay_s, self._answered, exchange, data, error, context=WORLD)

    def _answered(self, exchange: Exchange, data: bytes, error: bool) -> None:
        if exchange.answer.done():
            return
        if error:
            refusal = status.from_value(Error.FromString(data))
            self._trace("refused", exchange.number, refusal.code.name)
            exchange.answer.set_exception(refusal)
        else:
            self._trace("answer", exchange.number, len(data))
            exchange.answer.set_result(data)

    # -- releases --------------------------------------------------------------------------------

    def _is_known(self, method: Method[Req, Res], server_name: str) -> bool:
        older = self.dialect
        return older is None or not older.spoken_at(server_name) or older.knows(method.path)

    def _written(
        self, message: Message, sender: str, receiver: str, method: Method[Req, Res]
    ) -> bytes:
        """Return a message as it arrives: with the fields that both its ends know."""
        older = self.dialect
        if older is None or not older.spoken_at(sender, receiver) or not older.knows(method.path):
            return message.SerializeToString()
        return older.through(message)

    # -- failures --------------------------------------------------------------------------------

    def _lose(self, exchange: Exchange) -> None:
        """Let the caller find out, one day, that its connection is broken, or not even that."""
        if self._random.random() < 0.5:
            self._fail(exchange, f"connection to {exchange.address} broke", within_ms=500)

    def _fail(self, exchange: Exchange, why: str, within_ms: float = 2) -> None:
        delay_s = self._random.uniform(0, within_ms) / 1000
        self._loop.call_later(delay_s, _break, exchange, why, context=WORLD)

    def _cancel(self, exchange: Exchange) -> None:
        if exchange.task is not None:
            exchange.task.cancel()

    # -- weather ---------------------------------------------------------------------------------

    def _weather(self, source: str, destination: str) -> Weather:
        if not self.weather:
            return self.general
        return self.weather.get((source, destination), self.general)

    def _delay_s(self, weather: Weather) -> float:
        random = self._random
        if random.random() < weather.slow:
            return random.uniform(*weather.slow_ms) / 1000
        return random.uniform(*weather.delay_ms) / 1000


def _break(exchange: Exchange, why: str) -> None:
    if not exchange.answer.done():
        exchange.answer.set_exception(NetworkExceptionError(why))


def _time_out(exchange: Exchange) -> None:
    if not exchange.answer.done():
        exchange.cancelled = True
        text = f"{exchange.address} did not answer {exchange.method.name}"
        exchange.answer.set_exception(RequestTimedOutError(f"{text} in {exchange.timeout_ms} ms"))


@dataclass(frozen=True, slots=True)
class Connection:
    """Calls of one process to one address. Implements ``Connection``."""

    network: Network
    source: str
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
        """Make one call; see ``Connection.call``."""
        del traceparent
        message = message_of(method, request)
        return await self.network.call(
            self.source, self.address, method, message, timeout_ms, cluster_id
        )


@dataclass(frozen=True, slots=True)
class Connector:
    """Connections of one process. Implements ``Connector``."""

    network: Network
    source: str

    def connect(self, address: str) -> Connection:
        """Return the connection to an address."""
        return Connection(self.network, self.source, address)

    async def close(self) -> None:
        """Nothing is held."""
