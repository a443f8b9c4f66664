"""The pages: their length, their order, and the numbers of decisions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DECISIONS = sorted((ROOT / "docs" / "internals" / "adr").glob("0*.md"))
STATUS = re.compile(
    r"Status: (accepted|rejected|superseded by \[\d{4}\]\([\w.-]+\)), \d{4}-\d{2}-\d{2}"
    r"(; amended by \[\d{4}\]\([\w.-]+\)( and \[\d{4}\]\([\w.-]+\))*)?\."
)
LINES_MAX = {"README.md": 120, "docs/use/tuning.md": 80}
BENCHMARKS = ROOT / "docs" / "benchmarks"


@pytest.mark.parametrize("page", LINES_MAX)
def test_a_page_stays_short(page: str) -> None:
    assert len((ROOT / page).read_text("utf-8").splitlines()) <= LINES_MAX[page]


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name[:4])
def test_a_decision_has_its_number_a_status_and_its_sections(path: Path) -> None:
    text = path.read_text("utf-8")
    title, _, status = text.splitlines()[:3]
    assert re.fullmatch(rf"# {path.name[:4]} [A-Z].*[^.]", title)
    assert STATUS.fullmatch(status), status
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections[:2] == ["Context", "Decision"]


def test_the_index_has_each_decision_with_its_title_and_status() -> None:
    index = (ROOT / "docs" / "internals" / "adr" / "README.md").read_text("utf-8")
    for path in DECISIONS:
        title, _, status = path.read_text("utf-8").splitlines()[:3]
        start = f"| [{title.removeprefix('# ')}]({path.name}) | "
        row = next(line for line in index.splitlines() if line.startswith(start))
        assert row.split(" | ")[-1].split(",")[0].removesuffix(" |") in status


def test_each_page_of_measurements_has_its_date_and_is_in_the_index() -> None:
    index = (BENCHMARKS / "README.md").read_text("utf-8")
    for path in sorted(BENCHMARKS.glob("*.md")):
        if path.name != "README.md":
            assert re.match(r"\d{4}-\d{2}-\d{2}-", path.name)
            assert f"({path.name})" in index
