"""Names that a request may leave empty."""

from semel_runtime.server.form_checks import require_name


def optional_name(field: str, value: str) -> str:
    """Return a name, or the empty string of a field that is not set."""
    return require_name(field, value) if value else value
