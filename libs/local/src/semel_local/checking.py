"""Checking the volumes of stopped instances: `semel check`. Nothing is changed or claimed."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from semel_broker.storage import journal_check as broker
from semel_coordinator.record_serde import CoordinatorSerde
from semel_group.journal import GroupSerde
from semel_local.errors import LocalClusterError
from semel_runtime.journal import JournalError
from semel_runtime.journal.sqlite.file_check import FoundDamage, JournalFile, open_stopped
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE
from semel_runtime.machine import UnknownRecordError

__all__ = ["Checked", "FoundDamage", "check", "data_folders"]

_NAME = re.compile(r"semel-(?P<role>broker|coordinator|group(-coordinator)?)[ -](?P<number>\d+)")
"""What services call themselves in their journals, by themselves or in the process of a test."""

Decode = Callable[[bytes], object]


class Checked(Struct, frozen=True, kw_only=True):
    """What was found in one data folder."""

    folder: str
    service: str
    """As in ``semel-broker 0``; empty if it cannot be read."""
    entries: int
    """How many records and batches were read."""
    damage: tuple[FoundDamage, ...]
    is_unfinished: bool = False
    """Whether a first start ended too early: the folder holds nothing yet, and nothing is lost."""


def data_folders(folder: Path) -> Iterator[Path]:
    """Yield a data folder, or those in the folder of a whole cluster.

    Raises LocalClusterError with a sentence that says what to do.
    """
    if (folder / JOURNAL_FILE).is_file():
        yield folder
        return
    found = sorted(path.parent for path in folder.glob(f"*/{JOURNAL_FILE}"))
    if not found:
        raise LocalClusterError(
            f"{folder} has no {JOURNAL_FILE}, and no folder in it has one: name the data folder of"
            " an instance, or the folder of `semel up`"
        )
    yield from found


def check(folder: Path) -> Checked:
    """Read all of a stopped instance's volume.

    Raises LocalClusterError with a sentence that says what to do: while a service runs on the
    folder, and for one that a newer release has written.
    """
    try:
        with open_stopped(folder) as journal:
            if journal.is_unfinished():
                return Checked(
                    folder=str(folder), service="", entries=0, damage=(), is_unfinished=True
                )
            service = journal.service()
            journal.check_structure()
            journal.check_end()
            entries = _check_content(journal, service)
            return Checked(
                folder=str(folder), service=service, entries=entries, damage=tuple(journal.found)
            )
    except (JournalError, UnknownRecordError) as error:
        raise LocalClusterError(str(error)) from error
    except OSError as error:
        raise LocalClusterError(f"{folder} cannot be read: {error.strerror}") from error


def _check_content(journal: JournalFile, service: str) -> int:
    match _NAME.fullmatch(service):
        case re.Match() as name if name["role"] == "broker":
            return broker.check(journal, int(name["number"]))
        case re.Match() as name if name["role"] == "coordinator":
            return _check_records(journal, CoordinatorSerde().decode)
        case re.Match():
            return _check_records(journal, GroupSerde().decode)
        case None:
            journal.note("the table meta", f"names the service {service!r}, which there is not")
            return _check_records(journal, bytes)


def _check_records(journal: JournalFile, decode: Decode) -> int:
    count = 0
    for _, data in chain(journal.snapshot(), journal.records()):
        decode(data)
        count += 1
    return count
