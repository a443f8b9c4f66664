"""The principal of a call."""

from msgspec import Struct

from semel_common.errors import SaslAuthenticationError


class Principal(Struct, frozen=True, kw_only=True):
    """An identity, as it was proven. Written ``User:name``, as Kafka does."""

    name: str
    """Of the user; or of the service, as its certificate or token says it."""
    is_cluster: bool = False
    """Whether it is one of the cluster's own services."""
    expires_at: float | None = None
    """Until when the proof is good, in seconds since 1970; None: as long as the connection."""

    def __str__(self) -> str:
        """Return it as access rules and logs name it."""
        return f"User:{self.name}"

    def check_not_expired(self, now_s: float) -> None:
        """Raise SaslAuthenticationError if the proof is not good any more."""
        if self.expires_at is not None and now_s > self.expires_at:
            raise SaslAuthenticationError("the token has expired")


ANONYMOUS = Principal(name="ANONYMOUS")
"""A caller without a proof."""


class Origin(Struct, frozen=True, kw_only=True):
    """Where a call, or all calls of a stream, come from."""

    listener: str
    """Name of the listener on which it arrived."""
    principal: Principal = ANONYMOUS
    host: str = ""
    """The caller's address, where only that tells callers apart."""
    address: str = ""
    """The caller's address, for people; empty: not known."""
