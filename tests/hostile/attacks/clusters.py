"""Calls that name another cluster, by ids that no cluster has."""

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import unary_line
from hostile.stage import Stage
from semel_common.wire.cluster_header import CLUSTER_ID
from semel_common.wire.methods import FETCH, METADATA, OPEN_FRAMES, PRODUCE
from semel_local.layout import Role

CLUSTER_IDS = (
    "another",
    "{reason.__class__.__init__.__globals__}",
    "%(cluster_id)s %n ../../etc/passwd",
    "x" * 6_000,
)
TIMES = 25


async def _other_clusters(stage: Stage, sent: Sent) -> None:
    for role, methods in (
        (Role.COORDINATOR, (METADATA, OPEN_FRAMES)),
        (Role.BROKER, (PRODUCE, FETCH, OPEN_FRAMES)),
    ):
        address = stage.target(role).address
        for cluster_id in CLUSTER_IDS:
            named = ((CLUSTER_ID, cluster_id),)
            async with unary_line(stage, address, Caller.WRITER, named) as line:
                for method in methods * TIMES:
                    sent.add(await line.call(method.path, b""))
    sent.expect("INCONSISTENT_CLUSTER_ID")


ATTACKS = (
    Attack(
        name="other-clusters",
        what="A writer names other clusters, by ids that are long or look like templates.",
        rpc="Metadata, Produce, Fetch, OpenFrames",
        transport="unary",
        caller=Caller.WRITER,
        run=_other_clusters,
    ),
)
