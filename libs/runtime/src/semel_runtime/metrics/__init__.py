"""What Prometheus sees of a process. Names and meanings: docs/metrics.md.

What happens often is counted when it happens; what can be looked up (lags, ages, sizes) is looked
up when somebody asks. Without an endpoint there are no metrics, and nothing is counted.
"""

from semel_runtime.metrics.metrics import Metrics

__all__ = ["Metrics"]
