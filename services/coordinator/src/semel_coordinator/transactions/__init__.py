"""Transactions: their producers, decisions, and markers to every participant.

The pure part is `machine`; `service` answers requests by it, `markers` tells the participants, and
`sweep` lets time pass.
"""
