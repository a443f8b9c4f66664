"""How every command runs: finds its cluster, waits for its work, and ends with one sentence.

Exit statuses: 0 done; 1 the request failed; 2 the command line is wrong; 130 interrupted.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from semel_cli.options import not_empty
from semel_cli.output import OutputError, note
from semel_cli.running import read_running

if TYPE_CHECKING:
    from aiosemel import Security, SemelClient

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
API_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 5_000

T = TypeVar("T")

BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="SEMEL_BOOTSTRAP",
        metavar="HOST:PORT",
        help="A coordinator of the cluster; by default, of the last `semel up` that still runs.",
        callback=not_empty,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityOptions:
    """What stands before the command: how to connect."""

    tls: bool | None = None
    """None: as soon as another of these is given."""
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    server_name: str | None = None
    token_file: Path | None = None


_security = ContextVar("security", default=SecurityOptions())  # noqa: B039 - it is frozen


def use_security(options: SecurityOptions) -> None:
    """Let this command connect so."""
    _security.set(options)


class UsageError(Exception):
    """The command line asks for something that cannot be."""


class CommandError(Exception):
    """The command cannot do what was asked; the message is for its user."""


def with_client(
    bootstrap: str | None, work: "Callable[[SemelClient], Coroutine[None, None, T]]"
) -> T:
    """Do some work with a client of the cluster; see ``run``."""

    async def connected() -> T:
        from aiosemel import ClientOptions, SemelClient
        from semel_cli.tracing import tracer_provider

        options = ClientOptions(
            request_timeout_ms=REQUEST_TIMEOUT_MS, default_api_timeout_ms=API_TIMEOUT_MS
        )
        address = find_bootstrap(bootstrap)
        security = find_security(address)
        async with (
            tracer_provider() as provider,
            SemelClient(
                address, options=options, security=security, tracer_provider=provider
            ) as client,
        ):
            return await work(client)

    return run(connected())


def find_bootstrap(given: str | None) -> str:
    """Return the address of the cluster to work with. Raises UsageError."""
    if given is not None:
        return given
    known = read_running()
    alive = [each for each in known if each.is_alive]
    if len(alive) > 1 and sys.stderr.isatty():
        note(f"{len(alive)} clusters run here: this is the last one, in {alive[0].folder}")
    if alive:
        return alive[0].bootstrap
    if known:
        raise UsageError(
            f"the cluster of `semel up` in {known[0].folder} is not running any more: start it"
            " again, or name another one with --bootstrap HOST:PORT or SEMEL_BOOTSTRAP"
        )
    raise UsageError(
        "which cluster? Start one here with `semel up`, or name one with --bootstrap HOST:PORT"
        " or SEMEL_BOOTSTRAP"
    )


def find_security(address: str) -> "Security | None":
    """Return how to connect: as the options say, or as `semel up` does if the address is its."""
    from aiosemel import Security

    given = _security.get()
    if given != SecurityOptions():
        return Security(
            tls=given.tls is not False,
            ssl_ca_location=given.ca,
            ssl_certificate_location=given.certificate,
            ssl_key_location=given.key,
            ssl_server_name=given.server_name,
            token=given.token_file,
        )
    listener = re.sub(r"^localhost(?=:\d+$)", "127.0.0.1", address)
    for each in read_running():
        if each.bootstrap == listener and each.is_alive and each.tls_ca:
            return Security(
                ssl_ca_location=Path(each.tls_ca),
                ssl_certificate_location=Path(each.tls_cert),
                ssl_key_location=Path(each.tls_key),
            )
    return None


def run(work: Coroutine[None, None, T]) -> T:
    """Run a command to its end; Ctrl-C and SIGTERM cancel it."""
    return asyncio.run(_until_terminated(work))


@contextmanager
def explained() -> Iterator[None]:
    """Let what goes wrong in a command become a sentence and an exit status."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:  # Whoever reads has enough.
        _drop_output()
        raise typer.Exit(EXIT_FAILURE) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:
        _explain(error)
        raise


def _explain(error: Exception) -> None:
    """End the command with a sentence, if the error is one that a user can understand.

    Only here is the SDK loaded for its errors: `semel up` has no other need of it.
    """
    from aiosemel.errors import InvalidConfigError, RequestTimedOutError, SemelError
    from semel_local.errors import LocalClusterError

    match error:
        case UsageError() | InvalidConfigError():
            fail(str(error), EXIT_USAGE)
        case RequestTimedOutError():
            fail(f"{error}: is the cluster running, are the address and the options of TLS right?")
        case SemelError() | LocalClusterError() | CommandError():
            fail(str(error))
        case OutputError():
            _drop_output()
            fail(str(error))
        case UnicodeEncodeError(encoding="utf-8"):  # A name, for the wire.
            fail(f"{error.object!r} is no text in UTF-8", EXIT_USAGE)
        case OSError():
            what = error.strerror or str(error)
            fail(f"{what}: {error.filename}" if error.filename else what)
        case _:
            pass  # A defect: whoever reports it needs to see where it is.


def _drop_output() -> None:
    """Let what is still buffered go nowhere, or Python complains that it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(sentence: str, status: int = EXIT_FAILURE) -> NoReturn:
    """End the command with a sentence on standard error."""
    note(f"semel: {sentence}")
    raise typer.Exit(status) from None


async def _until_terminated(work: Awaitable[T]) -> T:
    """Treat SIGTERM as Ctrl-C: cancel, and let the work end in order."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
