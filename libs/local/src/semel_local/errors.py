"""What can go wrong with a local cluster: one sentence that says what to do."""


class LocalClusterError(Exception):
    """A local cluster cannot do what was asked; the message is a sentence for its user."""


class FolderError(LocalClusterError):
    """The data folder does not fit: in use, of something else, or laid out in another way."""


class PortInUseError(LocalClusterError):
    """The port for clients is in use already."""

    def __init__(self, port: int, user: str = "another program") -> None:
        """Name the port, and the program that uses it."""
        super().__init__(
            f"port {port} is in use by {user}: stop that one, or choose another port"
            f" (--port {port + 100}, or --port 0 for any that is free)"
        )
        self.port = port


class NoPortFreeError(LocalClusterError):
    """No port is left for a service."""


class ServiceFailedError(LocalClusterError):
    """A service ended before it was ready; the message ends with the tail of its log."""


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first failure: the sentence for the user, without the groups around it."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
