"""`semel check`: read the volumes of stopped instances, and name what is damaged."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.options import path
from semel_cli.shared.output import Format, FormatOption, Json, Table, examples, note, show

if TYPE_CHECKING:
    from semel_local.checking import Checked

EXAMPLES = examples(
    "semel check /data/broker-0",
    "semel check ./cluster              # all instances of `semel up`",
    "semel check /data/broker-0 /data/broker-1 --format json",
)

EXIT_DAMAGED = 1

_ADVICE = (
    "Leave the instance stopped, and keep a copy of its folder. docs/run/recovery.md (A damaged"
    " volume) says how to go on: restore the whole cluster, recover this volume with"
    " `semel recover`, or pass over the batches that are damaged."
)


def check(
    folders: Annotated[
        list[Path],
        typer.Argument(
            parser=path,
            metavar="FOLDER…",
            help="Data folders of stopped instances, or the folder of `semel up`.",
            show_default=False,
        ),
    ],
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Read the volumes of stopped instances from end to end, and name the damage.

    The command checks all pages of the file, the checksums of records, snapshots and batches, and
    that no record or batch is missing. It changes nothing. Status 1: it found damage, or cannot
    check a folder.
    """
    from semel_local.checking import check as check_folder
    from semel_local.checking import data_folders

    checked = [
        check_folder(data_folder) for folder in folders for data_folder in data_folders(folder)
    ]
    show(output_format, [_document(each) for each in checked], *_tables(checked))
    for each in checked:
        if each.is_unfinished:
            note(
                f"{each.folder} holds nothing yet: the first start of its service ended too early."
                " The next start makes the journal."
            )
    if any(each.damage for each in checked):
        note(_ADVICE)
        raise typer.Exit(EXIT_DAMAGED)


def _document(checked: "Checked") -> Json:
    return {
        "folder": checked.folder,
        "service": checked.service,
        "entries": checked.entries,
        "is_unfinished": checked.is_unfinished,
        "damage": [
            {"file": each.file, "place": each.place, "problem": each.problem}
            for each in checked.damage
        ],
    }


def _tables(checked: Sequence["Checked"]) -> list[Table]:
    volumes = Table(
        headings=("Folder", "Service", "Records and batches", "Damaged places"),
        rows=[(each.folder, each.service, each.entries, len(each.damage)) for each in checked],
    )
    damage = [(each.file, each.place, each.problem) for volume in checked for each in volume.damage]
    if not damage:
        return [volumes]
    return [volumes, Table(headings=("File", "Place", "What is wrong"), rows=damage)]
