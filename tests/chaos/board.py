"""The board that owners and workers of joint transactions share: files, for many processes."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random


class FileBoard:
    """A board in a folder: each fact is a file, made or taken in one step. Implements ``Board``.

    A killed process leaves the facts that it has written, and loses the facts that it has taken.
    """

    def __init__(self, folder: Path, transactional_id: str, *, life: str) -> None:
        """``life``: that of the process, unique among all who use the folder."""
        self.transactional_id = transactional_id
        self._life = life
        self._numbers = count()
        self._done, self._open, self._receipts = (
            folder / name for name in ("done", "open", "receipts")
        )
        for each in (self._done, self._open, self._receipts):
            each.mkdir(parents=True, exist_ok=True)

    is_finished = False
    """See ``Board``: the run says when all is over."""

    @property
    def done(self) -> int:
        """See ``Board``."""
        return max((int(path.name) for path in self._done.iterdir()), default=0)

    def note_done(self, version: int) -> None:
        """See ``Board``."""
        (self._done / str(version)).touch()

    def ask_for(self, handle: str, tasks: Sequence[int]) -> None:
        """See ``Board``."""
        for task in tasks:
            name = self._name()
            self._written(self._open, handle).rename(self._open / f"{task}.{name}")

    def take(self, random: Random) -> tuple[str, int] | None:
        """See ``Board``."""
        found = [path for path in self._open.iterdir() if path.name[0].isdigit()]
        if not found:
            return None
        path = random.choice(found)
        mine = self._open / f"taken.{self._name()}"
        try:
            path.rename(mine)
        except FileNotFoundError:
            return None  # Another process was faster.
        handle = mine.read_text(encoding="utf-8")
        mine.unlink()
        return handle, int(path.name.partition(".")[0])

    def hand_in(self, handle: str, task: int, receipt: str) -> None:
        """See ``Board``."""
        whole = self._written(self._receipts, receipt)
        try:
            os.link(whole, self._receipt(handle, task))
        except FileExistsError:
            pass
        finally:
            whole.unlink()

    def receipts(self, handle: str) -> Mapping[int, str]:
        """See ``Board``."""
        name = self._receipt(handle, 0).name.partition(".")[0]
        return {
            int(path.suffix[1:]): path.read_text(encoding="utf-8")
            for path in self._receipts.glob(f"{name}.*")
        }

    def _written(self, folder: Path, text: str) -> Path:
        """Write a file under a name that no process reads yet."""
        path = folder / f"new.{self._name()}"
        path.write_text(text, encoding="utf-8")
        return path

    def _receipt(self, handle: str, task: int) -> Path:
        return self._receipts / f"{sha256(handle.encode()).hexdigest()[:32]}.{task}"

    def _name(self) -> str:
        return f"{self._life}-{next(self._numbers)}"
