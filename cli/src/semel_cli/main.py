"""The command `semel` and its subcommands. Each is a module of its own, and imports late."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from semel_cli.cluster import acls, audit, cluster, console, doctor, quotas
from semel_cli.demo import command as demo
from semel_cli.groups import groups, why
from semel_cli.local import check, recover, up
from semel_cli.record_io import consume, produce
from semel_cli.shared.cluster_choice import begin_command_line
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import SecurityOptions, explained, use_security
from semel_cli.shared.output import examples, to_standard_output
from semel_cli.shared.standard_error import use_standard_error
from semel_cli.topics import topics
from semel_cli.transactions import listing

app = typer.Typer(
    name="semel",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A transactional log with Kafka's exactly-once semantics.",
    epilog=examples(
        "semel up                                   # then, in another terminal:",
        "semel topics create greetings",
        "echo hello | semel produce greetings",
        "semel consume greetings --from-beginning",
    ),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"semel {version('semel')}")
        raise typer.Exit


ProxyOption = Annotated[
    bool,
    typer.Option(
        "--use-proxy",
        envvar="SEMEL_USE_PROXY",
        help="Connect by the proxy that http_proxy, https_proxy or grpc_proxy names; it is never"
        " used for addresses of this machine.",
    ),
]


@app.callback()
def semel(  # noqa: PLR0913, PLR0917 - each option is an argument
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
    tls: Annotated[
        bool | None,
        typer.Option(
            "--tls/--no-tls",
            envvar="SEMEL_TLS",
            help="Connect with TLS; by default, if another option of TLS or tokens is given.",
            show_default=False,
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            envvar="SEMEL_TLS_CA",
            help="Certificates (PEM) of the authorities that sign the cluster's.",
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(envvar="SEMEL_TLS_CERT", help="The certificate (PEM) to show."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(envvar="SEMEL_TLS_KEY", help="Its private key (PEM).")
    ] = None,
    tls_server_name: Annotated[
        str | None,
        typer.Option(
            envvar="SEMEL_TLS_SERVER_NAME",
            help="The name in the cluster's certificates, if it is not the host's.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(envvar="SEMEL_TOKEN_FILE", help="A file with the bearer token to show."),
    ] = None,
    use_proxy: ProxyOption = False,
) -> None:
    """Take what holds for every command."""
    del version  # the callback has shown it
    context.with_resource(explained())
    begin_command_line()
    use_security(
        SecurityOptions(
            tls=tls,
            ca=tls_ca,
            certificate=tls_cert,
            key=tls_key,
            server_name=tls_server_name,
            token_file=token_file,
            use_proxy=use_proxy,
        )
    )


app.command(epilog=up.EXAMPLES)(up.up)
app.add_typer(topics.app, name="topics")
app.command(epilog=produce.EXAMPLES)(produce.produce)
app.command(epilog=consume.EXAMPLES)(consume.consume)
app.add_typer(groups.app, name="groups")
app.add_typer(listing.app, name="transactions")
app.add_typer(cluster.app, name="cluster")
app.add_typer(acls.app, name="acls")
app.add_typer(quotas.app, name="quotas")
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(epilog=console.EXAMPLES)(console.console)
app.command(epilog=why.EXAMPLES)(why.why)
app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=check.EXAMPLES)(check.check)
app.command(epilog=recover.EXAMPLES)(recover.recover)
app.add_typer(demo.app, name="demo")


def main() -> None:
    """Run the command line."""
    use_standard_error()
    try:
        with explained(), to_standard_output():
            _run()
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _run() -> None:
    """Run the command line, with the help and the version that no command's context explains."""
    if sys.stdout is None:
        raise CommandError("standard output is closed: there is nowhere to write to")
    try:
        app()
    finally:
        sys.stdout.flush()  # Here, or Python finds out when no code can explain it any more.
