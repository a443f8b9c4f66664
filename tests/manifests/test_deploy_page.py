"""A cluster can run the manifests that docs/run/deploy.md has readers write and apply."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from manifests.rendered import KUBECTL, ROOT, WORKLOADS, Objects, containers, render

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="KUBECTL IS NOT THERE: k8s/ is not checked")

PAGE = (ROOT / "docs" / "run" / "deploy.md").read_text("utf-8")
FOLDERS = dict(
    re.findall(r"^# (my-[\w-]+)/kustomization\.yaml\n((?:.+\n)+)```", PAGE, re.MULTILINE)
)
FIRST_CLUSTER = PAGE.partition("## First cluster\n")[2].partition("\n## ")[0]


def test_what_is_tried_is_a_folder_of_ones_own() -> None:
    assert set(re.findall(r"apply (?:--[\w-]+ )*-k ([\w/-]+)", FIRST_CLUSTER)) == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_its_images_come_from_where_they_were_pushed(folder: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "kustomization.yaml").write_text(FOLDERS[folder])
    line = [str(KUBECTL), "kustomize", str(tmp_path / folder)]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    objects = Objects(list(yaml.safe_load_all(text)))
    assert objects.of(*WORKLOADS)
    images = {container["image"] for _, pod in objects.pods() for container in containers(pod)}
    ours = {image for image in images if "semel-" in image}
    assert ours
    assert [our for our in ours if not our.startswith("registry.example.com/")] == []


def test_pods_by_spark_submit_are_whom_the_operator_makes_them() -> None:
    """Executors without an account of their own would have the driver's, which makes pods."""
    said = re.findall(r"authenticate\.(\w+)\.serviceAccountName=(\S+)", PAGE)
    (pipeline,) = render("prod").of("SparkApplication")
    roles = ("driver", "executor")
    assert said == [(role, pipeline["spec"][role]["serviceAccount"]) for role in roles]


def test_the_back_up_ends_with_everything_started() -> None:
    """A scaled StatefulSet's replicas are not the overlay's to set: apply has to take them back."""
    _, stopped, after = PAGE.partition("--replicas=0\n")
    assert stopped
    started = after.partition("```")[0]
    assert "apply --server-side --force-conflicts -k my-cluster" in started
