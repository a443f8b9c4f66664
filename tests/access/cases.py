"""The requests that the tests send to each RPC, and the permissions that each request needs.

The services obey the table in ``semel_runtime.access.rpc_permissions``. This module lists the same
permissions a second time, by hand, so that the tests find a wrong row of that table.
"""

from access.coordinator_cases import CLUSTER_CASES, COORDINATOR_CASES
from access.participant_cases import BROKER_CASES, GROUP_CASES

CASES = (*COORDINATOR_CASES, *CLUSTER_CASES, *BROKER_CASES, *GROUP_CASES)
