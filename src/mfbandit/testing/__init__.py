"""Contracts that a policy or a kind of experiment of your own can be checked against."""

from mfbandit.testing._contract_examples import MakeExperiment
from mfbandit.testing.contract import ContractBroken
from mfbandit.testing.experiment_contract import check_experiment
from mfbandit.testing.policy_contract import check_policy

__all__ = [
    "ContractBroken",
    "MakeExperiment",
    "check_experiment",
    "check_policy",
]
