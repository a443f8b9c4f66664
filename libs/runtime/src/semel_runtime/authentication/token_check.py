"""Bearer tokens: JSON Web Tokens, and the conditions on each.

It is signed by a known key with an algorithm of the list, for this audience, by this issuer, and it
is time: clocks may differ by the skew. Reasons for a refusal name what is wrong and quote nothing.
A token that was good is good until it expires, or the keys change: its signature is checked once.
A token may have any shape: its times are checked here before anything is computed with them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from joserfc import errors, jws, jwt
from joserfc.jwk import KeySet

from semel_common.errors import SaslAuthenticationError
from semel_common.wire.client_tokens import TOKEN_MAX_BYTES
from semel_runtime.authentication.jwks import Keys
from semel_runtime.authentication.principal import Principal

REMEMBERED_MAX = 1_024
_TIME_MAX_S = 253_402_300_799
"""The end of the year 9999, the last moment that has a date."""
_TIMES = ("exp", "nbf", "iat")

_MALFORMED = (
    errors.JoseError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What the library raises for bytes of any shape, such as JSON of a thousand brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOptions:
    """The conditions on a token."""

    issuer: str
    audiences: tuple[str, ...]
    """One of them must be among the token's."""
    algorithms: tuple[str, ...]
    principal_claim: str = "sub"
    """The claim whose value is the name of the principal."""
    clock_skew_s: int = 30


class TokenVerifier:
    """Turns tokens into principals."""

    def __init__(
        self, keys: Keys, options: TokenOptions, now: Callable[[], float] = time.time
    ) -> None:
        """Remember nothing yet."""
        self._keys = keys
        self._options = options
        self._now = now
        self._remembered: dict[str, Principal] = {}
        self._remembered_of: KeySet | None = None
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(now()),
            leeway=options.clock_skew_s,
            iss={"essential": True, "value": options.issuer},
            aud={"essential": True, "values": list(options.audiences)},
            exp={"essential": True},
        )

    async def verify(self, token: str) -> Principal:
        """Return whose token it is; raises SaslAuthenticationError.

        Raises BrokerNotAvailableError as long as no keys are known.
        """
        if len(token) > TOKEN_MAX_BYTES:
            raise SaslAuthenticationError(
                f"the token has {len(token)} bytes: at most {TOKEN_MAX_BYTES} are looked at"
            )
        try:
            principal = self._recall(token, await self._keys.holding(None))
            if principal is None:
                keys = await self._keys.holding(_key_id(token))
                principal = self._principal_of(token, keys)
                self._remember(token, principal, keys)
        except _MALFORMED as error:
            raise SaslAuthenticationError(_reason(error)) from None
        principal.check_not_expired(self._now())
        return principal

    async def run(self) -> None:
        """Keep keys fresh until cancelled."""
        await self._keys.run()

    def _principal_of(self, token: str, keys: KeySet) -> Principal:
        """Check a token; raises the errors of ``_MALFORMED``."""
        options = self._options
        claims = jwt.decode(token, keys, algorithms=options.algorithms).claims
        _check_times(claims)
        self._claims.validate(claims)
        name = claims.get(options.principal_claim)
        if not isinstance(name, str) or not name:
            raise errors.MissingClaimError(options.principal_claim)
        # A name may hold half of a character, which no log and no message takes.
        if not name.isprintable():
            raise errors.InvalidClaimError(options.principal_claim)
        return Principal(name=name, expires_at=float(claims["exp"]) + options.clock_skew_s)

    def _recall(self, token: str, keys: KeySet) -> Principal | None:
        return self._remembered.get(token) if keys is self._remembered_of else None

    def _remember(self, token: str, principal: Principal, keys: KeySet) -> None:
        if keys is not self._remembered_of or len(self._remembered) >= REMEMBERED_MAX:
            self._remembered_of, self._remembered = keys, {}
        self._remembered[token] = principal


def _check_times(claims: Mapping[str, object]) -> None:
    """Refuse a time that is no number or no date: NaN would never be over."""
    for name in _TIMES:
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _NoTimeError(name)
        if not 0 <= value <= _TIME_MAX_S:  # NaN is not.
            raise _NoTimeError(name)


class _NoTimeError(ValueError):
    """A claim is no moment between 1970 and 9999."""

    def __init__(self, claim: str) -> None:
        """Name the claim, and quote nothing."""
        super().__init__(f"the token's claim {claim} is no time in seconds between 1970 and 9999")


def _key_id(token: str) -> str | None:
    """Return the key id that a token names. Raises the errors of ``_MALFORMED``."""
    header = jws.extract_compact(token.encode()).headers()
    key_id = header.get("kid")
    return key_id if isinstance(key_id, str) else None


def _reason(error: Exception) -> str:
    match error:
        case _NoTimeError():
            return str(error)
        case errors.ExpiredTokenError():
            return "the token has expired"
        case errors.MissingClaimError():
            return f"the token lacks the claim {error.claim}"
        case errors.InvalidClaimError(claim="nbf" | "iat"):
            return "the token is not good yet"
        case errors.InvalidClaimError():
            return f"the token's claim {error.claim} is not what is expected here"
        case errors.InvalidKeyIdError():
            return "the token is signed with a key that is not known"
        case errors.BadSignatureError():
            return "the token's signature is wrong"
        case errors.UnsupportedAlgorithmError() | errors.ConflictAlgorithmError():
            return "the token is signed with an algorithm that is not allowed"
        case errors.InvalidKeyTypeError() | errors.InvalidKeyCurveError():
            return "the token's key does not fit its algorithm"
        case _:
            return "what is shown is no token"
