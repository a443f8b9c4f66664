"""Checks of fields that several requests share; each error names the field."""

from collections import Counter
from collections.abc import Iterable, Sequence

from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import ID_LENGTH_MAX, NAMES_MAX
from semel_runtime.server.form_checks import require_count, require_name, shown


def require_topics_once(names: Sequence[str]) -> None:
    """Check that a request names at least one topic, and each of them once."""
    require_count("topics", names, minimum=1, maximum=NAMES_MAX)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(f"topics names {shown(name)!r} {count} times", field="topics")


def require_ids(field: str, ids: Iterable[str]) -> None:
    """Check topic ids."""
    for identifier in ids:
        require_name(field, identifier, length_max=ID_LENGTH_MAX)


def require_users(users: Iterable[str]) -> None:
    """Check names of users; the empty one stands for all users without a limit of their own."""
    for user in users:
        if user:
            require_name("user", user)
