"""The relay of an outbox: from the application's table into topics, exactly once."""
