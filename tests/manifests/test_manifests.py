"""Every rule holds for every overlay, and finds the mistakes that it is there for."""

import kubernetes_validate
import pytest
import yaml

from manifests.mutations import MUTATIONS, Mutation
from manifests.rendered import INSTALLED, KUBECTL, ROOT, render
from manifests.rules import RULES
from manifests.schema import NEWEST, OLDEST

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="KUBECTL IS NOT THERE: k8s/ is not checked")


@pytest.mark.parametrize("cluster", INSTALLED)
@pytest.mark.parametrize("rule", RULES)
def test_the_manifests_obey_every_rule(rule: str, cluster: str) -> None:
    assert list(RULES[rule](render(cluster))) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.what)
def test_a_mistake_is_found(mutation: Mutation) -> None:
    objects = render(mutation.cluster)
    mutation.change(objects)
    assert list(RULES[mutation.rule](objects)) != []


def test_every_rule_has_a_mistake_to_find() -> None:
    assert {mutation.rule for mutation in MUTATIONS} == set(RULES)


def test_operators_of_databases_are_not_lost_with_one_node() -> None:
    patch = yaml.safe_load((ROOT / "k8s/components/postgres/operator.yaml").read_text())["spec"]
    pod = patch["template"]["spec"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert patch["replicas"] > 1
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert {each["tolerationSeconds"] for each in pod["tolerations"]} == {0}


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_spark_submit_makes_the_pods_that_the_operator_makes(role: str) -> None:
    pod = yaml.safe_load((ROOT / "k8s" / "pipeline" / "pod.yaml").read_text())
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(pod, version, strict=True)
    application = render("prod").one("SparkApplication", "pizza-income")["spec"]
    operators, (container,) = application[role], pod["spec"]["containers"]
    assert pod["metadata"]["labels"] == operators["labels"]
    assert pod["spec"]["securityContext"] == operators["podSecurityContext"]
    assert container["securityContext"] == operators["securityContext"]
    assert container["env"] == operators["env"]
    assert [
        each for each in container["volumeMounts"] if each not in operators["volumeMounts"]
    ] == []
    assert [each for each in pod["spec"]["volumes"] if each not in application["volumes"]] == []
