"""Errors that only clients raise. No server answers them, so they have no number of their own."""

from semel_common.errors import NetworkExceptionError


class InvalidResponseError(NetworkExceptionError):
    """A server's answer is malformed, or does not fit the request. The request may have happened.

    ``details`` has the address, the RPC and the field. A client asks again a few times, perhaps at
    another address, and then raises this error.
    """


class SslAuthenticationError(NetworkExceptionError):
    """The TLS handshake failed, so the request was not sent: the message says what to change.

    A client connects again a few times, perhaps to another address, and then raises this error.
    """
