"""Forms that a browser sends: small, and nothing but fields with a text each."""

from urllib.parse import parse_qsl

from starlette.requests import Request

BODY_MAX_BYTES = 32_768
_FIELDS_MAX = 20


class BadFormError(Exception):
    """The body is no form of the console; the message says why."""


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; raises BadFormError."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_MAX_BYTES:
            raise BadFormError(f"the form has more than {BODY_MAX_BYTES:,} bytes")
    try:
        pairs = parse_qsl(
            bytes(body).decode("utf-8"), keep_blank_values=True, max_num_fields=_FIELDS_MAX
        )
    except ValueError as error:
        raise BadFormError(f"the form cannot be read: {error}") from error
    return dict(pairs)
