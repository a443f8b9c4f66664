"""The state of the transactions machine: entities, records and indexes. Pure."""
