import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest

from mfbandit import MFUCB, UCB, ContractBroken, Experiment, check_experiment, check_policy
from mfbandit.errors import CapitalExhausted, Conflict, NoResults, UnknownPlay


@pytest.mark.parametrize("policy", [UCB(), UCB(rho=0.1), MFUCB(), MFUCB(rho=10)])
def test_the_packages_own_policies(policy):
    check_policy(policy)


@dataclass(frozen=True)
class Broken(MFUCB):
    how: str = ""

    def choose(self, stats, fidelities):
        arm, fidelity = MFUCB().choose(stats, fidelities)
        if self.how == "range":
            return len(stats.active), fidelity
        if self.how == "retired":
            return int(stats.active.argmin()), fidelity
        if self.how == "moody":
            return arm, int(np.random.default_rng().integers(10**6)) % len(fidelities)
        if self.how == "writes":
            stats.squares[:] += 1
        return arm, fidelity

    def index(self, stats, fidelities):
        index = super().index(stats, fidelities)
        if self.how == "shape":
            return index[:, None]
        return index * np.nan if self.how == "nan" else index

    def recommend(self, stats, fidelities):
        return int(stats.counts.sum(axis=0).argmin()) if self.how == "guess" else super().recommend(stats, fidelities)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("range", "choose must return an arm below 1 and a fidelity below 1"),
        ("retired", "choose must return an active arm"),
        ("moody", "choose must return the same for the same statistics"),
        ("writes", "a policy must not change the statistics, and .* changed squares"),
        ("shape", r"index must have shape \(1,\), got \(1, 1\)"),
        ("nan", "index must not be NaN"),
        ("guess", "recommend must return an active arm with a result"),
    ],
)
def test_broken_policies_are_found(how, message):
    with pytest.raises(ContractBroken, match=message):
        check_policy(Broken(how=how))


class Faulty(Experiment):
    """An experiment without a fault, made as the contract makes it; subclasses have one fault each."""

    def __init__(self, policy, arms, fidelities, capital):
        super().__init__(policy, arms=arms, fidelities=fidelities, capital=capital)


class Expensive(Faulty):
    def _choose(self):
        return super()._choose()[0], len(self.fidelities) - 1


class Thief(Faulty):
    @property
    def spent(self):
        return super().spent + 1


class Stingy(Faulty):
    def ask(self, n=None, **options):
        return super().ask(**options) if n is None else super().ask(n, **options)[:2]


class Wasteful(Faulty):
    def ask(self, n=None, **options):
        if n is None:
            self._state.capital = None
        return super().ask(**options) if n is None else super().ask(n, **options)


class Friendly(Faulty):
    def tell(self, play, reward, cost=None):
        with suppress(UnknownPlay):
            super().tell(play, reward, cost)


class Fickle(Faulty):
    def tell(self, play, reward, cost=None):
        with suppress(Conflict):
            super().tell(play, reward, cost)


class Numb(Faulty):
    def tell(self, play, reward, cost=None):
        super().tell(play, reward if math.isfinite(reward) else 0.0, cost)


class Flat(Faulty):
    def tell(self, play, reward, cost=None):
        super().tell(play, reward, None if cost is None else abs(cost))


class Poor(Faulty):
    def __init__(self, policy, arms, fidelities, capital):
        super().__init__(policy, arms, fidelities, capital and max(capital, 1.0))


class Keen(Faulty):
    def best(self):
        with suppress(NoResults):
            return super().best()
        return 0


class Loyal(Faulty):
    def best(self):
        return 0 if self.retired else super().best()


class Empty(Faulty):
    def retire_arm(self, arm):
        with suppress(ValueError):
            super().retire_arm(arm)


class Stubborn(Faulty):
    def restore_arm(self, arm):
        pass


class FirstComeFirstServed(Faulty):
    """Credits a result to the oldest play that is pending at the same cost."""

    def tell(self, play, reward, cost=None):
        same = [other for other in self.pending if other.cost == play.cost]
        super().tell(same[0] if play in same else play, reward, cost)


class Forgetful(Faulty):
    """Leaves pending plays out of account."""

    def _choose(self):
        return self.policy.choose(self.stats.told, self.fidelities)


def test_the_faultless_one_passes():
    check_experiment(Faulty)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Expensive, "play 0 of MFUCB.* must be"),
        (Thief, "spent must be"),
        (Stingy, "the first plays must be of different arms"),
        (Wasteful, "a pending play must reserve its cost"),
        (Friendly, "a play not asked here must be refused"),
        (Fickle, "another result for the same play must be a Conflict"),
        (Numb, "a reward must be finite"),
        (Flat, "a cost must not be negative"),
        (Poor, "capital must pay for one play"),
        (Keen, "best must raise NoResults"),
        (Loyal, "a retired arm must not be recommended|best must be 1, got 0"),
        (Empty, "the last arm must not be retired"),
        (FirstComeFirstServed, "with plays pending, play .* of the policy must be"),
        (Forgetful, "with plays pending, play .* of the policy must be"),
        (Stubborn, "an arm that was set aside must come back when restored"),
    ],
)
def test_faulty_experiments_are_found(kind, message):
    with pytest.raises(ContractBroken, match=message):
        check_experiment(kind)


def test_errors_are_of_the_kinds_that_callers_expect():
    assert issubclass(CapitalExhausted, RuntimeError)
    assert issubclass(Conflict, ValueError)
    assert issubclass(UnknownPlay, LookupError)
