"""Files of a simulated disk: a write is in the page cache at once, and on the disk after a sync.

A loss of power takes or leaves each sector of the unsynced writes, and the last of the unsynced
changes of names. A process that is killed loses neither: the page cache stays.
"""

import errno
import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import count
from random import Random
from typing import NamedTuple

from simulation.threads import pause

SYNC_MS = (0.05, 0.6)
SECTOR_BYTES = 512
_TOUCH_S = 2e-5
_READ_SYNCS = 2
_CUT_SHORT = 0.05
"""The share of writes of which the system takes only a part."""


class Inode:
    """A file, whatever names it has."""

    def __init__(self) -> None:
        self.data = bytearray()
        """As every process sees it."""
        self.changes = 0
        """How often it was written."""
        self._disk = bytearray()
        self._unsynced: list[tuple[int, bytes]] = []

    def write(self, at: int, data: bytes) -> None:
        """Write into the page cache."""
        _put(self.data, at, data)
        self._unsynced.append((at, data))
        self.changes += 1

    def sync(self, changes: int) -> None:
        """Put the first changes of all on the disk, as far as they are not there."""
        count = max(0, changes - self.changes + len(self._unsynced))
        for at, data in self._unsynced[:count]:
            _put(self._disk, at, data)
        del self._unsynced[:count]

    def lose_power(self, random: Random) -> None:
        """Keep any sectors of the unsynced writes, and no others."""
        for at, data in self._unsynced:
            for start in range(-(at % SECTOR_BYTES), len(data), SECTOR_BYTES):
                if random.random() < 0.5:
                    first = max(start, 0)
                    _put(self._disk, at + first, data[first : start + SECTOR_BYTES])
        self._unsynced.clear()
        self.data = bytearray(self._disk)

    @classmethod
    def of(cls, data: bytes) -> "Inode":
        """Make a file that is on the disk."""
        made = cls()
        made.data, made._disk = bytearray(data), bytearray(data)
        return made


