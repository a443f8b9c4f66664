"""The rules that a history is held to, and how a broken one is reported."""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """A rule, by its number; its sentence is in `SENTENCES`."""

    C1 = "C1"
    C2 = "C2"
    C3 = "C3"
    C4 = "C4"
    C5 = "C5"
    C6 = "C6"
    C7 = "C7"
    C8 = "C8"
    C9 = "C9"
    C10 = "C10"
    C11 = "C11"
    C12 = "C12"
    C13 = "C13"
    C14 = "C14"
    C15 = "C15"
    C16 = "C16"
    C17 = "C17"
    C18 = "C18"
    C19 = "C19"
    C20 = "C20"
    C21 = "C21"
    C22 = "C22"
    C23 = "C23"


SENTENCES: dict[Rule, str] = {
    Rule.C1: "No value of an aborted transaction or a refused send is read committed.",
    Rule.C2: "No value is read committed before its transaction's commit was asked for.",
    Rule.C3: "An offset of a partition holds one value, the same for every sender and reader.",
    Rule.C4: "A value is at one offset of one partition.",
    Rule.C5: "No committed value is missing below another that was read.",
    Rule.C6: "Every committed value is read in the end.",
    Rule.C7: "A consumer's polls go forward and leave out nothing that is visible.",
    Rule.C8: "A producer's sends to a partition are stored in the order they were sent in.",
    Rule.C9: "No transactions read each other's values in a circle.",
    Rule.C10: "Of a transaction's values, all are visible or none is.",
    Rule.C11: "A reader that passes a value of an already seen transaction sees that value too.",
    Rule.C12: "Every value that is read was sent.",
    Rule.C13: "A group's offset comes from a committed transaction, and skips no visible record.",
    Rule.C14: "A group consumes a record in one committed transaction, not in two.",
    Rule.C15: "Each consumed record has one derived record, and no other record has any.",
    Rule.C16: "A fenced producer, member or run changes nothing any more.",
    Rule.C17: "A request of one transaction never ends another.",
    Rule.C18: "The last stable offset is within the log, only rises, and is not held for ever.",
    Rule.C19: "All clients that know a transaction's outcome know the same one.",
    Rule.C20: "A value that was acknowledged before a crash, or read, is still there.",
    Rule.C21: "Damaged files are reported, not served.",
    Rule.C22: "No producer has lost the first, the last or a middle part of its records.",
    Rule.C23: "After the last fault, every partition and group goes on in time.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken rule."""

    rule: Rule
    what: str
    """Names the values, offsets and transactions concerned."""
    ops: tuple[int, ...]
    """The operations concerned, in order."""
    excerpt: tuple[str, ...]
    """Their lines in the history, cut where they are long."""

    def __str__(self) -> str:
        return "\n    ".join((f"{self.rule}: {self.what}", *self.excerpt))
