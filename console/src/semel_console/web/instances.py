"""The names of instances by their addresses: errors name addresses, and people think in names."""

import re
import time

from aiosemel import Admin, ClusterDescription
from aiosemel.errors import InconsistentClusterIdError, SemelError
from semel_console.views.blocks import Missing

_AGE_MAX_S = 30.0
_REPLACED = (
    "Another cluster has taken the place of the one that this console shows. End the console and"
    " start it again."
)


class Instances:
    """The names of a cluster's instances by their addresses, as last heard."""

    def __init__(self) -> None:
        """Know no name yet."""
        self._names: dict[str, str] = {}
        self._learned_s = float("-inf")

    async def refresh(self, admin: Admin) -> None:
        """Ask for the instances, if that was long ago; without an answer, the old names hold."""
        if time.monotonic() - self._learned_s < _AGE_MAX_S:
            return
        self._learned_s = time.monotonic()
        try:
            self.learn(await admin.describe_cluster())
        except SemelError:
            return  # The page says so where it asks for more than names.

    def learn(self, described: ClusterDescription) -> None:
        """Take the names from a description of the cluster."""
        for instance in described.instances:
            name = f"{instance.role}-{instance.instance_id}"
            self._names[f"{instance.host}:{instance.port}"] = name

    def name_of(self, error: SemelError) -> str:
        """Return the instance that an error is about; empty: none that is known."""
        return self._names.get(str(error.details.get("address", "")), "")

    def explain(self, what: str, error: SemelError) -> Missing:
        """Return which part of a page is missing, and the instance that did not answer."""
        if isinstance(error, InconsistentClusterIdError):
            return Missing(what=what, why=_REPLACED)
        name = self.name_of(error)
        if name:
            return Missing(what=what, why=f"{name} does not answer: {error.message}")
        return Missing(what=what, why=self._with_names(error.message))

    def _with_names(self, sentence: str) -> str:
        """Put the name of an instance behind each address of one."""
        for address, name in self._names.items():
            sentence = re.sub(rf"{re.escape(address)}(?!\d)", rf"{address} ({name})", sentence)
        return sentence