class Folder:
    """A folder on a disk of its own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.sync_ms = SYNC_MS
        """How long a sync takes, between these two."""
        self.at_next_sync: Callable[[], object] | None = None
        """Called once, when the next sync of a file of the log begins."""
        self.at_next_return: Callable[[], object] | None = None
        """Called once, when space of payloads next comes back."""
        self.at_next_clearing: Callable[[], object] | None = None
        """Called when a deletion has come to its end beside a return of space."""
        self.at_next_claim: Callable[[], object] | None = None
        """Called once, when a process next has a log of its own in front of the tables."""
        self.database: object = None
        """What SQLite has in it."""
        self.names: dict[str, Inode] = {}
        """As every process sees it."""
        self.changes = 0
        """How often a name was given or taken away."""
        self._disk: dict[str, Inode] = {}
        self._unsynced: list[tuple[str, Inode | None]] = []

    def sync_s(self) -> float:
        """Draw how long a sync takes."""
        return self.random.uniform(*self.sync_ms) / 1000

    def name(self, name: str, inode: Inode | None) -> None:
        """Give a file a name, or take the name away."""
        _name(self.names, name, inode)
        self._unsynced.append((name, inode))
        self.changes += 1

    def sync(self, changes: int) -> None:
        """Put the first changes of all names on the disk, as far as they are not there."""
        count = max(0, changes - self.changes + len(self._unsynced))
        for name, inode in self._unsynced[:count]:
            _name(self._disk, name, inode)
        del self._unsynced[:count]

    def lose_power(self) -> None:
        """Keep any first unsynced changes of names, and any unsynced sectors of each file."""
        lost = self.random.randint(0, len(self._unsynced))
        self.sync(self.changes - lost)
        self._unsynced.clear()
        for inode in self._disk.values():
            inode.lose_power(self.random)
        self.names = dict(self._disk)

    def content(self) -> dict[str, bytes]:
        """Return all files."""
        return {name: bytes(inode.data) for name, inode in self.names.items()}

    def put(self, content: dict[str, bytes]) -> None:
        """Let the disk have these files, and no others."""
        self._disk = {name: Inode.of(data) for name, data in content.items()}
        self.names = dict(self._disk)
        self._unsynced.clear()


class Status(NamedTuple):
    """The size of a file. Stands for ``os.stat_result``."""

    st_size: int
    st_blocks: int


class SimulatedPath:
    """A path in a folder, or of it. Stands for ``pathlib.Path``."""

    def __init__(self, folder: Folder, name: str = "") -> None:
        self.folder = folder
        self.name = name

    @property
    def parent(self) -> "SimulatedPath":
        """See ``Path``."""
        return SimulatedPath(self.folder)

    def __truediv__(self, name: str) -> "SimulatedPath":
        """See ``Path``."""
        return SimulatedPath(self.folder, name)

    def __lt__(self, other: "SimulatedPath") -> bool:
        """See ``Path``."""
        return self.name < other.name

    def __str__(self) -> str:
        """See ``Path``."""
        return f"/simulated/{self.name}"

    def glob(self, pattern: str) -> "Iterator[SimulatedPath]":
        """See ``Path``."""
        return (self / name for name in list(self.folder.names) if fnmatchcase(name, pattern))

    def exists(self) -> bool:
        """See ``Path``."""
        return self.name in self.folder.names

    def stat(self) -> "Status":
        """See ``Path``: the size alone, which is 0 of a file that is SQLite's."""
        inode = self.folder.names.get(self.name)
        size_bytes = 0 if inode is None else len(inode.data)
        return Status(size_bytes, size_bytes // SECTOR_BYTES)

    def read_bytes(self) -> bytes:
        """See ``Path``."""
        pause(_TOUCH_S)
        return bytes(_found(self).data)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """See ``Path``."""
        pause(_TOUCH_S)
        if not missing_ok or self.exists():
            _found(self)
            self.folder.name(self.name, None)
            _space_came_back(self)


class _Open(NamedTuple):
    """What a descriptor stands for."""

    path: SimulatedPath
    inode: Inode | None
    """None: the folder."""


class SimulatedOs:
    """The calls to the system that the log and the witness make. Stands for the module ``os``."""

    O_RDONLY, O_WRONLY, O_RDWR, O_CREAT = os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT
    O_EXCL, O_TRUNC, O_CLOEXEC = os.O_EXCL, os.O_TRUNC, os.O_CLOEXEC

    def __init__(self) -> None:
        self._numbers = count(1 << 30)  # No real file has such a number.
        self._open: dict[int, _Open] = {}

    def open(self, path: SimulatedPath, flags: int, _mode: int = 0o777) -> int:
        """See ``os.open``."""
        inode = path.folder.names.get(path.name)
        if path.name and inode is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            inode = Inode()
            path.folder.name(path.name, inode)
        elif flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, "file exists", str(path))
        assert inode is None or not flags & os.O_TRUNC or not inode.data, "no file is truncated"
        number = next(self._numbers)
        self._open[number] = _Open(path, inode)
        return number

    def close(self, descriptor: int) -> None:
        """See ``os.close``."""
        del self._open[descriptor]

    def fchmod(self, descriptor: int, _mode: int) -> None:
        """See ``os.fchmod``: there are no other users."""
        assert descriptor in self._open, "a closed file"

    def posix_fallocate(self, descriptor: int, at: int, size_bytes: int) -> None:
        """See ``os.posix_fallocate``, of an empty file."""
        self._inode(descriptor).write(at, bytes(size_bytes))

    def pread(self, descriptor: int, size_bytes: int, at: int) -> bytes:
        """See ``os.pread``: a read may take longer than a sync, on a busy disk."""
        pause(_READ_SYNCS * self._open[descriptor].path.folder.sync_ms[1] / 1000)
        return bytes(self._inode(descriptor).data[at : at + size_bytes])

    def pwrite(self, descriptor: int, data: bytes | memoryview, at: int) -> int:
        """See ``os.pwrite``."""
        opened = self._open[descriptor]
        random = opened.path.folder.random
        size_bytes = len(data)
        if _is_log(
            opened.path
        ):  # The witness is written by two threads, which wait for each other.
            pause(_TOUCH_S)
            if size_bytes > 1 and random.random() < _CUT_SHORT:
                size_bytes = random.randrange(1, size_bytes)
        self._inode(descriptor).write(at, bytes(data[:size_bytes]))
        return size_bytes

    def fstat(self, descriptor: int) -> Status:
        """See ``os.fstat``."""
        return self._open[descriptor].path.stat()

    def write_past_cache(self, descriptor: int, *, wanted: bool = True) -> bool:
        """See ``direct_writes.write_past_cache``."""
        assert descriptor in self._open, "a closed file"
        return wanted

    def punch(self, descriptor: int, _mode: int, start: int, size_bytes: int) -> int:
        """Make a hole. See fallocate(2)."""
        pause(_TOUCH_S)
        self._inode(descriptor).write(start, bytes(size_bytes))
        _space_came_back(self._open[descriptor].path)
        return 0

    def fdatasync(self, descriptor: int) -> None:
        """See ``os.fdatasync``: all that was written before is on the disk after it."""
        opened = self._open[descriptor]
        synced: Inode | Folder = opened.path.folder if opened.inode is None else opened.inode
        changes = synced.changes
        if _is_log(opened.path) and opened.path.folder.at_next_sync is not None:
            opened.path.folder.at_next_sync()
            opened.path.folder.at_next_sync = None
        pause(opened.path.folder.sync_s())
        synced.sync(changes)

    fsync = fdatasync

    def _inode(self, descriptor: int) -> Inode:
        inode = self._open[descriptor].inode
        assert inode is not None, "a folder is not written to"
        return inode


def _is_log(path: SimulatedPath) -> bool:
    return path.name.startswith(("journal.log-", "journal.payloads-"))


def _space_came_back(path: SimulatedPath) -> None:
    folder = path.folder
    if path.name.startswith("journal.payloads-") and folder.at_next_return is not None:
        folder.at_next_return()
        folder.at_next_return = None


def _found(path: SimulatedPath) -> Inode:
    inode = path.folder.names.get(path.name)
    if inode is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    return inode


def _name(names: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode


def _put(data: bytearray, at: int, new: bytes) -> None:
    if len(data) < at:
        data += bytes(at - len(data))
    data[at : at + len(new)] = new
