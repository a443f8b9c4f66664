"""Whether the controller's own journal has all that other instances know of it.

Every registration carries what the instance knows of the controller's journal. If this journal
lacks any of that, the volume was restored from an old backup: the controller stops, and its volume
is refused from then on, as those of other instances are.

The controller believes an instance only if it proves that this volume knows it: its journal has the
claim that is stored here, whose random token no caller can learn. So a made-up message of an
unknown caller stops nothing. An instance that is unknown here, and knows more, is not registered: a
volume from before its first registration is an older copy, too.

Until the instances that it knows have registered again, a controller that has just started may work
on such a volume. So it gives out nothing and changes nothing before that. It waits for the first
instance for ever, because it could serve no client without instances; then it waits for the others
for a bounded time.
"""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from semel_common.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    StaleClaimEpochError,
)
from semel_coordinator.controller.machine import InstanceKey, Registration
from semel_runtime.claims import JournalMark, missing
from semel_runtime.cluster.controller_link import Identity

log = structlog.get_logger(__name__)


class OwnVolume:
    """Watches over the controller's volume."""

    def __init__(
        self,
        identity: Identity,
        *,
        known: Mapping[InstanceKey, JournalMark],
        awaited: Collection[InstanceKey],
        others_wait_ms: int,
    ) -> None:
        """Believe known instances, and wait for some of them; for none: begin at once."""
        self._identity = identity
        self._known = known
        self._awaited = set(awaited)
        self._others_wait_ms = others_wait_ms
        self._one_came = asyncio.Event()
        self._refused = asyncio.Event()
        self._why = ""
        self.confirmed = asyncio.Event()
        """Set once the controller may give something out."""
        if not self._awaited:
            self.confirmed.set()

    def mark(self) -> JournalMark:
        """Return how far the controller's journal goes.

        Others keep it once the controller is confirmed: of an older copy, they must know nothing.
        """
        return self._identity.mark()

    def check_confirmed(self) -> None:
        """Raise CoordinatorLoadInProgressError while the controller may change nothing."""
        if not self.confirmed.is_set():
            raise CoordinatorLoadInProgressError(
                "coordinator-0 has just started, and waits until the other instances register: they"
                " know whether its volume is the newest"
            )

    def check(self, registration: Registration) -> None:
        """Compare what an instance of this cluster knows; stop the controller if it knows more.

        Raises CoordinatorNotAvailableError then: the instance waits for the right volume. Raises
        StaleClaimEpochError for an instance without a proof: it ends, and its volume is no worse.
        """
        known = registration.controller
        if known is None:
            return
        mark = self.mark()
        lacking = missing(self._identity.history, known, end_offset=mark.end_offset)
        if lacking:
            why = (
                f"{registration.key} knows more of the journal of coordinator-0 than its volume"
                f" has: {lacking}. The volume of coordinator-0 was restored from an old backup, or"
                f" is a copy; stop it and see `semel recover`. If the whole cluster was restored,"
                f" the volume of {registration.key} was left out"
            )
            if not self._proves_itself(registration):
                raise StaleClaimEpochError(why)
            self._why = why
            self._refused.set()
        if self._refused.is_set():
            raise CoordinatorNotAvailableError(self._why)

    def _proves_itself(self, registration: Registration) -> bool:
        """Whether a registration comes from the journal that this volume knows."""
        known = self._known.get(registration.key)
        if known is None or not known.claim_token:
            return False
        claims = [(registration.claim_epoch, registration.claim_token)]
        if registration.history is not None:
            claims += [
                (claim.claim_epoch, claim.claim_token) for claim in registration.history.claims
            ]
        return (known.claim_epoch, known.claim_token) in claims

    def came(self, key: InstanceKey) -> None:
        """Note that an instance has registered, and knows nothing that this volume lacks."""
        if key in self._awaited:
            self._awaited.remove(key)
            self._one_came.set()
        if not self._awaited:
            self._confirm()

    async def run(self) -> None:
        """Let the controller begin when it may. Raises StaleClaimEpochError when it must stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._confirm_in_time(), name="wait for instances")
            group.create_task(self._stop_if_refused(), name="own volume")

    def _confirm(self) -> None:
        if not self._refused.is_set():
            self.confirmed.set()

    async def _confirm_in_time(self) -> None:
        if self.confirmed.is_set():
            return
        await self._one_came.wait()
        try:
            async with asyncio.timeout(self._others_wait_ms / 1000):
                await self.confirmed.wait()
        except TimeoutError:
            missed = ", ".join(map(str, sorted(self._awaited)))
            log.warning("instances have not registered since the start", instances=missed)
            self._confirm()

    async def _stop_if_refused(self) -> None:
        await self._refused.wait()
        raise StaleClaimEpochError(self._why, claim_epoch=self._identity.claim_epoch)
