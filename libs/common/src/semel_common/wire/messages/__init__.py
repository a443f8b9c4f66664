"""The bytes of messages: the wire format, and the bounds that are checked before parsing."""
