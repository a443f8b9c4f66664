"""Where `semel up` runs, so that other commands find it without being told.

One small file for each cluster in the user's state folder, written when it is ready and removed
when it stops. If several clusters run, commands find the one that was started last.
"""

import errno
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from semel_common.file_modes import make_private_file, make_private_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCluster:
    """What `semel up` left for others."""

    bootstrap: str
    folder: str
    pid: int
    """Of `semel up` itself."""
    started_ms: int
    tls_ca: str = ""
    """Files of the certificates to connect with; empty: it is plain text."""
    tls_cert: str = ""
    tls_key: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether that process still is there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def data_folder() -> Path:
    """Return where `semel up` keeps its data if it is not told. Raises OSError."""
    return _user_folder("XDG_DATA_HOME", ".local/share") / "semel"


def read_running() -> list[RunningCluster]:
    """Return the clusters that were not stopped, the last one first; some may have been killed."""
    try:
        known = map(_read, _state_folder().glob("*.json"))
    except OSError:
        return []
    return sorted(filter(None, known), key=lambda each: each.started_ms, reverse=True)


def write_running(cluster: RunningCluster) -> None:
    """Make this cluster known to other commands, and forget killed ones. Raises OSError."""
    for running in read_running():
        if not running.is_alive:
            forget_running(running)
    _write_private(_state_file(cluster), json.dumps(asdict(cluster)))


def forget_running(cluster: RunningCluster) -> None:
    """Remove this cluster's file."""
    with suppress(OSError):  # What stays names a process that is gone.
        path = _state_file(cluster)
        if _read(path) == cluster:
            path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastUsed:
    """The cluster of `semel up` that a command has worked with last."""

    folder: str
    bootstrap: str
    used_ms: int


def read_last_used() -> LastUsed | None:
    """Return the cluster that was used last; None if there was none, or nothing tells."""
    try:
        return LastUsed(**json.loads(_last_used_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_last_used(used: LastUsed) -> None:
    """Remember the cluster that is used now; without a place for it, nothing is remembered."""
    with suppress(OSError):
        _write_private(_last_used_file(), json.dumps(asdict(used)))


def _last_used_file() -> Path:
    return _state_folder().parent / "last-used.json"


def _write_private(path: Path, text: str) -> None:
    make_private_folder(path.parent)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    make_private_file(new)
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _read(path: Path) -> RunningCluster | None:
    """Return what a file says; None if it is damaged, or not there."""
    try:
        return RunningCluster(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _state_file(cluster: RunningCluster) -> Path:
    """Return the file of the cluster that is in this folder."""
    name = hashlib.sha256(os.fsencode(cluster.folder)).hexdigest()
    return _state_folder() / f"{name}.json"


def _state_folder() -> Path:
    return _user_folder("XDG_STATE_HOME", ".local/state") / "semel" / "running"


def _user_folder(variable: str, default: str) -> Path:
    """Return the user's folder for such files. Raises FileNotFoundError if it is unknown."""
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path.home() / default
    except RuntimeError as error:
        sentence = f"the user has no home folder: set HOME or {variable}"
        raise FileNotFoundError(errno.ENOENT, sentence) from error
