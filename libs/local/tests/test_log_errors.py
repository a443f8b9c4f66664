"""What is shown of the log of a service that has ended."""

import sys
from pathlib import Path

import pytest

from semel_local.log_errors import last_error
from semel_local.process import ManagedProcess

INFO = "2026-11-25T23:29:52.85Z [info     ] service ready                  instance=0 service=s"
SENTENCE = "The disk of /data isn't writable. Free some space."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (INFO, ""),
        (
            f'2026-11-25T23:29:52Z [error    ] service cannot run   error="{SENTENCE}" instance=0',
            f"service cannot run: {SENTENCE}",
        ),
        ("2026-11-25T23:29:52Z [error    ] it ends              error=5 n=1", "it ends: 5"),
        ("2026-11-25T23:29:52Z [critical ] it ends              instance=0", "it ends"),
        (
            '{"level": "error", "event": "service cannot run", "error": "no space"}',
            "service cannot run: no space",
        ),
        ('{"level": "info", "event": "service ready"}', ""),
        ("{half a", ""),
        ("Traceback (most recent call last):", ""),
    ],
)
def test_the_sentence_of_an_error_is_found(line: str, expected: str) -> None:
    assert last_error([INFO, line, INFO]) == expected


def test_the_last_error_is_shown() -> None:
    lines = [f"2026-11-25T23:29:52Z [error    ] it fails     error='{n}'" for n in range(3)]
    assert last_error([*lines, INFO]) == "it fails: 2"


async def test_lines_of_earlier_processes_are_not_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("2026-11-25T23:29:52Z [error    ] an old error     instance=0\n" * 20)
    process = ManagedProcess("s", (sys.executable, "-c", "print('s: port: no number')"), log)
    await process.spawn()
    end = process.ended(await process.wait())
    assert str(end) == f"s ended (exit status 0); its log is {log}:\ns: port: no number"
    log.write_text("")
    process = ManagedProcess("s", (sys.executable, "-c", f"print({_line()!r})"), log)
    await process.spawn()
    end = process.ended(await process.wait())
    assert str(end) == f"s ended (exit status 0): it fails: no space\nits log is {log}"


def _line() -> str:
    return "2026-11-25T23:29:52Z [error    ] it fails             error='no space' instance=0"
