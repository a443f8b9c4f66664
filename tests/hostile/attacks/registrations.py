"""Registrations that claim to know more of the controller's journal than its volume has."""

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import UnaryLine, unary_line
from hostile.stage import Stage
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.wire.methods import DESCRIBE_CLUSTER, METADATA, REGISTER_INSTANCE
from semel_local.layout import Role

ROUNDS = 20
CLAIMS = 50_000
_UNKNOWN = 900
"""A coordinator that was never started: nothing is placed on it."""


async def _made_up_marks(stage: Stage, sent: Sent) -> None:
    """Send them in the name of an instance that is there, and of one that is not."""
    address = stage.target(Role.COORDINATOR).address
    async with unary_line(stage, address, Caller.ADMINISTRATOR) as line:
        described = await _described(line)
        for number in range(ROUNDS):
            for instance_id, epoch in ((0, described.instances[0].claim_epoch), (_UNKNOWN, 1)):
                request = _registration(described.cluster_id, instance_id, epoch)
                request.controller.claim_epoch = 1 << (number + 1)
                request.controller.claim_token = f"made up {number}"
                request.controller.end_offset = 1 << 60
                await _send(line, sent, request)
        request = _registration(described.cluster_id, _UNKNOWN, 1)
        for number in range(1, CLAIMS):
            request.claims.add(claim_epoch=number, claim_token="x", start_offset=number)
        await _send(line, sent, request)
        sent.add(await line.call(METADATA.path, b""))
    sent.expect("OK", "INVALID_REQUEST", "STALE_CLAIM_EPOCH", "CLUSTER_AUTHORIZATION_FAILED")


async def _described(line: UnaryLine) -> cluster.DescribeClusterResponse:
    result, answer = await line.answer(DESCRIBE_CLUSTER.path, b"")
    assert result == "OK", result
    return cluster.DescribeClusterResponse.FromString(answer)


def _registration(
    cluster_id: str, instance_id: int, claim_epoch: int
) -> cluster.RegisterInstanceRequest:
    role = cluster.SERVICE_ROLE_COORDINATOR if instance_id else cluster.SERVICE_ROLE_BROKER
    listener = cluster.AdvertisedListener(name="default", host="attacker.example", port=1)
    return cluster.RegisterInstanceRequest(
        role=role,
        instance_id=instance_id,
        cluster_id=cluster_id,
        claim_epoch=claim_epoch,
        claim_token="made up",
        listeners=[listener],
    )


async def _send(line: UnaryLine, sent: Sent, request: cluster.RegisterInstanceRequest) -> None:
    data = request.SerializeToString()
    sent.add(await line.call(REGISTER_INSTANCE.path, data), len(data))


ATTACKS = (
    Attack(
        name="made-up-marks-of-journals",
        what="An administrator registers instances with made-up marks of the controller journal.",
        rpc="RegisterInstance",
        transport="unary",
        caller=Caller.ADMINISTRATOR,
        run=_made_up_marks,
    ),
)
