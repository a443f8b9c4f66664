"""Joint transactions: one decision for the records of many processes."""
