"""All attacks, in the order in which they run."""

from hostile.attacks import clusters, connections, fuzzing, messages, payloads, quotas

ALL = (
    *messages.ATTACKS,
    *connections.ATTACKS,
    *payloads.ATTACKS,
    *quotas.ATTACKS,
    *clusters.ATTACKS,
    *fuzzing.ATTACKS,
)
