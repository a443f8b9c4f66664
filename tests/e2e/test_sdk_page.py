"""The page of the Python SDK, typed from top to bottom into `python -m asyncio`."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pytest
from documented.pages import ROOT, blocks
from documented.shell import ADDRESS
from mypy import api

from semel_local import LocalCluster

PAGE = "docs/use/sdk.md"
_PRINTS = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
"""The comment of a line has the output of the line."""


def programs() -> list[tuple[int, str]]:
    return [(first, text) for first, language, text in blocks(PAGE) if language == "python"]


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_the_page_can_be_typed_from_top_to_bottom(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(programs()) >= 10
    names: dict[str, object] = {}
    async with LocalCluster() as cluster:
        for first, text in programs():
            await typed(first, text.replace(ADDRESS, cluster.bootstrap), names)
            assert capsys.readouterr().out.splitlines() == _PRINTS.findall(text), text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_type_checker_finds_nothing_on_the_page(tmp_path: Path) -> None:
    """The check allows handlers without annotations, which are shorter to type at the prompt."""
    program = "\n".join(text for _, text in programs())
    (tmp_path / "page.py").write_text(
        f"async def main() -> None:\n{textwrap.indent(program, '    ')}", "utf-8"
    )
    config = f"--config-file={ROOT / 'pyproject.toml'}"
    loosened = ("--allow-redefinition", "--allow-untyped-defs")
    found, errors, _ = api.run([config, *loosened, str(tmp_path / "page.py")])
    assert found.startswith("Success"), found + errors


async def typed(first: int, text: str, names: dict[str, object]) -> None:
    """Run lines of the page, which may await, with the names that were there before."""
    code = compile("\n" * (first - 1) + text, PAGE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaitable = eval(code, names)  # noqa: S307 - it is the page that is tested
    if inspect.isawaitable(awaitable):
        await awaitable
