"""The RPCs by which operators look at transactions and end them."""
