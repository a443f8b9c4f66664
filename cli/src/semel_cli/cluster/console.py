"""`semel console`: the cluster in a browser."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption, Purpose, find_bootstrap
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import find_security, run
from semel_cli.shared.options import not_empty, path, whoami
from semel_cli.shared.output import examples, note
from semel_console.mode import DEFAULT_LISTEN, Mode

if TYPE_CHECKING:
    from aiosemel import Security
    from semel_console.options import ConsoleOptions

EXAMPLES = examples(
    "semel console",
    "semel console --listen 127.0.0.1:0     # any port that is free",
    "semel console --mode operator   # with actions: abort, fence, complete",
    "semel console --listen 0.0.0.0:9080 --sign-in --host console.example.com \\",
    "    --listen-cert cert.pem --listen-key key.pem",
)


def console(  # noqa: PLR0913, PLR0917 - each option is an argument
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where browsers reach the console.")
    ] = DEFAULT_LISTEN,
    mode: Annotated[
        Mode, typer.Option(help="read-only: show; operator: also end transactions.")
    ] = Mode.READ_ONLY,
    sign_in: Annotated[
        bool,
        typer.Option(
            "--sign-in", help="Ask each user for a bearer token, and act with its rights alone."
        ),
    ] = False,
    listen_cert: Annotated[
        Path | None,
        typer.Option(parser=path, help="The certificate (PEM) to show browsers."),
    ] = None,
    listen_key: Annotated[
        Path | None, typer.Option(parser=path, help="Its private key (PEM).")
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which browsers reach the console; may be given more than once.",
            show_default="this machine's",
        ),
    ] = None,
    jaeger: Annotated[
        str | None, typer.Option(metavar="URL", callback=not_empty, help="Where traces are shown.")
    ] = None,
    ends_with_parent: Annotated[
        bool, typer.Option(hidden=True, help="End when the process that started it ends.")
    ] = False,
    bootstrap: BootstrapOption = None,
) -> None:
    """Show the cluster in a browser: transactions, topics, groups, and what doctor finds.

    Until Ctrl-C. The console has no rights of its own: without --sign-in, it has the credentials
    of this command line, and listens on this machine only.
    """
    from semel_console.options import ConsoleOptions, Listen

    address = find_bootstrap(bootstrap, Purpose.READ)
    run(
        serve_console(
            ConsoleOptions(
                bootstrap=address,
                listen=Listen.parse(listen),
                mode=mode,
                operator="console" if sign_in else whoami(),
                asks_for_tokens=sign_in,
                certificate=listen_cert,
                key=listen_key,
                hosts=frozenset(host or ()),
                jaeger=jaeger or "",
            ),
            ends_with_parent=ends_with_parent,
        )
    )


async def serve_console(options: "ConsoleOptions", *, ends_with_parent: bool) -> None:
    """Serve a console until it is to end, and say where it is."""
    parent = os.getppid()
    from semel_console.serving import ListenError, listening, serve, url_of

    try:
        listener = listening(options.listen)
    except ListenError as error:
        raise CommandError(str(error)) from error
    security_of = _security_of(options)
    note(f"Console: {url_of(options, listener)} ({options.mode}). Ctrl-C stops it.")
    await serve(
        options,
        security_of,
        listener,
        lambda: not ends_with_parent or os.getppid() == parent,
    )


def _security_of(options: "ConsoleOptions") -> "Callable[[str | None], Security | None]":
    from aiosemel import Security

    own = find_security(options.bootstrap)

    def security_of(token: str | None) -> Security | None:
        if token is None:
            return own
        return replace(own or Security(tls=False), token=token)

    return security_of
