"""Folders among the machine's temporary files that every process of a user shares.

What needs one is started again and again, and often killed: a folder for each process would stay
behind each time.
"""

import os
import stat
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir, mkdtemp


def kept_folder(kind: str, of: str) -> Path:
    """Return the folder of this user for ``of``; its files may be there already.

    Names of temporary files can be guessed, and taken by others: then it is one of this process.
    """
    digest = sha256(of.encode()).hexdigest()[:12]
    folder = Path(gettempdir()) / f"semel-{kind}-{os.getuid()}-{digest}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_own(folder):
            return Path(mkdtemp(prefix=f"semel-{kind}-"))
    return folder


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not others_write
