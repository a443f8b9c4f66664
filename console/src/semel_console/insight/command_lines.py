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
    return shell_line("semel", *map(str, [*words, *ends]))


def shell_line(*words: str) -> str:
    """Return a line that a shell reads as these words.

    Escapes stand for characters that a person cannot see, and that a terminal obeys: bash, zsh and
    ksh read them within ``$'…'``. No word of a command can have a NUL.
    """
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escape, word))}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
