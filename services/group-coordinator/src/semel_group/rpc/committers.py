"""The callers that commit or fetch offsets: a member of the group, or a client outside of it."""

from typing import Protocol

from semel_common.errors import InvalidRequestError
from semel_group.machine.values import LEAVE_EPOCH, Committer
from semel_group.rpc.group_ids import group_id
from semel_group.rpc.optional_names import optional_name
from semel_runtime.server.form_checks import require_int, shown


class NamesCommitter(Protocol):
    """A request with a group and a member of it."""

    @property
    def group_id(self) -> str:
        """The group; never empty."""
        ...

    @property
    def member_id(self) -> str:
        """A member, or empty."""
        ...

    @property
    def member_epoch(self) -> int:
        """The member's epoch; -1 without a member."""
        ...


def committer(request: NamesCommitter) -> Committer:
    """Return a member at its epoch, or a client outside of the group (no id, epoch -1)."""
    found = Committer(
        group_id=group_id(request.group_id),
        member_id=optional_name("member_id", request.member_id),
        member_epoch=require_int("member_epoch", request.member_epoch, minimum=LEAVE_EPOCH),
    )
    if bool(found.member_id) != (found.member_epoch != LEAVE_EPOCH):
        raise InvalidRequestError(
            f"member_id is {shown(found.member_id)!r} and member_epoch {found.member_epoch}: a"
            " member sends its id and its epoch, any other client an empty id and epoch -1",
            field="member_epoch",
        )
    return found
