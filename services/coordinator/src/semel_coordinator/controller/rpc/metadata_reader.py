"""Reads of this instance's copy of the metadata.

The controller's own copy shows the controller's decisions. So one path serves all coordinators.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from semel_common.errors import CoordinatorNotAvailableError
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result
from semel_runtime.runner import Runner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MetadataReader:
    """Reads the copy of the metadata, once all records before the question are durable."""

    runner: Runner[CoordinatorRecord]
    cluster: ClusterCopy

    async def read(self, question: Callable[[], T]) -> T:
        """Answer a question from the copy."""
        return await self.runner.run(lambda: Result(question()))

    def image(self) -> ClusterImage:
        """Return the copy; raises CoordinatorNotAvailableError before the controller sent it."""
        image = self.cluster.image
        if image is None:
            raise CoordinatorNotAvailableError(
                "this coordinator has not heard from the controller yet"
            )
        return image
