"""All attacks, in the order in which they run."""

from hostile.attacks import connections, fuzzing, lists, messages, payloads, quotas

ALL = (
    *messages.ATTACKS,
    *connections.ATTACKS,
    *payloads.ATTACKS,
    *quotas.ATTACKS,
    *lists.ATTACKS,
    *fuzzing.ATTACKS,
)
