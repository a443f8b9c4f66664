"""Takes the cluster's metadata, and forgets the offsets of topics that are gone."""

from functools import partial

import structlog

from semel_group.loops.bounded_steps import RECORDS_PER_STEP, through_groups
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.journal import Journal
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)


class MetadataTaker:
    """Gives each new image to the machine."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, journal: Journal) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._journal = journal

    async def take(self, image: ClusterImage) -> None:
        """Take an image. The first one of a process also finishes the work of the last process."""
        await self._journal.set_cluster_id(image.cluster_id)
        if await self._runner.run(partial(self._machine.update_cluster, image), privileged=True):
            log.info("metadata applied", version=image.version, topics=len(image.topics))
        await self._remove_deleted_topics()

    async def _remove_deleted_topics(self) -> None:
        decide = partial(self._machine.deletion.remove_deleted_topics, offsets_max=RECORDS_PER_STEP)
        removed = await through_groups(self._runner, self._machine.groups.group_ids(), decide)
        if removed:
            log.info("offsets of deleted topics removed", offsets=removed)
