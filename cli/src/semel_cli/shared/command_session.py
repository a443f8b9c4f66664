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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from semel_cli.local.running_clusters import read_running
from semel_cli.shared.cluster_choice import Purpose, find_bootstrap
from semel_cli.shared.command_errors import CommandError, UsageError
from semel_cli.shared.library_warnings import warnings_shown
from semel_cli.shared.output import OutputError, note, to_standard_output
from semel_common.stop_signals import heeded_signals

if TYPE_CHECKING:
    from aiosemel import Security, SemelClient

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
API_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 5_000

T = TypeVar("T")


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
    use_proxy: bool = False


_security = ContextVar("security", default=SecurityOptions())  # noqa: B039 - it is frozen


def use_security(options: SecurityOptions) -> None:
    """Let this command connect so."""
    _security.set(options)


def with_client(
    bootstrap: str | None,
    work: "Callable[[SemelClient], Coroutine[None, None, T]]",
    *,
    changes: bool = False,
) -> T:
    """Do some work with a client of the cluster; see ``run``.

    ``changes``: the work changes something there, so its user is told which cluster it is.
    """
    address = find_bootstrap(bootstrap, Purpose.CHANGE if changes else Purpose.READ)

    async def connected() -> T:
        from aiosemel import ClientOptions, SemelClient
        from semel_cli.shared.command_tracing import tracer_provider

        options = ClientOptions(
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
            use_proxy=_security.get().use_proxy,
        )
        security = find_security(address)
        async with (
            tracer_provider() as provider,
            SemelClient(
                address, options=options, security=security, tracer_provider=provider
            ) as client,
        ):
            return await work(client)

    return run(connected())


def find_security(address: str) -> "Security | None":
    """Return how to connect: as the options say, or as `semel up` does if the address is its."""
    from aiosemel import Security

    given = _security.get()
    if replace(given, use_proxy=False) != SecurityOptions():
        return Security(
            tls=given.tls is not False,
            ssl_ca_location=given.ca,
            ssl_certificate_location=given.certificate,
            ssl_key_location=given.key,
            ssl_server_name=given.server_name,
            token=given.token_file,
        )
    listener = re.sub(r"^localhost(?=:\d+$)", "127.0.0.1", address)
    for cluster in read_running():
        if cluster.bootstrap == listener and cluster.is_alive and cluster.tls_ca:
            return Security(
                ssl_ca_location=Path(cluster.tls_ca),
                ssl_certificate_location=Path(cluster.tls_cert),
                ssl_key_location=Path(cluster.tls_key),
            )
    return None


def run(work: Coroutine[None, None, T]) -> T:
    """Run a command to its end; Ctrl-C, SIGTERM and SIGHUP cancel it. Shows warnings of the SDK."""
    with warnings_shown():
        return asyncio.run(_until_terminated(work))


@contextmanager
def explained() -> Iterator[None]:
    """Let what goes wrong in a command become a sentence and an exit status."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:  # The reader has enough.
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
    from aiosemel.errors import InvalidConfigError, SemelError
    from semel_local.errors import LocalClusterError

    match error:
        case UsageError() | InvalidConfigError():
            fail(str(error), EXIT_USAGE)
        case SemelError() | LocalClusterError() | CommandError():
            fail(str(error))
        case OutputError():
            _drop_output()
            fail(str(error))
        case UnicodeEncodeError(encoding="utf-8"):  # A name, for the wire.
            fail(f"{error.object!r} is no text in UTF-8", EXIT_USAGE)
        case OSError():
            _check_output()
            what = error.strerror or str(error)
            fail(f"{what}: {error.filename}" if error.filename else what)
        case _:
            pass  # A defect: its report needs the place.


def _check_output() -> None:
    """End the command if standard output is what failed: it still keeps what it did not take."""
    try:
        with to_standard_output():
            sys.stdout.flush()
    except OutputError as error:
        _drop_output()
        fail(str(error))


def _drop_output() -> None:
    """Let what is still buffered go nowhere, or Python complains that it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(sentence: str, status: int = EXIT_FAILURE) -> NoReturn:
    """End the command with a sentence on standard error."""
    note(f"semel: {sentence}")
    raise typer.Exit(status) from None


async def _until_terminated(work: Awaitable[T]) -> T:
    """Treat SIGTERM and SIGHUP as Ctrl-C: cancel, and let the work end in order."""
    task = asyncio.current_task()
    assert task is not None
    for number in set(heeded_signals()) - {signal.SIGINT}:  # That is for asyncio.run.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await work
