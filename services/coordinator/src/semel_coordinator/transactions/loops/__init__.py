"""Background work of transactions: time-outs and the expiry of ids."""
