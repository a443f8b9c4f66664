"""Pizza orders into a ledger in PostgreSQL and receipts in a topic, every process killed."""
