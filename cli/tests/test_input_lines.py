"""Lines of standard input, and inputs that cannot be read."""

import sys
from io import BytesIO, TextIOWrapper

import pytest

from semel_cli.record_io.input_lines import read_lines
from semel_cli.shared.command_errors import CommandError


async def lines() -> list[bytes]:
    return [line async for some in read_lines() for line in some]


async def test_lines_come_without_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"one\r\ntwo\n\nlast")))
    assert await lines() == [b"one", b"two", b"", b"last"]


async def test_an_input_that_is_closed_meanwhile_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = BytesIO(b"one\n")
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(source))
    source.close()
    with pytest.raises(CommandError, match="closed file"):
        await lines()


async def test_a_process_without_an_input_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CommandError, match="there is none"):
        await lines()
