"""What is at an address that is no service: said in a sentence, at once, with the address."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest
from peers import Peer, closing, listening, silent, speaking_http, speaking_otherwise
from security_harness import Authority, server_tls
from server_harness import Request, echo, serving

from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel_common.client_errors import InvalidResponseError, SslAuthenticationError
from semel_common.errors import NetworkExceptionError, RequestTimedOutError, SemelError
from semel_common.wire.client_security import Security
from semel_common.wire.diagnosis.peer_probe import CAUSE, REFUSED
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import METADATA, TXN_OFFSET_COMMIT
from semel_runtime.authentication.listener_gate import ListenerSecurity


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def refused(
    address: str, security: Security | None = None, timeout_ms: int = 5_000
) -> SemelError:
    """Return the error of a call."""
    connector = GrpcConnector(security=security)
    try:
        with pytest.raises(SemelError) as caught:
            await connector.connect(address).call(
                METADATA, MetadataRequest(), timeout_ms=timeout_ms
            )
    finally:
        await connector.close()
    return caught.value


async def test_port_at_which_nothing_listens_is_named() -> None:
    async with listening(silent) as address:
        pass
    error = await refused(address)
    assert type(error) is NetworkExceptionError
    assert (error.message, error.details[CAUSE]) == (f"nothing listens at {address}", REFUSED)


async def test_name_that_does_not_resolve_is_named() -> None:
    error = await refused("nosuch.invalid:9092")
    assert error.message.startswith("the host name of nosuch.invalid:9092 cannot be resolved (")


@pytest.mark.parametrize(
    ("peer", "error_class", "text"),
    [
        (speaking_http, InvalidResponseError, "speaks HTTP/1, and not gRPC"),
        (speaking_otherwise, InvalidResponseError, "answers with bytes of another protocol"),
        (closing, NetworkExceptionError, "accepts connections and closes them without an answer"),
    ],
)
async def test_peer_of_another_kind_is_named(
    peer: Peer, error_class: type[SemelError], text: str
) -> None:
    async with listening(peer) as address:
        error = await refused(address)
    assert type(error) is error_class
    assert error.message.startswith(f"{address} {text}")


async def test_silent_peer_is_warned_of_long_before_the_call_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    warned = asyncio.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            del record
            warned.set()

    watch = Watch()
    logging.getLogger("semel_common").addHandler(watch)
    async with listening(silent) as address:
        connector = GrpcConnector()
        call = asyncio.ensure_future(
            connector.connect(address).call(METADATA, MetadataRequest(), timeout_ms=600_000)
        )
        try:
            await warned.wait()
        finally:
            logging.getLogger("semel_common").removeHandler(watch)
        assert not call.done()
        await connector.close()
        with suppress(SemelError):
            await call
    (record,) = caplog.records
    assert record.getMessage() == (
        f"no answer yet, still trying: {address} accepts connections and does not answer within"
        " 700 ms"
    )


async def test_time_out_of_a_call_to_a_silent_peer_names_the_cause() -> None:
    async with listening(silent) as address:
        error = await refused(address, timeout_ms=1_800)
    assert isinstance(error, RequestTimedOutError)
    assert "accepts connections and does not answer" in error.message


async def test_service_of_another_kind_is_named() -> None:
    async with serving(echo) as served:
        error = await refused(served.address)
    assert error.message == (
        f"{served.address} is the address of a group-coordinator, and Metadata belongs to another"
        " service"
    )


@pytest.mark.parametrize("shows", ["no certificate", "one of another authority"])
async def test_certificate_that_a_server_wants_is_named(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory, shows: str
) -> None:
    tls = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    stranger = Authority(tmp_path_factory.mktemp("other")).client()
    security = Security(
        ssl_ca_location=authority.ca,
        ssl_certificate_location=(
            None if shows == "no certificate" else stranger.ssl_certificate_location
        ),
        ssl_key_location=None if shows == "no certificate" else stranger.ssl_key_location,
    )
    async with serving(echo, listener=tls, client=authority.client()) as served:
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        error = await refused(served.address, security)
    assert isinstance(error, SslAuthenticationError), error
    assert "certificate" in error.message
    assert "ssl_certificate_location" in error.message
