"""A token that is renewed while a client shows it: calls go on with the new one, or say what to do.

The server's clock is the test's: a token expires there while the client believes that it is good,
and the client has looked at the file less than a second ago.
"""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from security_harness import HOUR_S, OPTIONS, Issuer
from server_harness import TRANSPORTS, UNARY, Request, Response, echo, serving

from semel_common.errors import NetworkExceptionError, SaslAuthenticationError
from semel_common.wire import stream_tokens
from semel_common.wire.client_security import Security
from semel_common.wire.client_tokens import ClientToken
from semel_common.wire.methods import TXN_OFFSET_COMMIT, Method
from semel_runtime.authentication.jwks import KeysInFile
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.authentication.token_check import TokenVerifier
from semel_runtime.server.calls import Call


@dataclass
class Clock:
    """The clock of the server."""

    ahead_s: float = 0

    def now(self) -> float:
        return time.time() + self.ahead_s


@dataclass
class Renewal:
    """A file with a token, and a server whose clock can be put forward."""

    issuer: Issuer
    path: Path
    clock: Clock = field(default_factory=Clock)

    def write(self, subject: str, lives_s: float) -> None:
        self.path.write_text(self.issuer.token(subject=subject, lives_s=lives_s))
        self.path.chmod(0o600)

    @property
    def listener(self) -> ListenerSecurity:
        keys = KeysInFile(self.issuer.path)
        return ListenerSecurity(tokens=TokenVerifier(keys, OPTIONS, self.clock.now))


@pytest.fixture
def renewal(tmp_path: Path) -> Renewal:
    renewal = Renewal(Issuer(tmp_path / "keys.json"), tmp_path / "token")
    renewal.write("before", HOUR_S)
    return renewal


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let what looks for newer tokens believe that so much time has passed."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(stream_tokens, "_now", lambda: loop.time() + seconds)


@TRANSPORTS
async def test_a_call_that_is_refused_is_made_again_with_the_new_token_of_the_file(
    method: Method[Request, Response], sockets: bool, renewal: Renewal
) -> None:
    client = Security(tls=False, token=renewal.path)
    async with serving(echo, sockets=sockets, listener=renewal.listener, client=client) as served:
        await served.connection.call(UNARY, Request(), timeout_ms=5_000)
        renewal.clock.ahead_s = 2 * HOUR_S
        renewal.write("after", 4 * HOUR_S)
        await served.connection.call(method, Request(), timeout_ms=5_000)
        assert served.calls[-1].origin.principal.name == "after"


@TRANSPORTS
async def test_a_refusal_says_that_the_file_holds_no_newer_token(
    method: Method[Request, Response], sockets: bool, renewal: Renewal
) -> None:
    """Neither the token that was shown first is good, nor the one that has replaced it."""
    client = Security(tls=False, token=renewal.path)
    async with serving(echo, sockets=sockets, listener=renewal.listener, client=client) as served:
        renewal.clock.ahead_s = 2 * HOUR_S
        renewal.write("before", -HOUR_S)
        with pytest.raises(SaslAuthenticationError) as refused:
            await served.connection.call(method, Request(), timeout_ms=5_000)
        message = refused.value.message
        assert "the token has expired: the token in " in message
        assert str(renewal.path) in message
        assert " UTC, and there is no newer one; write a new token to this file" in message
        renewal.write("after", 4 * HOUR_S)
        await served.connection.call(method, Request(), timeout_ms=5_000)
        assert served.calls[-1].origin.principal.name == "after"


