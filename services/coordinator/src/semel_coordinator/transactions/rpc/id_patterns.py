"""Regular expressions of users, matched in time that is bounded by their length.

Theory of operation. Python's own engine goes back and forth: a short pattern can keep it busy for
hours, and the whole process with it. This one runs all ways at once (Thompson, 1968): it keeps the
set of states in which the pattern may be, and looks at each character of the name once; where a
character leads from such a set is remembered for the next name. The price is what such engines
never have: references to groups, and looking around.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import assert_never

from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import PATTERN_LENGTH_MAX
from semel_runtime.server.form_checks import require_name, shown

_DEPTH_MAX = 20
"""Groups within groups."""
_STATES_MAX = 100
"""Of one pattern, with its counted repetitions written out."""
_MOVES_MAX = 10_000
"""Remembered ways from one set of states to the next."""

Fits = Callable[[str], bool]
"""Whether a character is one of those meant."""


@dataclass(frozen=True, slots=True)
class _One:
    """One character."""

    fits: Fits


@dataclass(frozen=True, slots=True)
class _Sequence:
    """One after the other."""

    parts: tuple["_Node", ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of them."""

    parts: tuple["_Node", ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    """Again and again."""

    part: "_Node"
    minimum: int
    maximum: int | None
    """None: any number."""


_Node = _One | _Sequence | _Choice | _Repeat


def pattern(field: str, text: str) -> Callable[[str], bool] | None:
    """Compile a pattern that whole names must match; None if it is empty.

    Raises InvalidRequestError naming the field, what is wrong, and where.
    """
    if not text:
        return None
    require_name(field, text, length_max=PATTERN_LENGTH_MAX)
    try:
        return _Program(_Parser(text).parse()).matches
    except _PatternError as error:
        raise InvalidRequestError(
            f"{field} {shown(text)!r} cannot be used: {error}", field=field
        ) from error


class _PatternError(Exception):
    """What is wrong with a pattern."""


class _Parser:
    """Reads a pattern, from left to right."""

    def __init__(self, text: str) -> None:
        # A pattern matches whole names: what says so changes nothing.
        self._text = text.removeprefix("^")
        if self._text.endswith("$") and not self._text.endswith("\\$"):
            self._text = self._text[:-1]
        self._at = 0
        self._depth = 0

    def parse(self) -> _Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._error("a ) without its (")
        return node

    def _choice(self) -> _Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return _Choice(tuple(parts)) if len(parts) > 1 else parts[0]

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeat(self._atom()))
        return _Sequence(tuple(parts))

    def _repeat(self, part: _Node) -> _Node:
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")  # How greedy it is makes no difference to whole names.
        if self._next() in ("*", "+", "?", "{"):
            raise self._error("a repetition of a repetition")
        return _Repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        if not self._take("{"):
            return None
        least, comma, most = self._until("}").partition(",")
        minimum = self._count(least)
        maximum = (self._count(most) if most else None) if comma else minimum
        if maximum is not None and maximum < minimum:
            raise self._error(f"a repetition from {minimum} to {maximum} times")
        return minimum, maximum

    def _count(self, text: str) -> int:
        if not text.isascii() or not text.isdecimal() or int(text) > _STATES_MAX:
            raise self._error(f"a repetition {text!r} times")
        return int(text)

    def _atom(self) -> _Node:
        if self._take("("):
            return self._group()
        if self._take("["):
            return _One(self._class())
        if self._take("."):
            return _One(lambda character: character != "\n")
        if self._take("\\"):
            return _One(self._escape())
        if self._next() in "*+?{^$":
            raise self._error(f"a {self._next()} in this place")
        return _One(_is(self._advance()))

    def _group(self) -> _Node:
        if self._take("?") and not self._take(":"):
            raise self._error("a group of a special kind")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._error(f"more than {_DEPTH_MAX} groups within one another")
        node = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise self._error("a ( without its )")
        return node

    def _class(self) -> Fits:
        negated = self._take("^")
        members = [self._member()]
        while not self._take("]"):
            members.append(self._member())
        return _none_of(members) if negated else _any_of(members)

    def _member(self) -> Fits:
        if self._take("\\"):
            return self._escape()
        first = self._advance()
        if self._next() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return _is(first)
        self._advance()
        last = self._advance()
        if last == "\\" or last < first:
            raise self._error(f"a range from {first} to {last}")
        return _between(first, last)

    def _escape(self) -> Fits:
        letter = self._advance()
        if letter.lower() in _KINDS:
            kind = _KINDS[letter.lower()]
            return _none_of([kind]) if letter.isupper() else kind
        if letter.isalnum():
            raise self._error(f"\\{letter}")
        return _is(letter)

    # -- characters ----------------------------------------------------------------------------

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, wanted: str) -> bool:
        found = self._next() == wanted
        self._at += found
        return found

    def _advance(self) -> str:
        if self._at == len(self._text):
            raise self._error("its end")
        self._at += 1
        return self._text[self._at - 1]

    def _until(self, end: str) -> str:
        start = self._at
        while self._advance() != end:
            pass
        return self._text[start : self._at - 1]

    def _error(self, what: str) -> _PatternError:
        return _PatternError(f"{what}, at character {self._at}")


