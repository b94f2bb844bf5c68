from dataclasses import dataclass

import pytest

from mfbandit import MFUCB, UCB, Bounded, Fidelities, SubGaussian
from mfbandit.experiment.serialization import (
    fidelities_from_record,
    fidelities_record,
    policy_from_record,
    policy_record,
)
from tests.support.problems import SubExponential


@pytest.mark.parametrize("policy", [UCB(rho=1.5), MFUCB()])
def test_policies_there_and_back(policy):
    assert policy_from_record(policy_record(policy)) == policy


@pytest.mark.parametrize(
    "fidelities",
    [
        Fidelities([1]),
        Fidelities([1, 2]),
        Fidelities([1, 2], [0.5, 0], [Bounded(-1, 2), SubGaussian(0.1)], ["cheap", "true"]),
    ],
)
def test_fidelities_there_and_back(fidelities):
    assert fidelities_from_record(fidelities_record(fidelities)) == fidelities


@dataclass(frozen=True)
class Mine(UCB):
    pass


def test_what_is_not_the_packages_own_has_to_be_passed_in():
    with pytest.raises(ValueError, match=r"policy must be one of .*'UCB'.*, got '.*Mine'; one of your own"):
        policy_from_record(policy_record(Mine()))
    record = fidelities_record(Fidelities([1], concentration=SubExponential()))
    with pytest.raises(ValueError, match=r"concentration must be one of .*, got '.*SubExponential'; one of your own"):
        fidelities_from_record(record)


def test_unknown_fields():
    with pytest.raises(ValueError, match=r"policy UCB does not have the fields \['zeta'\]"):
        policy_from_record({"name": "UCB", "zeta": 1})


def test_a_class_with_the_name_of_one_of_ours_is_not_ours():
    class UCB(Mine):
        pass

    with pytest.raises(ValueError, match="one of your own has to be passed in"):
        policy_from_record(policy_record(UCB()))


def test_no_costs():
    with pytest.raises(ValueError, match="fidelities must have costs, got"):
        fidelities_from_record({})


def test_not_a_record():
    with pytest.raises(ValueError, match="policy must be one of"):
        policy_from_record("UCB")  # type: ignore[arg-type]
