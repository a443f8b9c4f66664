"""The last lags of the groups that are looked at, for plots over time: few, and in memory."""

from collections import OrderedDict, deque
from weakref import WeakKeyDictionary

from aiosemel import SemelClient
from semel_console.views.group_view import LagSample

GROUPS_MAX = 32
"""Of one user; the group that was looked at least recently is forgotten."""
SAMPLES_MAX = 60


class LagSamples:
    """The last lags of groups, by user: no user sees a sample of another one."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: WeakKeyDictionary[SemelClient, OrderedDict[str, deque[LagSample]]] = (
            WeakKeyDictionary()
        )

    def note(self, user: SemelClient, group_id: str, sample: LagSample) -> tuple[LagSample, ...]:
        """Take a sample, and return the last ones of the group, the newest at the end."""
        groups = self._known.setdefault(user, OrderedDict())
        samples = groups.setdefault(group_id, deque(maxlen=SAMPLES_MAX))
        groups.move_to_end(group_id)
        if len(groups) > GROUPS_MAX:
            groups.popitem(last=False)
        samples.append(sample)
        return tuple(samples)
