"""The identities of attackers, and of the polite client."""

import time
from enum import StrEnum
from pathlib import Path

import grpc
from joserfc import jwt
from joserfc.jwk import ECKey

from aiosemel import Security
from semel_common.wire.client_security import AUTHORIZATION, BEARER

ISSUER, AUDIENCE = "https://issuer.example", "semel"
TOKEN_LIFE_S = 3_600
KEY_ID = "key"


class Caller(StrEnum):
    """An identity. All but ``NOBODY`` have a token of their name."""

    NOBODY = "nobody"
    """Has no token."""
    STRANGER = "stranger"
    """Has a token, and no access rule."""
    WRITER = "writer"
    """May use the topics, transactional ids and groups whose names begin with ``writer``."""
    ADMINISTRATOR = "administrator"
    """A super user."""
    POLITE = "polite"
    """The client that must not notice anything; has what a writer has, below ``polite``."""


class Issuer:
    """Issues tokens to callers."""

    def __init__(self, ca: Path) -> None:
        """Make a key."""
        self.key = ECKey.generate_key("P-256", {"kid": KEY_ID, "use": "sig"})
        self.ca = ca

    def token(self, name: str, *, lives_s: float = TOKEN_LIFE_S) -> str:
        """Return a token in a name."""
        good_until = int(time.time() + lives_s)
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": good_until}
        return jwt.encode({"alg": "ES256", "kid": KEY_ID}, claims, self.key)

    def security(self, caller: Caller) -> Security:
        """Return the SDK's credentials of a caller."""
        token = None if caller is Caller.NOBODY else self.token(caller.value)
        return Security(ssl_ca_location=self.ca, token=token)

    def metadata(self, caller: Caller) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a caller's gRPC calls."""
        if caller is Caller.NOBODY:
            return ()
        return ((AUTHORIZATION, f"{BEARER}{self.token(caller.value)}"),)

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of gRPC channels."""
        return grpc.ssl_channel_credentials(self.ca.read_bytes())
