"""Producer tokens: a producer id is not enough to write under it.

InitProducerId and JoinTxn hand out a token, which Produce and TxnOffsetCommit carry. It is an HMAC
over producer id, transactional id and principal, by a secret that all services of a cluster share,
so any participant can check it alone, before anything else. The producer epoch is no part of it:
see the ADR ``a-producer-token-has-no-epoch``.

Several secrets may be known: the first makes tokens, all are accepted.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from pathlib import Path

from google.protobuf.message import Message

from semel.broker.v1.broker_pb2 import ProduceRequest
from semel.coordinator.v1.transactions_pb2 import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    JoinTxnRequest,
    JoinTxnResponse,
)
from semel.group.v1.group_pb2 import TxnOffsetCommitRequest
from semel_common.errors import InvalidConfigError, InvalidProducerTokenError
from semel_common.file_modes import OpenSecretError, check_secret_file
from semel_common.wire.methods import Method
from semel_runtime.authentication.principal import Principal

SECRET_LENGTH_MIN = 32
"""Characters of a secret, at least: ``openssl rand -hex 32`` gives 64."""
SECRETS_MAX = 2
"""A new one, and the one before."""
PRODUCERS_MAX = 10_000
"""Producers whose tokens are remembered; past it, every token is made again."""
_CONTEXT = b"semel producer token v1"


class ProducerTokens:
    """Makes and checks tokens."""

    def __init__(self, secrets: tuple[bytes, ...]) -> None:
        """Take the secrets: the first makes tokens, all are accepted."""
        assert secrets, "without a secret there are no tokens"
        self._keys = secrets
        self._known: dict[tuple[int, str, str], tuple[bytes, ...]] = {}

    def make(self, producer_id: int, transactional_id: str, principal: Principal) -> bytes:
        """Return the token of a producer id that was given to a principal."""
        return self._tokens(producer_id, transactional_id, principal)[0]

    def verify(
        self, token: bytes, producer_id: int, transactional_id: str, principal: Principal
    ) -> None:
        """Refuse a token that is not of this producer. Raises InvalidProducerTokenError.

        All secrets are tried, each in constant time, so that time does not tell which one fits.
        """
        fits = False
        for right in self._tokens(producer_id, transactional_id, principal):
            fits |= hmac.compare_digest(right, token)
        if not fits:
            what = "is wrong" if token else "is missing"
            raise InvalidProducerTokenError(
                f"producer_token of producer id {producer_id} {what}: it is good for the principal"
                " and the transactional id that it was given to only",
                producer_id=producer_id,
            )

    def _tokens(
        self, producer_id: int, transactional_id: str, principal: Principal
    ) -> tuple[bytes, ...]:
        """Return the token by each secret: what is right is remembered, never what was shown."""
        producer = (producer_id, transactional_id, principal.name)
        known = self._known.get(producer)
        if known is None:
            if len(self._known) >= PRODUCERS_MAX:
                self._known = {}
            known = self._known[producer] = tuple(
                _token(key, producer_id, transactional_id, principal) for key in self._keys
            )
        return known

    def check(
        self, method: Method[Message, Message], request: Message, principal: Principal
    ) -> None:
        """Refuse a write under a producer id that is not the caller's."""
        producers_of = _PRODUCERS.get(type(request))
        if producers_of is None:
            return
        assert isinstance(request, ProduceRequest | TxnOffsetCommitRequest), method.name
        for producer_id in producers_of(request):
            self.verify(request.producer_token, producer_id, request.transactional_id, principal)

    def hand_out(
        self,
        method: Method[Message, Message],
        request: Message,
        response: Message,
        principal: Principal,
    ) -> None:
        """Give the token of a producer id with the answer that gives the id."""
        if isinstance(response, InitProducerIdResponse):
            assert isinstance(request, InitProducerIdRequest), method.name
            transactional_id = request.transactional_id
        elif isinstance(response, JoinTxnResponse) and response.producer_id:
            assert isinstance(request, JoinTxnRequest), method.name
            transactional_id = request.transaction.transactional_id
        else:
            return
        response.producer_token = self.make(response.producer_id, transactional_id, principal)


def read_secrets(path: Path) -> tuple[bytes, ...]:
    """Read a file of secrets, one a line. Raises InvalidConfigError, which never shows one."""
    try:
        check_secret_file("producer_token_secrets_file", path)
        lines = path.read_text().split()
    except OpenSecretError as error:
        raise InvalidConfigError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigError(
            f"producer_token_secrets_file {path} cannot be read: {type(error).__name__}"
        ) from None
    if not 1 <= len(lines) <= SECRETS_MAX:
        raise InvalidConfigError(
            f"producer_token_secrets_file {path} has {len(lines)} secrets: must be 1 or 2, each in"
            " a line"
        )
    if any(len(line) < SECRET_LENGTH_MIN for line in lines):
        raise InvalidConfigError(
            f"producer_token_secrets_file {path} has a secret of less than {SECRET_LENGTH_MIN}"
            " characters"
        )
    return tuple(line.encode() for line in lines)


def _produced(request: Message) -> Iterable[int]:
    """Return under which producer ids a request writes; 0, which is no producer, is left out."""
    assert isinstance(request, ProduceRequest)
    found = {batch.producer_id for partition in request.partitions for batch in partition.batches}
    found |= {partition.records.producer_id for partition in request.partitions}
    found.discard(0)
    return sorted(found)


def _committed(request: Message) -> Iterable[int]:
    assert isinstance(request, TxnOffsetCommitRequest)
    return (request.producer_id,)


_PRODUCERS: dict[type[Message], Callable[[Message], Iterable[int]]] = {
    ProduceRequest: _produced,
    TxnOffsetCommitRequest: _committed,
}


def _token(key: bytes, producer_id: int, transactional_id: str, principal: Principal) -> bytes:
    # Every part with its length: no two producers have the same text.
    parts = (str(producer_id), transactional_id, principal.name)
    text = b"".join(
        len(part).to_bytes(4, "big") + part for part in (_CONTEXT, *(p.encode() for p in parts))
    )
    return hmac.digest(key, text, hashlib.sha256)
