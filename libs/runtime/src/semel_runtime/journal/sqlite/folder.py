"""The data folder: made if need be, held by one process at a time, and closed to other users."""

import errno
import fcntl
import os
from pathlib import Path

import structlog

from semel_common.file_modes import make_private_file, make_private_folder, shut_others_out
from semel_runtime.journal.journal_errors import JournalInUseError, JournalOpenError

JOURNAL_FILE = "journal.db"
LOCK_FILE = "journal.lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
_OWN_NAMES = ("journal.", "refused")
"""How the names of all files begin that an instance keeps in its folder."""
BUSY = {errno.EAGAIN, errno.EACCES}

log = structlog.get_logger(__name__)


class FolderLock:
    """Holds a folder until `release`, or until the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let another process have the folder. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def hold_folder(folder: Path, *, exclusive: bool) -> FolderLock:
    """Make the folder and take its lock; raise JournalOpenError with a sentence."""
    try:
        make_private_folder(folder)
        make_private_file(folder / LOCK_FILE)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise JournalOpenError(folder_sentence(folder, error)) from error
    try:
        if exclusive:
            _lock(folder, descriptor)
        _keep_private(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return FolderLock(descriptor)


def _keep_private(folder: Path) -> None:
    """Shut other users out of a folder, and of all files of an instance in it.

    A folder with other things in it keeps its mode: others may have a right to them. Raises
    JournalOpenError.
    """
    try:
        entries = list(folder.iterdir())
        own = [path for path in entries if path.name.startswith(_OWN_NAMES)]
        if len(own) == len(entries):
            own.append(folder)
        for path in own:
            _shut_others_out(path)
    except OSError as error:
        raise JournalOpenError(folder_sentence(folder, error)) from error


def _shut_others_out(path: Path) -> None:
    try:
        before = shut_others_out(path)
    except PermissionError:
        log.warning(
            "every user may use this path, and only its owner can change that: run chmod o-rwx",
            path=str(path),
        )
        return
    if before is not None:
        log.warning(
            "every user could use this path, and no longer can",
            path=str(path),
            mode_before=f"{before:04o}",
            mode=f"{path.stat().st_mode & 0o7777:04o}",
        )


def _lock(folder: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            raise JournalInUseError(
                f"The data folder {folder} is in use by another process. "
                "Stop that process first, or give this one a folder of its own."
            ) from error
        if error.errno not in _NO_LOCKS:  # Without locks, the claim epoch still protects.
            raise JournalOpenError(folder_sentence(folder, error)) from error


def folder_sentence(folder: Path, error: OSError) -> str:
    """Say what to do about a folder that cannot be used."""
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return (
                f"The data folder {folder} cannot be written. "
                "Give this user the right to write there, or choose another folder."
            )
        case errno.ENOTDIR | errno.EEXIST:
            return f"The data folder {folder} is a file, or lies below one. Choose another folder."
        case errno.ENOSPC | errno.EDQUOT:
            return f"The disk of {folder} is full. Free some space, then start again."
        case _:
            return f"The folder {folder} cannot be used: {error.strerror}. Choose another one."
