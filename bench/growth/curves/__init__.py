"""All curves, by name."""

from bench.growth.curve import Curve
from bench.growth.curves.aborted import ABORTED
from bench.growth.curves.brokers import BROKERS
from bench.growth.curves.groups import GROUPS
from bench.growth.curves.history import HISTORY
from bench.growth.curves.journal import JOURNAL
from bench.growth.curves.log_size import LOG_SIZE
from bench.growth.curves.open_transactions import OPEN_TRANSACTIONS
from bench.growth.curves.participants import PARTICIPANTS
from bench.growth.curves.partitions import PARTITIONS
from bench.growth.curves.registered import REGISTERED
from bench.growth.curves.transactional_ids import TRANSACTIONAL_IDS

CURVES: dict[str, Curve] = {
    curve.name: curve
    for curve in (
        PARTITIONS,
        TRANSACTIONAL_IDS,
        OPEN_TRANSACTIONS,
        ABORTED,
        LOG_SIZE,
        BROKERS,
        REGISTERED,
        PARTICIPANTS,
        JOURNAL,
        GROUPS,
        HISTORY,
    )
}
