"""Who may do what, and how much: access rules, producer tokens and quotas, in front of handlers."""
