"""How much a cluster can store on the volume of its folder, above the reserve of its services."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from semel_local.errors import FolderError
from semel_local.layout import Settings

RESERVE_VARIABLE = "SEMEL_DISK_RESERVE_BYTES"
_RESERVE_SETTING = "disk_reserve_bytes"
_JOURNAL_VARIABLE = "SEMEL_JOURNAL_URL"
_BEGIN_BYTES = 16 << 20
"""What a new cluster writes before it stores anything: journals with their logs, and logs."""
_SMALL_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Free space of a volume, and the reserve of the services on it."""

    folder: Path
    free_bytes: int
    reserve_bytes: int

    def check_new_cluster(self) -> None:
        """Raise FolderError if a new cluster would store nothing, or almost nothing."""
        wanted_bytes = self.reserve_bytes + _BEGIN_BYTES
        if self.free_bytes < wanted_bytes:
            raise FolderError(
                f"the volume of {self.folder} is too small for a cluster: {self.free_bytes:,} bytes"
                f" are free, and a new cluster wants {wanted_bytes:,}, of which"
                f" {self.reserve_bytes:,} are its reserve ({RESERVE_VARIABLE}); choose a folder on"
                f" a larger volume, or set {RESERVE_VARIABLE} to a smaller number"
            )

    def warning(self) -> str:
        """Return what to tell of a volume with little room; empty if it has more."""
        usable_bytes = self.free_bytes - self.reserve_bytes
        if usable_bytes > _SMALL_BYTES:
            return ""
        reserve = f"the reserve ({RESERVE_VARIABLE}, {self.reserve_bytes:,})"
        if usable_bytes <= 0:
            return (
                f"the volume of {self.folder} is below {reserve}: {self.free_bytes:,} bytes are"
                " free, so the cluster stores nothing new until you delete records or enlarge the"
                " volume"
            )
        return (
            f"the volume of {self.folder} is small: the cluster stores about {usable_bytes:,} bytes"
            f" before the free space is below {reserve}"
        )


def room_of(folder: Path, settings: Settings, environment: Mapping[str, str]) -> Room | None:
    """Look at the volume of a folder, which need not be there; None if records go elsewhere.

    ``environment`` is that of the services, where their settings may be.
    """
    if environment.get(_JOURNAL_VARIABLE) or any(
        "journal_url" in setting for setting in settings.values()
    ):
        return None
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes = shutil.disk_usage(there).free
    return Room(folder=folder, free_bytes=free_bytes, reserve_bytes=_reserve(settings, environment))


def _reserve(settings: Settings, environment: Mapping[str, str]) -> int:
    from semel_runtime.journal.sqlite.options import SqliteOptions  # noqa: PLC0415 - loads SQLite

    given = environment.get(RESERVE_VARIABLE, "")
    default = int(given) if given.isdecimal() else SqliteOptions().disk_reserve_bytes
    return max(
        [int(setting.get(_RESERVE_SETTING, default)) for setting in settings.values()] or [default]
    )
