"""Quotas that no service could work with."""

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import unary_line
from hostile.stage import Stage
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.wire.methods import ALTER_CLIENT_QUOTAS, METADATA
from semel_local.layout import Role

VALUES = (1e-320, 5e-324, 0.001, 0.0, -1.0, 1e308, float("inf"), float("nan"))
RATES = ("request_rate", "producer_byte_rate", "consumer_byte_rate")


async def _tiny_quotas(stage: Stage, sent: Sent) -> None:
    """Set each as a quota of all users, and take it back: the maker must still be heard."""
    address = stage.target(Role.COORDINATOR).address
    async with unary_line(stage, address, Caller.ADMINISTRATOR) as line:
        for name in RATES:
            for value in VALUES:
                for change in (
                    quotas.ClientQuotaChange(set={name: value}),
                    quotas.ClientQuotaChange(remove=[name]),
                ):
                    request = quotas.AlterClientQuotasRequest(changes=[change])
                    data = request.SerializeToString()
                    sent.add(await line.call(ALTER_CLIENT_QUOTAS.path, data), len(data))
                    sent.add(await line.call(METADATA.path, b""))
    sent.expect("OK", "INVALID_REQUEST", "INVALID_CONFIG")


ATTACKS = (
    Attack(
        name="tiny-quotas",
        what="An administrator sets quotas that would lock out every user, and takes them back.",
        rpc="AlterClientQuotas",
        transport="unary",
        caller=Caller.ADMINISTRATOR,
        run=_tiny_quotas,
    ),
)
