"""Every rule holds for every overlay, and finds the mistakes that it is there for."""

import pytest

from manifests.mutations import MUTATIONS, Mutation
from manifests.rendered import INSTALLED, KUBECTL, render
from manifests.rules import RULES

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
