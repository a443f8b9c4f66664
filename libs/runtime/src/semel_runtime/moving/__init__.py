"""Moves of partitions, groups and transaction logs: the calls between both leaders.

What the steps are, and why they are safe, is each service's own, in its ``machine/moves.py``. The
new leader asks the old one for its state piece by piece (``pieces.py``), and tells the controller:
again and again, until that knows of it (``take_overs.py``). A partition of groups, and one of the
transaction log, is nothing but a state, given by ``giver.py`` and taken by ``taker.py``; that of a
topic has a log besides, which the broker copies itself.
"""
