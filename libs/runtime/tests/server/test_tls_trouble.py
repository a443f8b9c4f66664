"""What is wrong with TLS is said: the name, the CA, the time, or that one side speaks none."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from security_harness import Authority, server_tls
from server_harness import Served, echo, serving

from semel.group.v1.group_pb2 import ListGroupsRequest
from semel_common.client_errors import SslAuthenticationError
from semel_common.errors import (
    NetworkExceptionError,
)
from semel_common.wire.client_security import ClientCredentials, Security
from semel_common.wire.diagnosis.peer_probe import PeerProbe
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import LIST_GROUPS
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.authentication.listener_tls import TlsFiles
from semel_runtime.testing.stop_listening import stop_listening


@asynccontextmanager
async def behind(files: TlsFiles | None) -> AsyncIterator[Served]:
    """Serve with a certificate, or without TLS."""
    listener = (
        None if files is None else ListenerSecurity(tls=server_tls(files, asks_clients=False))
    )
    async with serving(echo, listener=listener) as served:
        yield served


async def asked(served: Served, security: Security) -> SslAuthenticationError:
    """Return the error of a call."""
    connector = GrpcConnector(security=security)
    try:
        with pytest.raises(SslAuthenticationError) as caught:
            await connector.connect(served.address).call(
                LIST_GROUPS, ListGroupsRequest(), timeout_ms=5_000
            )
    finally:
        await connector.close()
    return caught.value


def certificate(folder: Path, issue: Callable[[trustme.CA], trustme.LeafCert]) -> TlsFiles:
    """Make a certificate by a CA whose own is in the folder."""
    ca = trustme.CA()
    leaf = issue(ca)
    files = TlsFiles(
        certificate=folder / "c.pem", key=folder / "c.key", client_ca=folder / "ca.pem"
    )
    ca.cert_pem.write_to_path(folder / "ca.pem")
    files.certificate.write_bytes(
        b"".join(cert_chain_pem.bytes() for cert_chain_pem in leaf.cert_chain_pems)
    )
    leaf.private_key_pem.write_to_path(files.key)
    files.key.chmod(0o600)
    return files


async def test_wrong_name_is_said_with_the_names_of_the_certificate(tmp_path: Path) -> None:
    files = certificate(tmp_path, lambda ca: ca.issue_cert("broker.example", "10.1.2.3"))
    security = Security(ssl_ca_location=files.client_ca)
    async with behind(files) as served:
        text = (await asked(served, security)).message
        named = replace(security, ssl_server_name="other.example")
        named_text = (await asked(served, named)).message
    assert text.startswith(
        f"{served.address} shows a certificate for broker.example, 10.1.2.3, and not for"
        " '127.0.0.1': set ssl_server_name"
    )
    assert "and not for 'other.example'" in named_text


async def test_certificate_of_an_unknown_ca_is_said_to_be_that(tmp_path: Path) -> None:
    files = certificate(tmp_path, lambda ca: ca.issue_cert("127.0.0.1"))
    security = Security(ssl_ca_location=Authority(tmp_path / "ours").ca)
    async with behind(files) as served:
        text = (await asked(served, security)).message
    assert "no trusted CA has signed" in text
    assert "set ssl_ca_location" in text


async def test_expired_certificate_is_said_to_be_that(tmp_path: Path) -> None:
    ended = datetime.now(UTC) - timedelta(hours=1)
    files = certificate(
        tmp_path,
        lambda ca: ca.issue_cert(
            "127.0.0.1", not_before=ended - timedelta(hours=1), not_after=ended
        ),
    )
    async with behind(files) as served:
        text = (await asked(served, Security(ssl_ca_location=files.client_ca))).message
    assert text == (
        f"{served.address} shows a certificate that has expired: renew the certificate of the"
        " service"
    )


async def test_server_without_tls_is_said_to_be_that(tmp_path: Path) -> None:
    async with behind(None) as served:
        text = (await asked(served, Security(ssl_ca_location=Authority(tmp_path).ca))).message
    assert f"{served.address} does not speak TLS" in text


async def test_client_without_tls_is_said_to_be_that(tmp_path: Path) -> None:
    async with behind(Authority(tmp_path).server()) as served:
        text = (await asked(served, Security(tls=False))).message
    assert text == f"{served.address} speaks TLS, and this client does not: connect with TLS"


async def test_address_where_nothing_listens_is_no_trouble_of_tls(tmp_path: Path) -> None:
    async with behind(None) as served:
        pass
    for security in (Security(tls=False), Security(ssl_ca_location=Authority(tmp_path).ca)):
        connector = GrpcConnector(security=security)
        with pytest.raises(NetworkExceptionError) as caught:
            await connector.connect(served.address).call(
                LIST_GROUPS, ListGroupsRequest(), timeout_ms=5_000
            )
        assert not isinstance(caught.value, SslAuthenticationError)
        await connector.close()


async def test_server_that_says_nothing_is_probed_no_longer_than_the_call_may_take(
    tmp_path: Path,
) -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(-1)
        writer.transport.abort()
        left.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    contexts = ClientCredentials(Security(ssl_ca_location=Authority(tmp_path).ca)).certificates()
    assert contexts is not None
    probe = PeerProbe(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert await probe.trouble(contexts.probing, "127.0.0.1", timeout_ms=50) is None
    await probe.close()
    await left.wait()
    await stop_listening(server)
