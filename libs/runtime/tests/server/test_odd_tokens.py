"""Tokens of odd shapes are refused with a reason, and never with an exception of another kind."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from random import Random

import pytest
import structlog
from joserfc.jwk import KeySet
from joserfc.jws import serialize_compact
from security_harness import AUDIENCE, HOUR_S, ISSUER, Issuer, new_key
from server_harness import UNARY, Request, Response, serving

from semel_common.errors import (
    BrokerNotAvailableError,
    SaslAuthenticationError,
    UnknownTopicOrPartitionError,
)
from semel_common.wire.client_security import Security
from semel_common.wire.client_tokens import TOKEN_MAX_BYTES
from semel_runtime.authentication.jwks import KeysAtUrl, KeysInFile
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.server.calls import Call

NOW = int(time.time())
RAW_CLAIMS = f'"iss": "{ISSUER}", "aud": "{AUDIENCE}", "sub": "app"'

NO_TIMES = {
    "huge": "1" + "0" * 400,
    "huger than a float": "1" + "0" * 4_000,
    "longer than Python reads": "1" + "0" * 5_000,
    "infinite by its exponent": "1e400",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "NaN": "NaN",
    "after the year 9999": "253402300800",
    "of 64 bits": str(1 << 63),
    "negative": "-1",
    "negative and huge": "-1" + "0" * 400,
    "a text": f'"{NOW + HOUR_S}"',
    "an empty text": '""',
    "true": "true",
    "null": "null",
    "a list": f"[{NOW + HOUR_S}]",
    "an object": '{"at": 1}',
}


def signed(issuer: Issuer, payload: str, header: dict[str, object] | None = None) -> str:
    """Sign what may be no JSON at all."""
    head = {"alg": "ES256", "kid": "first"} if header is None else header
    return serialize_compact(head, payload, issuer.key)


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("case", NO_TIMES)
async def test_a_time_that_is_none_is_a_clean_refusal(
    claim: str, case: str, issuer: Issuer
) -> None:
    times = {"exp": str(NOW + HOUR_S)} | {claim: NO_TIMES[case]}
    claims = ", ".join(f'"{name}": {value}' for name, value in times.items())
    token = signed(issuer, f"{{{RAW_CLAIMS}, {claims}}}")
    with pytest.raises(SaslAuthenticationError) as refused:
        await issuer.verifier().verify(token)
    assert f"claim {claim} is no time" in refused.value.message or case.startswith("longer")


@pytest.mark.parametrize(
    "exp",
    [str(NOW + HOUR_S), f"{NOW + HOUR_S}.75", f"{NOW + HOUR_S}e0"],
    ids=["none", "quarters", "an exponent"],
)
async def test_a_time_with_a_fraction_is_one(exp: str, issuer: Issuer) -> None:
    token = signed(issuer, f'{{{RAW_CLAIMS}, "exp": {exp}, "nbf": 0.5, "iat": {NOW}.25}}')
    assert (await issuer.verifier().verify(token)).name == "app"


ODD_PAYLOADS = {
    "nested": "[" * 3_000 + "]" * 3_000,
    "nested objects": '{"a":' * 2_000 + "1" + "}" * 2_000,
    "a list": "[]",
    "a number": "7",
    "a text": '"app"',
    "null": "null",
    "nothing": "",
    "no JSON": "{",
    "a lone surrogate": f'{{{RAW_CLAIMS}, "exp": {NOW + HOUR_S}, "sub": "\\ud800"}}',
    "a subject that is a list": f'{{"iss": "{ISSUER}", "aud": "{AUDIENCE}", "sub": ["app"]}}',
    "an issuer that is an object": f'{{"iss": {{}}, "aud": "{AUDIENCE}", "sub": "app"}}',
    "an audience that is a number": f'{{"iss": "{ISSUER}", "aud": 7, "sub": "app"}}',
    "audiences of several kinds": f'{{"iss": "{ISSUER}", "aud": [[], 7], "sub": "app"}}',
}


@pytest.mark.parametrize("case", ODD_PAYLOADS)
async def test_an_odd_payload_is_a_clean_refusal(case: str, issuer: Issuer) -> None:
    with pytest.raises(SaslAuthenticationError):
        await issuer.verifier().verify(signed(issuer, ODD_PAYLOADS[case]))


def _base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


ODD_HEADERS = {
    "nested": "[" * 3_000 + "]" * 3_000,
    "a list": "[]",
    "a number": "1",
    "null": "null",
    "no algorithm": "{}",
    "an algorithm that is a number": '{"alg": 256}',
    "an algorithm that is a list": '{"alg": ["ES256"]}',
    "a key id that is a number": '{"alg": "ES256", "kid": 7}',
    "a key id that is a list": '{"alg": "ES256", "kid": ["first"]}',
    "a key id that is null": '{"alg": "ES256", "kid": null}',
    "critical": '{"alg": "ES256", "kid": "first", "crit": ["exp"], "exp": 1}',
    "critical of another kind": '{"alg": "ES256", "kid": "first", "crit": 7}',
    "payload not encoded": '{"alg": "ES256", "kid": "first", "b64": false, "crit": ["b64"]}',
    "its own key": '{"alg": "ES256", "kid": "first", "jwk": {"kty": "oct", "k": "AA"}}',
    "a compressed one": '{"alg": "ES256", "kid": "first", "zip": "DEF"}',
    "encrypted": '{"alg": "dir", "enc": "A128GCM"}',
}


@pytest.mark.parametrize("case", ODD_HEADERS)
async def test_an_odd_header_is_a_clean_refusal(case: str, issuer: Issuer) -> None:
    _, payload, signature = issuer.token().split(".")
    with pytest.raises(SaslAuthenticationError):
        await issuer.verifier().verify(f"{_base64(ODD_HEADERS[case])}.{payload}.{signature}")


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "...", "a.b.c", "é.é.é", "\ud800", "\0.\0.\0", "=.=.=", "x" * 15_000],
    ids=ascii,
)
async def test_a_malformed_token_is_a_clean_refusal(token: str, issuer: Issuer) -> None:
    with pytest.raises(SaslAuthenticationError):
        await issuer.verifier().verify(token)


async def test_a_long_token_is_not_looked_at(issuer: Issuer) -> None:
    with pytest.raises(SaslAuthenticationError, match=f"at most {TOKEN_MAX_BYTES}"):
        await issuer.verifier().verify("x" * (TOKEN_MAX_BYTES + 1))


async def test_changed_tokens_are_refused_and_nothing_else_happens(issuer: Issuer) -> None:
    verifier, random = issuer.verifier(), Random(7)
    good = issuer.token()
    for _ in range(1_500):
        changed = list(good)
        for _ in range(random.randint(1, 4)):
            place = random.randrange(len(changed))
            changed[place] = random.choice("AZaz09-_.=\0é{")
        token = "".join(changed)
        if token != good:
            with pytest.raises(SaslAuthenticationError):
                await verifier.verify(token)
    assert (await verifier.verify(good)).name == "app"


async def test_an_odd_token_over_the_wire_is_unauthenticated_and_leaves_no_traceback(
    issuer: Issuer,
) -> None:
    async def no_call(_: Request, __: Call) -> Response:
        raise AssertionError

    token = signed(issuer, f'{{{RAW_CLAIMS}, "exp": 1{"0" * 400}}}')
    listener = ListenerSecurity(tokens=issuer.verifier())
    client = Security(tls=False, token=token)
    with structlog.testing.capture_logs() as logs:
        async with serving(no_call, listener=listener, client=client) as served:
            with pytest.raises(SaslAuthenticationError, match="claim exp is no time"):
                await served.connection.call(UNARY, Request(), timeout_ms=5_000)
    assert not [log for log in logs if log["log_level"] in ("error", "critical")]


def long_token(issuer: Issuer, size: int) -> str:
    """Sign a good token of about ``size`` bytes, such as of a user in hundreds of groups."""
    groups = "g" * ((size - 200) * 3 // 4 - 200)
    return signed(issuer, f'{{{RAW_CLAIMS}, "exp": {NOW + HOUR_S}, "groups": "{groups}"}}')


@pytest.mark.parametrize("size", [9_000, 16_000])
async def test_every_call_with_a_long_token_is_answered(size: int, issuer: Issuer) -> None:
    """By default, gRPC rejects a call with more than 8 KiB of metadata at random."""

    async def answered(_: Request, __: Call) -> Response:
        return Response()

    token = long_token(issuer, size)
    assert size * 0.95 < len(token) < TOKEN_MAX_BYTES
    listener = ListenerSecurity(tokens=issuer.verifier())
    client = Security(tls=False, token=token)
    async with serving(answered, listener=listener, client=client) as served:
        for _ in range(100):
            await served.connection.call(UNARY, Request(), timeout_ms=5_000)
        assert len(served.calls) == 100


async def test_a_client_does_not_send_a_token_that_is_too_long() -> None:
    async def no_call(_: Request, __: Call) -> Response:
        raise AssertionError

    client = Security(tls=False, token="x" * (TOKEN_MAX_BYTES + 1))
    async with serving(no_call, client=client) as served:
        with pytest.raises(SaslAuthenticationError, match="has 16,385 bytes: services take at"):
            await served.connection.call(UNARY, Request(), timeout_ms=5_000)


async def test_every_long_answer_of_an_error_arrives() -> None:
    """The text of an error is metadata of the answer; the service cuts it, gRPC escapes it."""
    listed = "é" * 12_000

    async def refused(_: Request, __: Call) -> Response:
        raise UnknownTopicOrPartitionError(listed)

    async with serving(refused) as served:
        for _ in range(100):
            with pytest.raises(UnknownTopicOrPartitionError) as error:
                await served.connection.call(UNARY, Request(), timeout_ms=5_000)
            assert error.value.message.startswith("é" * 500)


# -- keys ------------------------------------------------------------------------------------------


def without_key_id(issuer: Issuer) -> str:
    payload = f'{{{RAW_CLAIMS}, "exp": {NOW + HOUR_S}}}'
    return signed(issuer, payload, {"alg": "ES256"})


async def test_a_token_without_a_key_id_is_for_the_only_key(issuer: Issuer) -> None:
    assert (await issuer.verifier().verify(without_key_id(issuer))).name == "app"


async def test_a_token_without_a_key_id_is_refused_where_there_are_two_keys(
    issuer: Issuer,
) -> None:
    issuer.publish(issuer.key, new_key("second"))
    with pytest.raises(SaslAuthenticationError, match="key that is not known"):
        await issuer.verifier().verify(without_key_id(issuer))


@pytest.mark.parametrize(
    "empty", ['{"keys": []}', '{"keys": [{"kty": "unheard of"}]}'], ids=["empty", "of no use"]
)
async def test_a_set_without_a_key_revokes_all(
    empty: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semel_common.reloaded_files.CHECK_INTERVAL_S", 0.0)
    verifier, token = issuer.verifier(), issuer.token()
    assert (await verifier.verify(token)).name == "app"
    issuer.path.write_text(empty)
    for shown in (token, issuer.token(), without_key_id(issuer)):
        with pytest.raises(SaslAuthenticationError, match="key that is not known"):
            await verifier.verify(shown)
    issuer.publish(issuer.key)
    assert (await verifier.verify(token)).name == "app"


@pytest.mark.parametrize(
    "broken", ["", "[]", "7", "{}", '{"keys": 7}', '{"keys": null}', "[" * 9_999]
)
async def test_a_malformed_key_set_leaves_the_keys(
    broken: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semel_common.reloaded_files.CHECK_INTERVAL_S", 0.0)
    verifier, token = issuer.verifier(), issuer.token()
    assert (await verifier.verify(token)).name == "app"
    issuer.path.write_text(broken)
    assert (await verifier.verify(token)).name == "app"


async def test_a_url_that_serves_an_empty_set_revokes_all_and_one_that_fails_does_not() -> None:
    good = json.dumps(KeySet([new_key("first")]).as_dict(private=False)).encode()
    content = b""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.0 200 OK\r\n" if content else b"HTTP/1.0 500 Broken\r\n"
        writer.write(head + b"\r\n" + content)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        keys = KeysAtUrl(f"http://127.0.0.1:{port}/", refresh_ms=1_000_000)
        with pytest.raises(BrokerNotAvailableError):
            await keys.holding(None)
        content = good
        await keys.refresh()
        assert len(list(await keys.holding("first"))) == 1
        content = b""
        await keys.refresh()
        assert len(list(await keys.holding("first"))) == 1
        content = b'{"keys": []}'
        await keys.refresh()
        assert list(await keys.holding(None)) == []


def test_a_file_without_keys_at_the_start_lets_no_caller_in(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"keys": []}')
    KeysInFile(path)
