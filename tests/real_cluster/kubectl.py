"""kubectl, as one calls it from a shell."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NAMESPACE = "semel"
DEADLINE_S = 420
"""No call takes longer: a call that waits has a shorter time-out of its own."""


class ClusterError(Exception):
    """The cluster does not do what it should."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Calls ``command`` in the namespace of the manifests."""

    command: tuple[str, ...]
    namespace: str = NAMESPACE

    @classmethod
    def parse(cls, text: str) -> "Kubectl":
        """Read a command as a shell does: a program, perhaps with arguments."""
        return cls(tuple(shlex.split(text)))

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run it; return its output. Raises ClusterError if it fails or warns."""
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}")
        if "Warning:" in done.stderr:
            raise ClusterError(f"kubectl {' '.join(arguments)} warns: {done.stderr}")
        return done.stdout

    def attempt(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it, whatever comes of it. Raises ClusterError if nothing does."""
        line = [*self.command, "--namespace", self.namespace, *arguments]
        try:
            return subprocess.run(
                line, input=stdin, capture_output=True, text=True, check=False, timeout=DEADLINE_S
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"kubectl {' '.join(arguments)} does not end") from error

    def items(self, kind: str, selector: str = "") -> list[Any]:
        """Return objects of a kind, with these labels if any are named."""
        labels = ["--selector", selector] if selector else []
        found: list[Any] = json.loads(self("get", kind, *labels, "--output", "json"))["items"]
        return found

    def kill(self, *pods: str) -> None:
        """Kill pods, and wait until they are gone; others of the same names may be there by then.

        To let ``kubectl delete`` wait has hung, where StatefulSets made new ones at once.
        """
        killed = {_uid(each) for each in self.items("pods") if each["metadata"]["name"] in pods}
        self("delete", "pod", *pods, "--grace-period=1", "--wait=false")
        gone = f"{' '.join(pods)} gone"
        wait_until(gone, lambda: not killed & {_uid(each) for each in self.items("pods")})

    def rolled_out(self, *sets: str, timeout_s: float = 120) -> None:
        """Wait until every instance of these StatefulSets is new and ready."""
        for each in sets:
            self("rollout", "status", f"statefulset/{each}", f"--timeout={timeout_s:g}s")


def wait_until(what: str, condition: Callable[[], bool], timeout_s: float = 120) -> float:
    """Wait for something; return the seconds it took. Raises ClusterError."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise ClusterError(f"not {what} after {timeout_s:g} s")
        time.sleep(0.5)
    return time.monotonic() - began


def _uid(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["uid"])
