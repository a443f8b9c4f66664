"""`semel recover`: let an older copy of an instance's volume, or an empty one, serve again."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from semel_cli.shared.cluster_choice import BootstrapOption, find_bootstrap
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import find_security, run
from semel_cli.shared.confirmation import confirm
from semel_cli.shared.options import is_on_command_line, not_empty, path, whoami
from semel_cli.shared.output import Facts, Format, FormatOption, examples, note, show

if TYPE_CHECKING:
    from semel_local.layout import ServiceName
    from semel_local.recovery import Recovered, Sources

EXAMPLES = examples(
    "semel recover broker-0 --data /data/broker-0 --reason 'old copy' --dry-run",
    "semel recover broker-1 --data /data/broker-1 --lost --reason 'disk failed'",
    "semel recover broker-0 --data ./cluster/broker-0 --reason 'older copy' \\",
    "    --metadata-from coordinator-0=./cluster/coordinator-0   # of `semel up`",
    "semel recover coordinator-0 --data /data/coordinator-0 \\",
    "    --reason 'disk failed' \\",
    "    --metadata-from broker-0=/data/broker-0 \\",
    "    --metadata-from group-coordinator-0=/data/group-coordinator-0",
)

LOSSES = {
    "broker": (
        "Lost: the records that were appended after the copy was made, and the transactions that"
        " were open then (they abort). Partitions go on above all offsets that were ever given;"
        " readers pass over the gap."
    ),
    "group-coordinator": (
        "Lost: the offsets that groups committed after the copy was made. Their consumers read the"
        " same records again: reset the groups first if that must not happen."
    ),
    "coordinator": (
        "Lost: each commit after the copy was made that some participant has not heard of (it"
        " aborts there), and how transactions ended. All producers are fenced. Joint transactions"
        " need a reset."
    ),
}


def recover(  # noqa: PLR0913, PLR0917 - each option is an argument
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As in broker-0.", show_default=False)
    ],
    data: Annotated[
        Path,
        typer.Option(
            parser=path,
            metavar="FOLDER",
            help="The data folder of the instance, which is stopped.",
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why; is kept with the volume.", callback=not_empty)],
    operator: Annotated[
        str, typer.Option(help="Who; is kept with the volume.", show_default="user@host")
    ] = "",
    lost: Annotated[
        bool, typer.Option("--lost", help="There is no copy: the folder is empty.")
    ] = False,
    metadata_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="If the whole cluster is stopped: an instance, and its data folder, to read the"
            " topics from. Give coordinator-0, or, to recover coordinator-0, all other instances.",
            show_default=False,
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Go on without the folders of other instances.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the effect, but raise no number.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Let a stopped instance serve again on an older copy of its volume, or on an empty one.

    The controller refuses such a volume, because the volume has forgotten numbers that were given
    out since. The command raises all of them above every number that can have been given, once. See
    docs/run/recovery.md for the losses.
    """
    service = _parse(name)
    sources = _sources(context, service, metadata_from or (), bootstrap, partial=partial)
    if not (yes or dry_run):
        note(LOSSES[service.role])
        confirm(f"Is {name} stopped, and is this what you want?")
    recovered = run(
        _recover(
            service,
            data,
            _Request(reason, operator or whoami(), lost=lost, dry_run=dry_run),
            sources,
        )
    )
    _show(output_format, name, recovered, dry_run=dry_run)


class _Request(NamedTuple):
    reason: str
    operator: str
    lost: bool
    dry_run: bool


async def _recover(
    service: "ServiceName", folder: Path, request: _Request, sources: "Sources"
) -> "Recovered":
    from semel_local.recovery import Recovery, recover

    recovery = Recovery(
        instance_id=service.instance_id,
        operator=request.operator,
        reason=request.reason,
        now_ms=time.time_ns() // 1_000_000,
        dry_run=request.dry_run,
        lost=request.lost,
    )
    return await recover(service, folder, recovery, sources)


def _parse(name: str) -> "ServiceName":
    from semel_local.layout import ServiceName

    try:
        return ServiceName.parse(name)
    except ValueError:
        raise typer.BadParameter(
            f"{name!r} is no instance: coordinator-0, broker-0, group-coordinator-0 and so on are"
        ) from None


def _sources(
    context: typer.Context,
    service: "ServiceName",
    folders: Sequence[str],
    bootstrap: str | None,
    *,
    partial: bool,
) -> "Sources":
    """Find who tells what the cluster looks like. Raises UsageError."""
    from semel_local.layout import CONTROLLER
    from semel_local.recovery import Sources

    if folders or service == CONTROLLER:
        if is_on_command_line(context, "bootstrap"):
            raise UsageError("--bootstrap has no use: the cluster is stopped, and folders tell")
        told = dict(map(_folder, folders))
        if service in told:
            raise UsageError(f"--metadata-from {service}: it is the one that has forgotten")
        return Sources(folders=told, partial=partial)
    if partial:
        raise UsageError("--partial has no use without --metadata-from")
    try:
        address = find_bootstrap(bootstrap)
    except UsageError as error:
        raise UsageError(
            f"{error}; of a stopped one, give --metadata-from {CONTROLLER}=FOLDER"
        ) from None
    return Sources(bootstrap=address, security=find_security(address))


def _folder(given: str) -> "tuple[ServiceName, Path]":
    name, _, folder = given.partition("=")
    if not folder:
        raise UsageError(f"--metadata-from {given!r} is not NAME=FOLDER")
    return _parse(name), Path(folder)


def _show(output_format: Format, name: str, recovered: "Recovered", *, dry_run: bool) -> None:
    note(f"{name} {'would be' if dry_run else 'is'} recovered: it may be started")
    show(
        output_format,
        {
            "name": name,
            "dry_run": dry_run,
            "claim_epoch": recovered.claim_epoch,
            **{key.replace(" ", "_"): value for key, value in recovered.facts.items()},
        },
        Facts({"claim epoch of the copy": recovered.claim_epoch, **recovered.facts}, title=name),
    )
