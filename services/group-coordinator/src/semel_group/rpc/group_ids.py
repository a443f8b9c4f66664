"""Group ids as requests name them."""

from collections.abc import Sequence

from semel_common.errors import InvalidGroupIdError
from semel_common.wire.messages.request_bounds import GROUPS_MAX, NAME_LENGTH_MAX
from semel_runtime.server.form_checks import require_count, shown


def group_id(value: str) -> str:
    """Return a group id. Raises InvalidGroupIdError."""
    if not 0 < len(value) <= NAME_LENGTH_MAX:
        raise InvalidGroupIdError(
            f"group_id {shown(value)!r} has {len(value)} characters: "
            f"must be 1 to {NAME_LENGTH_MAX}",
            field="group_id",
        )
    return value


def group_ids(values: Sequence[str]) -> list[str]:
    """Return the group ids of a request about many groups."""
    require_count("group_ids", values, maximum=GROUPS_MAX)
    return [group_id(value) for value in values]
