"""The command `semel`: a local cluster, topics, records, groups, transactions, the demo."""
