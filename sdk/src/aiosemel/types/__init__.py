"""Values that users pass to the SDK and get from it: offsets, records, descriptions, outcomes."""
