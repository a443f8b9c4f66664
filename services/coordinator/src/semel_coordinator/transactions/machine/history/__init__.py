"""The history: the transactions that have ended, and the questions about them."""
