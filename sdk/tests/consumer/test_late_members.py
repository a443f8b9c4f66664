"""A member is late if it had not polled for long when it sent its last heartbeat."""

import pytest

from aiosemel import MemberDescription
from aiosemel._admin.reader_check import POLL_LATE_MS, is_late


@pytest.mark.parametrize(
    ("poll_age_ms", "heartbeat_age_ms", "expected"),
    [
        (None, None, False),
        (None, 4_000, False),
        (POLL_LATE_MS, 0, True),
        (POLL_LATE_MS - 1, 0, False),
        (POLL_LATE_MS + 4_000, 4_000, True),
        (POLL_LATE_MS + 4_000, POLL_LATE_MS + 4_000, False),
    ],
)
def test_a_member_that_waited_in_a_poll_is_not_late_however_old_its_heartbeat_is(
    poll_age_ms: int | None, heartbeat_age_ms: int | None, expected: bool
) -> None:
    member = MemberDescription(
        member_id="m",
        group_instance_id="",
        member_epoch=1,
        subscribed_topics=(),
        assignment=(),
        target=(),
        poll_age_ms=poll_age_ms,
        heartbeat_age_ms=heartbeat_age_ms,
    )
    assert is_late(member) is expected
