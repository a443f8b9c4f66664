"""What each RPC is asked in the tests, and what it needs: written down a second time, by hand.

The table in ``semel_runtime.access.needs`` is what services go by. Here is what was meant by it.
"""

from access.coordinator_cases import CLUSTER_CASES, COORDINATOR_CASES
from access.participant_cases import BROKER_CASES, GROUP_CASES

CASES = (*COORDINATOR_CASES, *CLUSTER_CASES, *BROKER_CASES, *GROUP_CASES)
