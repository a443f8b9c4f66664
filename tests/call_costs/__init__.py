"""The cost of a refused call to a service: ``python -m call_costs`` measures real processes.

The caller has a certificate and no rule. For each RPC and transport, the messages are made from the
contract: the most entries that a field may have, more than that, and fields without a meaning. The
table names the message that takes most processor time, and how much memory stays afterwards.
"""
