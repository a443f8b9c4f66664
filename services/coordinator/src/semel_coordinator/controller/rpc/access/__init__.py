"""The RPCs about access rules and quotas."""
