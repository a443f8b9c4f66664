"""The socket at which the console takes connections."""

import socket

import pytest

from semel_console.options import Listen
from semel_console.serving import ListenError, listening


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")])
def test_no_page_waits_for_the_receipt_of_its_headers(host: str, family: str) -> None:
    with listening(Listen(host=host, port=0)) as bound:
        assert bound.family.name == family
        with socket.create_connection(bound.getsockname()[:2]):
            connection, _ = bound.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_is_taken_is_named() -> None:
    with listening(Listen(port=0)) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: Address"):
            listening(Listen(port=port))
