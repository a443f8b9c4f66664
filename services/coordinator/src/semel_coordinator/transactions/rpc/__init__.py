"""The RPCs of TransactionService."""
