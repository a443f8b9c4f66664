"""Taking an older copy of a volume, or an empty one, back into service: `semel recover`.

Theory of operation. Such a volume has forgotten later claim epochs, and later ids, epochs and
offsets of its service. Their number is unknown, so recovery raises them to a floor that comes from
the clock: no service gives out as many in a millisecond as the floor rises by in one. The floor is
above every number that this volume, or a volume recovered before, ever gave out.

The service is stopped meanwhile. Its records come first, in as many commits as they need. The claim
epoch is raised last: before that the controller refuses the volume, so a recovery that was
interrupted is none, and is begun again. Nothing else than that last step lets the volume in.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.sqlite import SqliteOptions
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE
from semel_runtime.journal.sqlite.journal_end import accept_end
from semel_runtime.journal_refusal import admit, check_not_refused
from semel_runtime.machine import Machine, Serde
from semel_runtime.runner import Runner
from semel_runtime.runner.claim_history import remember_recovery

RECOVERED = "recovered"
"""The note of a volume that was recovered: when, by whom, and why."""

_FLOOR_BITS = 10
_PRODUCER_IDS_BITS = 5
"""Producer ids have less room: 48 bits. Counters of a cluster start at 2^45 at most, so the ids
last until the year 2213."""

R = TypeVar("R")


class Recovery(Struct, frozen=True, kw_only=True):
    """What an operator asks for."""

    instance_id: int
    operator: str
    reason: str
    now_ms: int
    dry_run: bool = False
    lost: bool = False
    """The volume is a new, empty one: the old one is gone."""

    @property
    def floor(self) -> int:
        """Above all epochs and offsets that were ever given: 1024 for each millisecond."""
        return self.now_ms << _FLOOR_BITS

    @property
    def producer_ids_floor(self) -> int:
        """Likewise, of producer ids, for each partition of the transaction log: 32 a millisecond.

        It is counted from where the counters of the cluster start.
        """
        return self.now_ms << _PRODUCER_IDS_BITS

    def __str__(self) -> str:
        """Say who and why, for the note."""
        return f"by {self.operator} at {self.now_ms}: {self.reason}"


class Recovered(Struct, frozen=True, kw_only=True):
    """What a recovery has done, or would do."""

    claim_epoch: int
    """The one that the volume had."""
    facts: dict[str, int | str]
    """What becomes of the service, in numbers, by their names."""


async def recover_volume(
    folder: Path,
    machine: Machine[R],
    serde: Serde[R],
    recovery: Recovery,
    raise_all: Callable[[Runner[R]], Awaitable[dict[str, int | str]]],
    *,
    service: str,
    cluster_id: str,
) -> Recovered:
    """Let a service's machine raise what it has to, and then let the volume be taken.

    Raises JournalOpenError with a sentence that says what to do, and what `raise_all` raises.
    """
    _check_folder(folder, lost=recovery.lost)
    name = f"{service} {recovery.instance_id}"
    # The witness keeps what it says until the last step, so an interrupted recovery is none.
    options = SqliteOptions(end_checked=False)
    async with await open_journal(
        folder, service=name, cluster_id=cluster_id, options=options
    ) as journal:
        async with await Runner.open(journal, machine, serde) as runner:
            before = runner.claim_epoch
            if before >= recovery.floor:
                raise JournalOpenError(
                    f"{folder} has claim epoch {before}, which this machine's clock has not"
                    f" reached ({recovery.floor}): set the clock"
                )
            facts = await raise_all(runner)
        if not recovery.dry_run:
            token = f"recovery {recovery.floor}"
            await remember_recovery(
                journal, await journal.claim(token, epoch=recovery.floor), token
            )
            await journal.set_note(RECOVERED, str(recovery))
    if not recovery.dry_run:
        await asyncio.to_thread(accept_end, folder)
        await asyncio.to_thread(admit, folder)
    return Recovered(claim_epoch=before, facts=facts)


class KeptImage(Struct, frozen=True, kw_only=True):
    """What an instance's volume says of the cluster."""

    mark: JournalMark
    """How far its journal goes, under the claim that has read it."""
    image: ClusterImage | None


class Decoder(Protocol):
    """The half of a service's ``Serde`` that reads."""

    def decode(self, data: bytes) -> object:
        """Read one record."""
        ...


class ImageKeeper(Protocol):
    """A machine that keeps nothing but the metadata."""

    @property
    def image(self) -> ClusterImage | None:
        """What it has found."""
        ...

    def replay(self, offset: int, record: object) -> None:
        """Apply one record."""
        ...

    def snapshot(self) -> tuple[()]:
        """Return nothing: it is never asked, because nothing is appended."""
        ...


async def read_image(
    folder: Path, decoder: Decoder, keeper: ImageKeeper, *, service: str
) -> KeptImage:
    """Read the newest metadata that a stopped instance keeps. Claims its journal, like a start.

    Raises JournalOpenError with a sentence that says what to do.
    """
    _check_folder(folder, lost=False)
    check_not_refused(folder)
    async with (
        await open_journal(folder, service=service) as journal,
        await Runner.open(journal, keeper, _ReadOnly(decoder)) as runner,
    ):
        return KeptImage(mark=runner.mark(), image=keeper.image)


class _ReadOnly:
    """The other half: nothing is written."""

    def __init__(self, decoder: Decoder) -> None:
        self.decode = decoder.decode

    def encode(self, record: object) -> bytes:
        """Refuse: a reader writes no records."""
        raise AssertionError(f"{record} is not to be written")


class CopyKeeper:
    """Keeps the copy of the metadata that an instance has. Implements ``ImageKeeper``."""

    def __init__(self) -> None:
        self.image: ClusterImage | None = None

    def replay(self, offset: int, record: object) -> None:
        """Keep an image."""
        del offset
        if isinstance(record, ClusterImage):
            self.image = record

    def snapshot(self) -> tuple[()]:
        """Return nothing: it is never asked, because nothing is appended."""
        return ()


def _check_folder(folder: Path, *, lost: bool) -> None:
    exists = (folder / JOURNAL_FILE).exists()
    if lost and exists:
        raise JournalOpenError(
            f"{folder} has a journal: if it is an older one, leave --lost out; if it is not the"
            " volume that you mean, give the empty one"
        )
    if not lost and not exists:
        raise JournalOpenError(
            f"there is no journal in {folder}: put the older copy there, or, if there is none, say"
            " --lost for an empty volume"
        )
