"""A member that is silent or slow for too long loses its partitions; nothing else takes them."""

import pytest
from group_harness import GROUP

from semel_group.loops.session_timeouts import MemberSessions
from semel_group.machine.values import HeartbeatAnswer, MemberKey

A, B = MemberKey(GROUP, "a"), MemberKey(GROUP, "b")


def answer(epoch: int = 1, *, revoke_within_ms: int | None = None) -> HeartbeatAnswer:
    return HeartbeatAnswer(
        member_epoch=epoch, assignment=(), settled=True, revoke_within_ms=revoke_within_ms
    )


@pytest.fixture
def sessions() -> MemberSessions:
    return MemberSessions(session_timeout_ms=100)


def test_a_silent_member_expires_when_its_session_is_over(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(), now_ms=0)
    assert sessions.expired(99) == []
    assert sessions.expired(100) == [(A, "session timeout")]


def test_speaking_puts_the_end_off(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(), now_ms=0)
    sessions.heard(A, 60)
    assert sessions.expired(159) == []
    assert sessions.expired(160) != []


def test_a_caller_without_membership_gets_no_session_by_speaking(sessions: MemberSessions) -> None:
    sessions.heard(A, 0)
    assert sessions.expired(1_000) == []


def test_members_known_from_the_journal_get_a_fresh_session(sessions: MemberSessions) -> None:
    sessions.start([A, B], now_ms=1_000)
    sessions.heard(B, 1_050)
    assert sessions.expired(1_099) == []
    assert sessions.expired(1_100) == [(A, "session timeout")]


def test_a_member_that_left_does_not_expire(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(), now_ms=0)
    sessions.forget(A)
    sessions.forget(A)
    assert sessions.expired(1_000) == []


def test_a_member_that_is_slow_to_give_up_expires_although_it_speaks(
    sessions: MemberSessions,
) -> None:
    for now_ms in range(0, 500, 50):
        sessions.answered(A, answer(2, revoke_within_ms=300), now_ms=now_ms)
        assert sessions.expired(now_ms) == ([] if now_ms < 300 else [(A, "rebalance timeout")])


def test_each_epoch_gives_time_of_its_own(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(2, revoke_within_ms=60), now_ms=0)
    sessions.answered(A, answer(3, revoke_within_ms=60), now_ms=50)
    assert sessions.expired(109) == []
    assert sessions.expired(110) == [(A, "rebalance timeout")]


def test_a_member_that_has_given_up_has_time_again(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(2, revoke_within_ms=60), now_ms=0)
    sessions.answered(A, answer(2), now_ms=50)
    assert sessions.expired(149) == []


def test_a_pause_of_the_process_is_not_held_against_members(sessions: MemberSessions) -> None:
    sessions.answered(A, answer(), now_ms=0)
    sessions.answered(B, answer(2, revoke_within_ms=60), now_ms=0)
    sessions.postpone(1_000)
    assert sessions.expired(1_059) == []
    assert sessions.expired(1_060) == [(B, "rebalance timeout")]
    assert sessions.expired(1_100) == [(A, "session timeout"), (B, "session timeout")]
