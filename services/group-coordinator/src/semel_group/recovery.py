"""`semel recover group-coordinator`: makes its older or empty volume fit to serve.

The positions of groups are those of the copy, and no other source knows better: their consumers
read later records again. Members join again, under epochs that no member had.
"""

from functools import partial
from pathlib import Path

from semel_group.journal import GroupSerde
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.records import Record
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.recovery import Recovered, Recovery, recover_volume
from semel_runtime.runner import Runner


async def recover(folder: Path, recovery: Recovery, image: ClusterImage) -> Recovered:
    """Remove all members, and raise the epochs of groups.

    Raises what ``recover_volume`` and ``ClusterCopy.update`` raise.
    """
    machine = GroupMachine(recovery.instance_id, GroupLimits())
    return await recover_volume(
        folder,
        machine,
        GroupSerde(),
        recovery,
        partial(_raise_all, machine, recovery, image),
        service="semel-group",
        cluster_id=image.cluster_id,
    )


async def _raise_all(
    machine: GroupMachine, recovery: Recovery, image: ClusterImage, runner: Runner[Record]
) -> dict[str, int | str]:
    group_ids = machine.groups.group_ids()
    facts: dict[str, int | str] = {
        "groups": len(group_ids),
        "members that join again": len(list(machine.membership.members())),
        "positions": sum(len(list(machine.groups.committed_offsets(each))) for each in group_ids),
    }
    raised = partial(machine.raise_epochs, image, recovery.floor, now_ms=recovery.now_ms)
    decided = raised()
    if not recovery.dry_run:
        await runner.run(lambda: decided, privileged=True)
    return facts
