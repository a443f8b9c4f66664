"""What checks tokens, made from settings; loaded only where a listener asks for tokens."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from semel_runtime.authentication.jwks import Keys, KeysAtUrl, KeysInFile
from semel_runtime.authentication.listener_security import check_algorithms, names_in
from semel_runtime.authentication.token_check import TokenOptions, TokenVerifier
from semel_runtime.config import ServiceSettings


def verifier(settings: ServiceSettings) -> TokenVerifier:
    """Return it. Raises InvalidConfigError if the keys are to be in a file, and are not."""
    options = TokenOptions(
        issuer=settings.sasl_oauthbearer_expected_issuer,
        audiences=names_in(settings.sasl_oauthbearer_expected_audience, ","),
        algorithms=check_algorithms(settings.sasl_oauthbearer_algorithms),
        principal_claim=settings.sasl_oauthbearer_sub_claim_name,
        clock_skew_s=settings.sasl_oauthbearer_clock_skew_seconds,
    )
    return TokenVerifier(_keys(settings), options)


def _keys(settings: ServiceSettings) -> Keys:
    url = settings.sasl_oauthbearer_jwks_endpoint_url
    parts = urlsplit(url)
    if parts.scheme == "file":
        return KeysInFile(Path(unquote(parts.path)))
    return KeysAtUrl(url, refresh_ms=settings.sasl_oauthbearer_jwks_endpoint_refresh_ms)
