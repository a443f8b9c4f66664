"""Authorization, producer tokens and quotas, over real services that know their callers."""
