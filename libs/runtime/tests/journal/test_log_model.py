"""The order of steps of an append and of a claim, in all states of a small model."""

import pytest
from log_model import DEFECTS, Model, Violation, explore


def test_no_order_of_steps_loses_an_acknowledged_record() -> None:
    assert explore(Model(), processes=2, appends=2, losses=1) > 1_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_order_of_steps_of_three_processes_loses_an_acknowledged_record() -> None:
    assert explore(Model(), processes=3, appends=2, losses=2) > 50_000


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_each_defect_of_the_model_is_found(defect: str) -> None:
    with pytest.raises(Violation):
        explore(Model(defect), processes=3, appends=1, losses=1)
