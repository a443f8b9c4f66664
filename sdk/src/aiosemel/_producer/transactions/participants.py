"""The participants of one transaction: where its records and offsets went, and what arrived."""

from semel_common.ids import Participant


class Participants:
    """Each participant with a sent request, and whether it has acknowledged all its requests."""

    __slots__ = ("_offset_sequences", "acknowledged", "sent")

    def __init__(self) -> None:
        self.sent: dict[Participant, None] = {}
        """Every participant with a sent request, in the order of the first one."""
        self.acknowledged: dict[Participant, None] = {}
        """Every participant that has acknowledged all its requests."""
        self._offset_sequences: dict[str, int] = {}

    def next_offset_sequence(self, group_id: str) -> int:
        """Return the base sequence of one more commit of offsets to a group."""
        sequence = self._offset_sequences.get(group_id, 0)
        self._offset_sequences[group_id] = sequence + 1
        return sequence

    def sent_to(self, participant: Participant) -> bool:
        """Note one more request; returns whether the participant is new in this transaction."""
        if participant in self.sent:
            self.acknowledged.pop(participant, None)
            return False
        self.sent[participant] = None
        return True

    def acknowledged_by(self, participant: Participant) -> None:
        """Note that a participant has acknowledged all its requests."""
        assert participant in self.sent, participant
        self.acknowledged[participant] = None

    def unacknowledged(self) -> list[Participant]:
        """Return the participants with a request that has no acknowledgement yet."""
        if len(self.acknowledged) == len(self.sent):
            return []
        return [each for each in self.sent if each not in self.acknowledged]
