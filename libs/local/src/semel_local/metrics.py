"""Where the services of a local cluster serve their metrics."""

from semel_local.layout import ServiceName
from semel_local.ports import HOST, free_port, port_range
from semel_local.processes import StartOptions


class MetricsPorts:
    """Gives every service a port for its metrics, the same at every start.

    ::

        ports = MetricsPorts()
        cluster = ProcessCluster(folder, start_options=ports.start_options)
    """

    def __init__(self) -> None:
        """Give none yet."""
        self._ports: dict[ServiceName, int] = {}

    def start_options(self, name: ServiceName) -> StartOptions:
        """Return what lets a service serve its metrics. Raises NoPortFreeError."""
        if name not in self._ports:
            self._ports[name] = free_port(port_range(max(self._ports.values(), default=None)))
        return StartOptions(settings={"metrics_listener": f"{HOST}:{self._ports[name]}"})

    def url(self, name: str) -> str:
        """Return where Prometheus finds the metrics of a service that was started."""
        return f"http://{HOST}:{self._ports[ServiceName.parse(name)]}/metrics"
