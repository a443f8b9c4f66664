"""The data folder: made if need be, and held by one process at a time."""

import errno
import fcntl
import os
from pathlib import Path

from semel_runtime.journal.errors import JournalInUseError, JournalOpenError

JOURNAL_FILE = "journal.db"
LOCK_FILE = "journal.lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
_BUSY = {errno.EAGAIN, errno.EACCES}


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
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise JournalOpenError(folder_sentence(folder, error)) from error
    if exclusive:
        try:
            _lock(folder, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    return FolderLock(descriptor)


def _lock(folder: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
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
