"""The partition broker's state machine: pure, made of journal records and of nothing else.

``machine.py`` is the whole: it puts the logs of all partitions and the copy of the cluster's
metadata together. Below it each file knows one thing: ``producer.py`` what a producer may append
next, ``produce.py`` and ``markers.py`` how appends and outcomes are decided, ``log.py`` how one
partition's records change it, ``directory.py`` which logs there are.
"""

from semel_broker.machine.broker_machine import BrokerMachine
from semel_broker.machine.limits import LogLimits

__all__ = ["BrokerMachine", "LogLimits"]
