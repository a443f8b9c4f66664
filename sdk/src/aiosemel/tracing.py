"""For applications that trace what they do with records: see docs/traces.md."""

from aiosemel._consumer_spans import links_of

__all__ = ["links_of"]
