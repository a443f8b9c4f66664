"""Access rules, producer tokens and quotas, in front of handlers."""
