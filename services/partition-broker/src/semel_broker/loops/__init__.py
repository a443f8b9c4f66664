"""Background work of the broker: retention, purge, scrub, inquiries and take-overs."""
