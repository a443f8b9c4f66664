"""For applications that trace: see docs/run/traces.md.

``open_telemetry`` needs the extra ``otlp``; an application that has set up OpenTelemetry by itself
has no need of it.
"""

from aiosemel._consumer.consumer_spans import links_of
from semel_common.telemetry.span_export import Telemetry, open_telemetry

__all__ = ["Telemetry", "links_of", "open_telemetry"]
