"""All attacks, in the order in which they run."""

from hostile.attacks import clusters, connections, fuzzing, messages, metrics, payloads, quotas

ALL = (
    *messages.ATTACKS,
    *connections.ATTACKS,
    *metrics.ATTACKS,
    *payloads.ATTACKS,
    *quotas.ATTACKS,
    *clusters.ATTACKS,
    *fuzzing.ATTACKS,
)
