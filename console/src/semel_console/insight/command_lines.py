"""Lines for a shell that say the same as a page, or repair what is wrong. No I/O."""

import shlex
from collections.abc import Sequence


def command_line(
    *words: str | int, names: Sequence[str | int] = (), options: Sequence[str | int] = ()
) -> str:
    """Return a line that a shell reads as a command of ``semel``, its names and its options.

    Any text may be a name. One that begins with a dash would be read as an option: then all names
    stand behind ``--``.
    """
    ends = [*names, *options]
    if any(str(each).startswith("-") for each in names):
        ends = [*options, "--", *names]
    return shlex.join(["semel", *map(str, [*words, *ends])])
