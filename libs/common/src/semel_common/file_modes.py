"""Modes of files and folders: journals, logs, keys, and the files beside them.

New files have mode 0600 and new folders 0700, whatever the umask is. *Others* are all users but the
owner and the members of the file's group. Of files and folders that are there, others are shut out;
the group keeps what an administrator gave it, as Kubernetes does for the `fsGroup` of a pod.
"""

import os
import stat
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
OTHERS = 0o007
_OTHERS_READ_OR_WRITE = 0o006


class OpenSecretError(ValueError):
    """Others may read or change a secret; the message is a sentence that says what to do."""


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it, if it is not there. Raises OSError."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(FOLDER_MODE)  # The umask may have taken some of it away.


def make_private_file(file: Path) -> None:
    """Make an empty file if it is not there; it is opened by others. Raises OSError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, FILE_MODE)
    finally:
        os.close(descriptor)


def shut_others_out(path: Path) -> int | None:
    """Take what others may do with a file or folder from them.

    Returns the mode that it had, or None if there was nothing to take. A folder with the sticky
    bit, such as `/tmp`, belongs to all, and stays as it is. Raises OSError; for the path of another
    user, PermissionError.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & OTHERS or mode & stat.S_ISVTX:
        return None
    path.chmod(mode & ~OTHERS)
    return mode


def check_secret_file(what: str, file: Path) -> None:
    """Refuse a file with a secret in it that others may read or change.

    Members of its group may: a mounted secret of Kubernetes has mode 0440, and the pod's group.
    A link is as good as the file that it leads to. Raises OpenSecretError, OSError.
    """
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & _OTHERS_READ_OR_WRITE:
        raise OpenSecretError(
            f"{what} {file} can be read or changed by every user (mode {mode:04o}): run"
            f" `chmod o-rwx {file}`"
        )
