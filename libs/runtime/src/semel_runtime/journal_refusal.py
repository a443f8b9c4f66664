"""A journal that its cluster has refused stays refused, however often its service is started.

Every start raises the claim epoch of a journal, by which the controller knows an old backup or a
copy. So a supervisor that starts the service again would raise it past the controller's memory.
"""

from pathlib import Path

from semel_common.file_modes import make_private_file
from semel_runtime.journal import Journal, JournalOpenError

_FILE = "refused"
_NOTE = "refused"
"""Where a journal that is not in a folder keeps it."""


def refuse(folder: Path, sentence: str) -> None:
    """Let no service work on this folder any more, and keep the reason."""
    make_private_file(folder / _FILE)
    (folder / _FILE).write_text(sentence, encoding="utf-8")


def check_not_refused(folder: Path) -> None:
    """Raise JournalOpenError if the folder was refused."""
    path = folder / _FILE
    if path.exists():
        raise JournalOpenError(_sentence(path.read_text(encoding="utf-8")))


async def refuse_journal(journal: Journal, sentence: str) -> None:
    """Let no service work on a journal without a folder any more. Raises the errors of a note."""
    await journal.set_note(_NOTE, sentence)


def check_journal_not_refused(journal: Journal) -> None:
    """Raise JournalOpenError if a journal without a folder was refused."""
    if sentence := journal.note(_NOTE):
        raise JournalOpenError(_sentence(sentence))


def admit(folder: Path) -> None:
    """Let a folder be worked on again: it was recovered. Idempotent."""
    (folder / _FILE).unlink(missing_ok=True)


def _sentence(why: str) -> str:
    return (
        f"This journal was refused: {why}. Put back the newest state of this volume, or all volumes"
        " of the cluster from one point in time."
    )
