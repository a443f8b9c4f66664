"""A page that lacks the entries of an instance names it, and does not say that all is well."""

from semel_console.views.blocks import Missing, Notice, Page, Section, Tone

AWAY = Missing(what="The list of coordinator-1", why="coordinator-1 does not answer")
WELL = Notice(text="No transaction is prepared.", tone=Tone.GOOD)
LATE = Notice(text="One waits.", tone=Tone.BAD)
PAGE = Page(title="t", command="", sections=(Section(title="", blocks=(WELL, LATE)),))


def test_a_whole_page_stays_as_it_is() -> None:
    assert PAGE.lacking(()) is PAGE


def test_a_page_that_lacks_entries_names_the_instance_first_and_is_sure_of_nothing_good() -> None:
    top, rest = PAGE.lacking([AWAY]).sections
    assert top.blocks[0] is AWAY
    assert [block.tone for block in rest.blocks if isinstance(block, Notice)] == [
        Tone.PLAIN,
        Tone.BAD,
    ]
