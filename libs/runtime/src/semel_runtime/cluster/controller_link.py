"""The link of an instance to the controller: it registers, and follows the metadata.

Both go on for ever. While the controller is away, the instance works with its copy.

A question for newer metadata waits at the controller until there are some, so a lost question looks
like one that waits. Only if this instance knows that there are some, the answer is due at once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import structlog

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationError,
    StaleClaimEpochError,
)
from semel_common.wire.connection import Connector
from semel_common.wire.methods import METADATA, REGISTER_INSTANCE
from semel_runtime.claims import ClaimHistory, JournalMark
from semel_runtime.cluster.controller_note import (
    ControllerMemory,
    mark_from_wire,
    mark_to_wire,
)
from semel_runtime.cluster.metadata_image import ClusterImage, Listener, ServiceRole
from semel_runtime.cluster.metadata_serde import ImageReader, listeners_to_wire, shortage_to_wire
from semel_runtime.cluster.registration_timing import RegistrationTimer
from semel_runtime.journal.contract import DiskShortage

log = structlog.get_logger(__name__)

_BACKOFF_FIRST_S = 0.05
_BACKOFF_MAX_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who an instance is."""

    role: ServiceRole
    instance_id: int
    claim_epoch: int
    """Of its journal."""
    claim_token: str
    """Random, of this process."""
    history: ClaimHistory
    """The claims of its journal."""
    mark: Callable[[], JournalMark]
    """Returns how far its journal goes now, durably."""
    listeners: tuple[Listener, ...]
    """As they are advertised."""
    shortage: Callable[[], DiskShortage | None]
    """Returns how little space its disk has; None: enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """How often the controller is called, and for how long."""

    registration_interval_ms: int = 5_000
    metadata_max_wait_ms: int = 10_000
    request_timeout_ms: int = 5_000


class ClusterLink:
    """Keeps one instance registered and its copy of the metadata fresh."""

    def __init__(
        self,
        identity: Identity,
        *,
        memory: ControllerMemory,
        controller: str,
        connector: Connector,
        random: Random,
        options: LinkOptions,
        cluster_id: Callable[[], str],
        on_image: Callable[[ClusterImage], Awaitable[None]],
    ) -> None:
        """Give each new image to ``on_image``; ``cluster_id`` answers empty until one came."""
        self._identity = identity
        self._memory = memory
        self._shown = False
        """Whether the controller has seen the claims of this journal."""
        self._registered_with: tuple[int, str] | None = None
        """The claim of the controller that has taken the registration; None: it tells none."""
        self._timer = RegistrationTimer(identity.shortage, options.registration_interval_ms)
        self._address = controller
        self._connection = connector.connect(controller)
        self._random = random
        self._options = options
        self._cluster_id = cluster_id
        self._on_image = on_image
        self._version = 0
        self._reader = ImageReader()
        self._expects_newer = False
        """Whether the next question is answered at once, because there are newer metadata."""
        self._patience: asyncio.Timeout | None = None
        """With the question that is under way."""
        self.ready = asyncio.Event()
        """Set once the instance is registered and has seen an image."""

    @property
    def controller(self) -> JournalMark | None:
        """The last mark of the controller's journal."""
        return self._memory.mark

    def expect_newer(self) -> None:
        """Note that the controller has newer metadata: an answer that takes long was lost."""
        self._expects_newer = True
        patience = self._patience
        if patience is not None and patience.when() is None:
            patience.reschedule(self._due_at())

    async def run(self) -> None:
        """Register and follow, until cancelled.

        Raises InconsistentClusterIdError, StaleClaimEpochError or InvalidRequestError when the
        controller refuses this instance, or is refused by it: it must not serve.
        """
        await self._retrying(self._register, "registration failed")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="metadata follower")
            group.create_task(self._stay_registered(), name="registration")

    async def _follow(self) -> None:
        while True:
            await self._retrying(self._take_image, "controller cannot be asked for metadata")
            self.ready.set()

    async def _stay_registered(self) -> None:
        while True:
            await self._timer.wait()
            await self._retrying(self._register, "registration failed")

    async def _register(self) -> None:
        request = self._registration()
        timeout_ms = self._options.request_timeout_ms
        self._shown = False  # Another process may answer next: it is to see the claims.
        response = await self._connection.call(REGISTER_INSTANCE, request, timeout_ms=timeout_ms)
        self._shown = True
        if response.HasField("controller"):
            mark = mark_from_wire(response.controller)
            await self._memory.keep(response.cluster_id, mark)
            self._registered_with = (mark.claim_epoch, mark.claim_token)
        else:
            self._registered_with = None

    def _registration(self) -> wire.RegisterInstanceRequest:
        identity, memory = self._identity, self._memory
        request = wire.RegisterInstanceRequest(
            role=identity.role.value,  # type: ignore[arg-type]  # equal numbers
            instance_id=identity.instance_id,
            cluster_id=self._cluster_id() or memory.cluster_id,
            claim_epoch=identity.claim_epoch,
            claim_token=identity.claim_token,
            listeners=listeners_to_wire(identity.listeners),
            journal_end_offset=identity.mark().end_offset,
            recovered_epoch=identity.history.recovered_epoch,
        )
        if (shortage := self._timer.shortage()) is not None:
            request.disk_shortage.CopyFrom(shortage_to_wire(shortage))
        if memory.mark is not None:
            request.controller.CopyFrom(mark_to_wire(memory.mark))
        for claim in () if self._shown else identity.history.claims:
            request.claims.add(
                claim_epoch=claim.claim_epoch,
                claim_token=claim.claim_token,
                start_offset=claim.start_offset,
            )
        return request

    async def _take_image(self) -> None:
        # After a failure, the whole image is asked for at once: it may be another process's.
        known_version, self._version = self._version, 0
        max_wait_ms = self._options.metadata_max_wait_ms
        request = wire.MetadataRequest(
            all_topics=True,
            all_listeners=True,
            access_rules=True,
            known_version=known_version,
            max_wait_ms=max_wait_ms,
        )
        response = await self._ask(request)
        await self._check_source(response)
        image = self._reader.from_wire(response)
        if image.version != known_version:
            await self._on_image(image)
        self._version = image.version

    async def _ask(self, request: wire.MetadataRequest) -> wire.MetadataResponse:
        request_timeout_ms = self._options.request_timeout_ms
        timeout_ms = request.max_wait_ms + request_timeout_ms
        due_at = self._due_at() if self._expects_newer else None
        self._expects_newer = False
        try:
            async with asyncio.timeout_at(due_at) as self._patience:
                return await self._connection.call(METADATA, request, timeout_ms=timeout_ms)
        except TimeoutError as error:
            text = f"no answer in {request_timeout_ms} ms, although there are newer metadata"
            raise RequestTimedOutError(text) from error
        finally:
            self._patience = None

    def _due_at(self) -> float:
        """Return when an answer is due that comes at once."""
        return asyncio.get_running_loop().time() + self._options.request_timeout_ms / 1000

    async def _check_source(self, response: wire.MetadataResponse) -> None:
        """Register first with a controller that has started since: it may work on an older copy.

        Raises CoordinatorNotAvailableError for metadata of yet another process.
        """
        if not response.HasField("controller"):
            return
        source = (response.controller.claim_epoch, response.controller.claim_token)
        if source != self._registered_with:
            self._shown = False
            await self._register()
        if source != self._registered_with:
            raise CoordinatorNotAvailableError(
                f"the metadata are of a controller with claim epoch {source[0]}, which is not the"
                " one that has taken the registration of this instance"
            )

    async def _retrying(self, attempt: Callable[[], Awaitable[None]], complaint: str) -> None:
        """Try until it works; the first failure in a row is a warning, the others are not told."""
        backoff_s = _BACKOFF_FIRST_S
        while True:
            try:
                return await attempt()
            except InconsistentClusterIdError as error:
                raise InconsistentClusterIdError(
                    f"coordinator-0 at {self._address} belongs to another cluster than this"
                    f" instance, which belongs to {self._cluster_id()!r}: correct the address, or"
                    " put back the volume of coordinator-0 or of this instance; see `semel recover`"
                    " if it is lost"
                ) from error
            except (StaleClaimEpochError, InvalidRequestError):
                raise
            except (RetriableError, SaslAuthenticationError) as error:
                if backoff_s == _BACKOFF_FIRST_S:
                    log.warning(complaint, error=error.message)
            await asyncio.sleep(backoff_s * self._random.uniform(0.5, 1.0))
            backoff_s = min(_BACKOFF_MAX_S, backoff_s * 2)
