"""Commands on a cluster: `semel cluster`, `semel doctor`, `semel acls` and `semel quotas`."""
