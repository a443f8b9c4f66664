"""What docs/deploy.md has readers write and apply is what a cluster can run."""

from manifests.rendered import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")


def test_the_back_up_ends_with_everything_started() -> None:
    """A scaled StatefulSet's replicas are not the overlay's to set: apply has to take them back."""
    _, stopped, after = PAGE.partition("--replicas=0\n")
    assert stopped
    started = after.partition("```")[0]
    assert "apply --server-side --force-conflicts -k my-cluster" in started
