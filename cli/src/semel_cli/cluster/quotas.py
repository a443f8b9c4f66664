"""`semel quotas`: how much each user may use."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import not_empty
from semel_cli.shared.output import Format, FormatOption, Table, examples, note, show

if TYPE_CHECKING:
    from aiosemel import ClientQuota, SemelClient

LIMITS = ("producer_byte_rate", "consumer_byte_rate", "request_rate")
_EVERYBODY = "(everybody else)"

app = typer.Typer(
    no_args_is_help=True,
    help="How much each user may use, of each service instance by itself.",
    epilog=examples(
        "semel quotas set --user reports --consumer-byte-rate 10000000 --dry-run",
        "semel quotas list",
    ),
)

UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", "-u", metavar="NAME", help="One user.", callback=not_empty, show_default=False
    ),
]
DefaultOption = Annotated[
    bool, typer.Option("--default", help="All users without limits of their own.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check and show, change nothing.")]
ProducedOption = Annotated[
    float | None,
    typer.Option(help="Bytes per second that come with requests.", show_default=False),
]
ConsumedOption = Annotated[
    float | None,
    typer.Option(help="Bytes per second that go out with answers.", show_default=False),
]
RequestsOption = Annotated[
    float | None, typer.Option(help="Requests per second.", show_default=False)
]


@app.command(name="set", epilog=examples("semel quotas set --default --request-rate 1000"))
def set_(
    user: UserOption = None,
    default: DefaultOption = False,
    producer_byte_rate: ProducedOption = None,
    consumer_byte_rate: ConsumedOption = None,
    request_rate: RequestsOption = None,
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Set limits of a user; the other limits stay as they are."""
    given = zip(LIMITS, (producer_byte_rate, consumer_byte_rate, request_rate), strict=True)
    limits = {name: value for name, value in given if value is not None}
    _check_user(user, default)
    if not limits:
        raise UsageError(
            "which limit? Give --producer-byte-rate, --consumer-byte-rate or --request-rate"
        )

    async def work(client: "SemelClient") -> "ClientQuota":
        access = client.admin().access
        return await access.alter_client_quotas(user, set_limits=limits, validate_only=dry_run)

    changed = with_client(bootstrap, work, changes=not dry_run)
    _show_change(output_format, changed, dry_run)


@app.command(epilog=examples("semel quotas remove --user reports --dry-run"))
def remove(
    user: UserOption = None,
    default: DefaultOption = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this limit; by default all.", show_default=False),
    ] = None,
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Remove limits of a user."""
    _check_user(user, default)

    async def work(client: "SemelClient") -> "ClientQuota":
        return await client.admin().access.alter_client_quotas(
            user, remove=limit or LIMITS, validate_only=dry_run
        )

    changed = with_client(bootstrap, work, changes=not dry_run)
    _show_change(output_format, changed, dry_run)


@app.command(name="list", epilog=examples("semel quotas list"))
def list_(output_format: FormatOption = Format.TEXT, bootstrap: BootstrapOption = None) -> None:
    """List the limits of all users that have any."""

    async def work(client: "SemelClient") -> "list[ClientQuota]":
        return await client.admin().access.describe_client_quotas()

    _show(output_format, with_client(bootstrap, work))


def _check_user(user: str | None, default: bool) -> None:
    if (user is not None) is default:
        raise UsageError("whose limits? Give --user NAME, or --default")


def _show_change(output_format: Format, quota: "ClientQuota", dry_run: bool) -> None:
    whose = quota.user or "everybody else"
    note(f"limits of {whose} {'would be' if dry_run else 'are'} changed")
    _show(output_format, [quota] if quota.limits else [])


def _show(output_format: Format, quotas: "list[ClientQuota]") -> None:
    show(
        output_format,
        [{"user": quota.user, "limits": dict(quota.limits)} for quota in quotas],
        Table(
            headings=("User", "Limit", "Rate"),
            rows=[
                (quota.user or _EVERYBODY, name, f"{value:.12g}")
                for quota in quotas
                for name, value in quota.limits.items()
            ],
            empty="No user is limited.",
        ),
    )
