"""How long members may be silent, or slow to give up partitions.

Only this process knows when a member spoke last: after a restart, every member gets a fresh
session, because no process could hear it meanwhile, and so do the members of a group that has moved
here. For the same reason a process that was stopped for a while (a suspended machine, a long pause)
does not hold that against the members.

Times are those of the event loop: unlike the clock on the wall, they never jump.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from semel_group.machine import GroupMachine
from semel_group.machine.records import GroupsServed, Member, Record
from semel_group.machine.values import HeartbeatAnswer, MemberKey
from semel_runtime.clock import Clock
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)

_TICKS_PER_SESSION = 20
_TICK_MAX_MS = 1_000
_PAUSE_TICKS = 3
"""Ticks that may be late before the process counts as having been stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHeartbeat:
    """The last heartbeat of a member."""

    principal: str
    address: str
    """Empty: not known."""
    came_ms: float
    """In event-loop time."""
    poll_age_ms: int | None = None
    """How long before it the member last asked for records. None: the member does not say."""


@dataclass(slots=True)
class _Session:
    """One member's deadlines, in event-loop time (milliseconds)."""

    silent_until_ms: float
    member_epoch: int
    revoke_until_ms: float | None = None
    last_heartbeat: LastHeartbeat | None = None

    def over(self, now_ms: float) -> str | None:
        """Return why its time is over; None while it is not."""
        if now_ms >= self.silent_until_ms:
            return "session timeout"
        if self.revoke_until_ms is not None and now_ms >= self.revoke_until_ms:
            return "rebalance timeout"
        return None


class MemberSessions:
    """The deadlines of all members. Without I/O: it is told the time."""

    def __init__(self, session_timeout_ms: int) -> None:
        """Start without members."""
        self._timeout_ms = session_timeout_ms
        self._sessions: dict[MemberKey, _Session] = {}

    def start(self, members: Iterable[MemberKey], now_ms: float) -> None:
        """Give members a fresh session, whatever their epochs."""
        for key in members:
            self._sessions[key] = _Session(now_ms + self._timeout_ms, 0)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Give every new member a session, also if its caller is gone by now."""
        for record in records:
            if isinstance(record, Member):
                key = MemberKey(record.group_id, record.member_id)
                if key not in self._sessions:
                    self.start((key,), loop_ms())

    def heard(self, key: MemberKey, now_ms: float) -> None:
        """Note that a member spoke, if there is such a member."""
        session = self._sessions.get(key)
        if session is not None:
            session.silent_until_ms = now_ms + self._timeout_ms

    def answered(self, key: MemberKey, answer: HeartbeatAnswer, now_ms: float) -> None:
        """Note what a member was told. For each epoch it may take so long to give up partitions."""
        session = self._sessions.setdefault(key, _Session(0, answer.member_epoch))
        session.silent_until_ms = now_ms + self._timeout_ms
        if answer.revoke_within_ms is None:
            session.revoke_until_ms = None
        elif session.revoke_until_ms is None or session.member_epoch != answer.member_epoch:
            session.revoke_until_ms = now_ms + answer.revoke_within_ms
        session.member_epoch = answer.member_epoch

    def spoke(self, key: MemberKey, heartbeat: LastHeartbeat) -> None:
        """Note the last heartbeat of a member, if there is such a member."""
        session = self._sessions.get(key)
        if session is not None:
            session.last_heartbeat = heartbeat

    def last_heartbeat(self, key: MemberKey) -> LastHeartbeat | None:
        """Return the last heartbeat of a member; None: this process has heard none."""
        session = self._sessions.get(key)
        return None if session is None else session.last_heartbeat

    def away(self, key: MemberKey, now_ms: float) -> None:
        """Note that a static member has left for a while: so long it may be back."""
        session = self._sessions.get(key)
        if session is not None:
            session.silent_until_ms = now_ms + self._timeout_ms
            session.revoke_until_ms = None

    def forget(self, key: MemberKey) -> None:
        """Note that there is no such member any more."""
        self._sessions.pop(key, None)

    def postpone(self, pause_ms: float) -> None:
        """Put all deadlines off: for so long this process could not hear the members."""
        for session in self._sessions.values():
            session.silent_until_ms += pause_ms
            if session.revoke_until_ms is not None:
                session.revoke_until_ms += pause_ms

    def expired(self, now_ms: float) -> list[tuple[MemberKey, str]]:
        """Return the members whose time is over, each with the reason."""
        return [
            (key, reason)
            for key, session in self._sessions.items()
            if (reason := session.over(now_ms)) is not None
        ]

    def is_expired(self, key: MemberKey, now_ms: float) -> bool:
        """Whether a member is there, and its time is over."""
        session = self._sessions.get(key)
        return session is not None and session.over(now_ms) is not None


class MemberExpiry:
    """Removes members whose time is over."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        sessions: MemberSessions,
        clock: Clock,
        *,
        session_timeout_ms: int,
    ) -> None:
        """Do nothing yet."""
        self._clock = clock
        self._runner = runner
        self._machine = machine
        self._sessions = sessions
        self._tick_ms = min(_TICK_MAX_MS, max(1, session_timeout_ms // _TICKS_PER_SESSION))

    async def run(self) -> None:
        """Give every member that the journal knows a session; then look from time to time."""
        last_ms = loop_ms()
        self._sessions.start(self._machine.membership.members(), last_ms)
        while True:
            await asyncio.sleep(self._tick_ms / 1000)
            now_ms = loop_ms()
            late_ms = now_ms - last_ms - self._tick_ms
            if late_ms > _PAUSE_TICKS * self._tick_ms:
                self._sessions.postpone(late_ms)
            last_ms = now_ms
            await self.expire(now_ms)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Give members of groups that are served from now on, or again, a fresh session."""
        for record in records:
            if isinstance(record, GroupsServed):
                self._sessions.start(self._machine.moves.members_in(record.partition), loop_ms())

    async def expire(self, now_ms: float) -> None:
        """Remove the members whose time is over by now."""
        for key, reason in self._sessions.expired(now_ms):
            if not self._sessions.is_expired(key, now_ms):
                continue  # It has spoken while others were removed.
            self._sessions.forget(key)
            wall_ms = self._clock.now_ms()
            expire = partial(self._machine.expire_member, key, now_ms=wall_ms)
            if await self._runner.run(expire, privileged=True):
                log.info(
                    "member removed", group_id=key.group_id, member_id=key.member_id, reason=reason
                )


def loop_ms() -> float:
    """Return the event loop's time in milliseconds."""
    return asyncio.get_running_loop().time() * 1000
