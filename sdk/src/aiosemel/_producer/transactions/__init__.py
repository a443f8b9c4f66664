"""Transactions of a producer. ``transaction_manager`` is a pure machine."""