_KINDS: dict[str, Fits] = {
    "d": str.isdecimal,
    "s": str.isspace,
    "w": lambda character: character.isalnum() or character == "_",
}


def _is(wanted: str) -> Fits:
    return lambda character: character == wanted


def _between(first: str, last: str) -> Fits:
    return lambda character: first <= character <= last


def _any_of(members: list[Fits]) -> Fits:
    return lambda character: any(fits(character) for fits in members)


def _none_of(members: list[Fits]) -> Fits:
    return lambda character: not any(fits(character) for fits in members)


_END = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """The states in which a pattern may be after some characters, and the ways from there."""

    states: frozenset[int]
    moves: dict[str, "_Place"] = field(default_factory=dict, compare=False)


class _Program:
    """A pattern as states; a state waits for a character, or leads on to others by itself."""

    def __init__(self, node: _Node) -> None:
        self._fits: list[Fits | None] = [None]
        self._onward: list[tuple[int, ...]] = [()]
        self._steps = 0
        self._start = _Place(self._closure([self._compile(node, _END)]))
        self._places: dict[frozenset[int], _Place] = {}
        self._moves = 0

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        place = self._start
        for character in name:
            place = place.moves.get(character) or self._move(place, character)
            if not place.states:
                return False
        return _END in place.states

    def _move(self, place: _Place, character: str) -> _Place:
        if self._moves == _MOVES_MAX:
            self._moves = 0
            self._places.clear()
            self._start.moves.clear()
        self._moves += 1
        states = self._closure(
            self._onward[state][0]
            for state in place.states
            if (fits := self._fits[state]) is not None and fits(character)
        )
        following = self._places.setdefault(states, _Place(states))
        place.moves[character] = following
        return following

    def _closure(self, states: Iterable[int]) -> frozenset[int]:
        """Follow all that lead on by themselves."""
        found: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in found:
                found.add(state)
                if self._fits[state] is None:
                    waiting += self._onward[state]
        return frozenset(found)

    def _compile(self, node: _Node, after: int) -> int:
        """Add the states of a node that leads on to `after`; return its first one."""
        self._steps += 1
        if self._steps > 10 * _STATES_MAX:
            raise _PatternError(f"more than {10 * _STATES_MAX} parts")
        match node:
            case _One(fits):
                return self._add(fits, (after,))
            case _Sequence(parts):
                for part in reversed(parts):
                    after = self._compile(part, after)
                return after
            case _Choice(parts):
                return self._add(None, tuple(self._compile(part, after) for part in parts))
            case _Repeat(part, minimum, maximum):
                return self._compile_repeat(part, minimum, maximum, after)
            case _:
                assert_never(node)

    def _compile_repeat(self, part: _Node, minimum: int, maximum: int | None, after: int) -> int:
        if maximum is None:
            again = self._add(None, ())
            self._onward[again] = (self._compile(part, again), after)
            first = again
        else:
            first = after
            for _ in range(maximum - minimum):
                first = self._add(None, (self._compile(part, first), after))
        for _ in range(minimum):
            first = self._compile(part, first)
        return first

    def _add(self, fits: Fits | None, onward: tuple[int, ...]) -> int:
        if len(self._fits) == _STATES_MAX:
            raise _PatternError(f"more than {_STATES_MAX} states")
        self._fits.append(fits)
        self._onward.append(onward)
        return len(self._fits) - 1
