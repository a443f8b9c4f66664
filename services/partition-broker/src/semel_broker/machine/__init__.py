"""The partition broker's state machine: pure, made of journal records and of nothing else.

``broker_machine.py`` is the whole: it puts the logs of all partitions, the copy of the cluster's
metadata and the parts that decide together. ``log_directory.py`` knows which logs there are;
``log/`` has one partition's log, as its records make it. Each of the other files decides one kind
of call: ``produce.py`` appends, ``markers.py`` outcomes of transactions, and so on.
"""

from semel_broker.machine.broker_machine import BrokerMachine
from semel_broker.machine.limits import LogLimits

__all__ = ["BrokerMachine", "LogLimits"]