@pytest.mark.parametrize("sockets", [True, False])
@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_stream_is_left_before_its_token_expires(
    sockets: bool, is_replaced: bool, renewal: Renewal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of its life is over; a call that is under way ends on the stream before."""
    ended = asyncio.Event()

    async def wait_or_echo(request: Request, call: Call) -> Response:
        if request.base_sequence:
            await ended.wait()
        return await echo(request, call)

    renewal.write("before", 2)
    client = Security(tls=False, token=renewal.path)
    async with (
        serving(wait_or_echo, sockets=sockets, listener=renewal.listener, client=client) as served,
        asyncio.TaskGroup() as calls,
    ):
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        waiting = Request(base_sequence=1)
        calls.create_task(served.connection.call(TXN_OFFSET_COMMIT, waiting, timeout_ms=5_000))
        pass_time(monkeypatch, 1.1)
        if is_replaced:
            renewal.write("after", HOUR_S)
        for _ in range(2):
            await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
            name = served.calls[-1].origin.principal.name
            assert name == ("after" if is_replaced else "before")
        ended.set()


async def test_a_source_that_fails_meanwhile_leaves_a_stream_as_it_is(
    renewal: Renewal, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [renewal.issuer.token(subject="before", lives_s=1)]

    def source() -> str:
        return tokens[0]

    client = Security(tls=False, token=source)
    async with serving(echo, listener=renewal.listener, client=client) as served:
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        pass_time(monkeypatch, 0.6)
        shown = tokens.pop()
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        tokens.append(renewal.issuer.token(subject="after"))
        pass_time(monkeypatch, 0.7)
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        assert served.calls[-1].origin.principal.name == "after"
        assert tokens != [shown]


async def test_a_token_source_is_asked_again_after_a_refusal(renewal: Renewal) -> None:
    tokens = [renewal.issuer.token(subject="after"), renewal.issuer.token(lives_s=-HOUR_S)]

    async def source() -> str:
        return tokens.pop() if len(tokens) > 1 else tokens[0]

    client = Security(tls=False, token=source)
    async with serving(echo, listener=renewal.listener, client=client) as served:
        await served.connection.call(UNARY, Request(), timeout_ms=5_000)
        assert served.calls[-1].origin.principal.name == "after"


async def test_the_error_of_a_fixed_token_says_how_to_renew_it(renewal: Renewal) -> None:
    client = Security(tls=False, token=renewal.issuer.token(lives_s=-HOUR_S))
    async with serving(echo, listener=renewal.listener, client=client) as served:
        with pytest.raises(SaslAuthenticationError, match="give clients a file or a function"):
            await served.connection.call(UNARY, Request(), timeout_ms=5_000)


async def test_a_refusal_for_another_reason_names_the_file(renewal: Renewal) -> None:
    renewal.path.write_text(renewal.issuer.token(audience="others"))
    client = Security(tls=False, token=renewal.path)
    async with serving(echo, listener=renewal.listener, client=client) as served:
        with pytest.raises(SaslAuthenticationError, match=r"claim aud .*\(the token in .*token\)"):
            await served.connection.call(UNARY, Request(), timeout_ms=5_000)


async def test_a_file_is_looked_at_for_every_call_shortly_before_its_token_expires(
    renewal: Renewal,
) -> None:
    for lives_s, is_seen in ((HOUR_S, False), (20, True), (-20, True)):
        renewal.write("before", lives_s)
        token = ClientToken(renewal.path)
        before = await token.current()
        renewal.write("after", 2 * HOUR_S)
        assert (await token.current() != before) == is_seen
        assert await token.current(at_once=True) == renewal.path.read_text()


@pytest.mark.parametrize(
    "odd", ["opaque", "a.b.c", "a.e30.c", "a.bnVsbA.c", "..", "a.eyJleHAiOiAxZTk5OX0.c"]
)
async def test_a_token_that_does_not_say_when_it_expires_is_shown(odd: str) -> None:
    token = ClientToken(odd)
    assert await token.current() == odd
    assert "was given" in token.refused(SaslAuthenticationError("no"), odd).message


async def test_a_source_that_fails_is_named_without_what_it_raised() -> None:
    def source() -> str:
        raise ValueError("the secret")

    with pytest.raises(NetworkExceptionError, match="failed with ValueError"):
        await ClientToken(source).current()
