"""Which cluster `semel up` runs for this user: how other commands find it without being told.

One small file in the user's state folder, written when a cluster is ready and removed when it
stops. The last one that was started is the one that is found.
"""

import errno
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCluster:
    """What `semel up` left for others."""

    bootstrap: str
    folder: str
    pid: int
    """Of `semel up` itself."""
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


def read_running() -> RunningCluster | None:
    """Return the cluster that was started last; None if none was, or it was stopped."""
    try:
        return RunningCluster(**json.loads(_state_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_running(cluster: RunningCluster) -> None:
    """Let others find this cluster. Raises OSError."""
    path = _state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(asdict(cluster)), encoding="utf-8")
    new.replace(path)


def forget_running(cluster: RunningCluster) -> None:
    """Let nobody find this cluster any more."""
    if read_running() == cluster:
        with suppress(OSError):  # What stays names a process that is gone.
            _state_file().unlink()


def _state_file() -> Path:
    return _user_folder("XDG_STATE_HOME", ".local/state") / "semel" / "running.json"


def _user_folder(variable: str, default: str) -> Path:
    """Return where the user wants such files. Raises FileNotFoundError if nobody knows."""
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path.home() / default
    except RuntimeError as error:
        sentence = f"the user has no home folder: set HOME or {variable}"
        raise FileNotFoundError(errno.ENOENT, sentence) from error
