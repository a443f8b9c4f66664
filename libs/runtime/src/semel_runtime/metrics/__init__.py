"""What Prometheus sees of a process. Names and meanings: docs/reference/metrics.md.

Frequent events are counted when they happen; lags, ages and sizes are looked up at each scrape.
Without an endpoint there are no metrics, and nothing is counted.
"""

from semel_runtime.metrics.registry import Metrics

__all__ = ["Metrics"]
