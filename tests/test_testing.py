import inspect
import json
import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest

from mfbandit import MFUCB, UCB, ContractBroken, Experiment, check_experiment, check_policy
from mfbandit.errors import CapitalExhausted, Conflict, NoResults, UnknownPlay
from mfbandit.experiment import AnyExperiment, History
from mfbandit.testing.experiment_contract import RULES


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
    def tell(self, play, reward=None, cost=None, **options):
        with suppress(UnknownPlay):
            super().tell(play, reward, cost, **options)


class Fickle(Faulty):
    def tell(self, play, reward=None, cost=None, **options):
        with suppress(Conflict):
            super().tell(play, reward, cost, **options)


class Numb(Faulty):
    def tell(self, play, reward=None, cost=None, **options):
        super().tell(play, reward if reward is None or math.isfinite(reward) else 0.0, cost, **options)


class Flat(Faulty):
    def tell(self, play, reward=None, cost=None, **options):
        super().tell(play, reward, None if cost is None else abs(cost), **options)


class Averaging(Faulty):
    """Takes the mean of many observations for one."""

    def tell(self, play, reward=None, cost=None, **options):
        super().tell(play, reward, cost, successes=options.get("successes"), trials=options.get("trials"))


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
    def retire_arm(self, arm, **_options):
        with suppress(ValueError):
            super().retire_arm(arm)


class Stubborn(Faulty):
    def restore_arm(self, arm, **_options):
        pass


class FirstComeFirstServed(Faulty):
    """Credits a result to the oldest play that is pending at the same cost."""

    def tell(self, play, reward=None, cost=None, **options):
        same = [other for other in self.pending if other.cost == play.cost]
        super().tell(same[0] if play in same else play, reward, cost, **options)


class Forgetful(Faulty):
    """Leaves pending plays out of account."""

    def _choose(self):
        return self.policy.choose(self.stats.told, self.fidelities)


class ToldOneByOne(Faulty):
    def tell_many(self, results, **_options):
        for result in results:
            self.tell(*result)


class FailedOneByOne(Faulty):
    def fail_many(self, plays, cost=0.0, **_options):
        for play in plays:
            super().fail_many([play], cost)


class AddedOneByOne(Faulty):
    def add_results(self, results, **_options):
        return [play for result in results for play in super(AddedOneByOne, self).add_results([result])]


class RenewsAnything(Faulty):
    def renew_many(self, plays, lease=None, **_options):
        return {play if isinstance(play, str) else play.id: lease for play in plays}


class ForgetsKeys(Faulty):
    def ask(self, n=None, **_):
        return super().ask() if n is None else super().ask(n)


class Twofold(Faulty):
    def with_patience(self, seconds):
        super().with_patience(seconds)
        return Experiment.from_json(self.to_json())


class NeverEnding(Faulty):
    @property
    def state(self):
        return "paused" if self.paused else "running"


class Restless(Faulty):
    def pause(self, **_options):
        pass


class Overdrawn(Faulty):
    def set_capital(self, capital, **_options):
        with suppress(ValueError):
            super().set_capital(capital)


class OneTrackMind(Faulty):
    def set_policy(self, policy, **_options):
        pass


class Prejudiced(Faulty):
    def set_biases(self, biases, **_options):
        if len(biases) != 3 or biases[0] < biases[1]:
            super().set_biases(biases)


class LastFirst(Faulty):
    @property
    def pending(self):
        return super().pending[::-1]


class Outdated(Faulty):
    def status(self):
        return {**super().status(), "spent": 0.0}


class ByNumber(Faulty):
    @property
    def history(self):
        history = super().history
        order = np.argsort(history.arms)
        names = ("arms", "fidelities", "rewards", "costs", "weights", "sums")
        return History(*(getattr(history, name)[order] for name in names))


class OneForAll(Faulty):
    kept = None

    @property
    def stats(self):
        self.kept = self.kept or super().stats
        return self.kept


class Narrow(Faulty):
    def bounds(self, _=None):
        return super().bounds(0.1)


class Speechless(Faulty):
    def note(self, text, **_options):
        pass


class Absentminded(Faulty):
    def to_json(self):
        record = json.loads(super().to_json())
        return json.dumps({**record, "log": record["log"][:-1]})


class Nostalgic(Faulty):
    def forget(self, arm, **_options):
        pass


class Unmoved(Faulty):
    def drift(self):
        return ()


class Merciful(Faulty):
    def restore_arm(self, arm, **_options):
        with suppress(ValueError):
            super().restore_arm(arm)


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
        (Averaging, "counts of many observations must be"),
        (Poor, "capital must pay for one play"),
        (Keen, "best must raise NoResults"),
        (Loyal, "a retired arm must not be recommended|best must be 1, got 0"),
        (Empty, "the last arm must not be retired"),
        (FirstComeFirstServed, "with plays pending, play .* of the policy must be"),
        (Forgetful, "with plays pending, play .* of the policy must be"),
        (Stubborn, "an arm that was set aside must come back when restored"),
        (Merciful, "only an arm set aside must be restored"),
        (ToldOneByOne, "tell_many must keep no result if one is refused"),
        (FailedOneByOne, "fail_many must fail no play if one is refused"),
        (AddedOneByOne, "add_results must keep no result if one is refused"),
        (RenewsAnything, "renewing a settled play must be a Conflict"),
        (ForgetsKeys, "must refuse request keys and leases"),
        (Twofold, "with_patience must give the same experiment"),
        (NeverEnding, "state of a spent capital must be exhausted, got running"),
        (Restless, "a paused experiment must say so"),
        (Overdrawn, "capital must cover what is spent or reserved"),
        (OneTrackMind, r"policy must be UCB\(rho=0.3\)"),
        (Prejudiced, "fidelities must be Fidelities"),
        (LastFirst, "keep no result if one is refused|pending must be"),
        (Outdated, r"spent in the status must be 4.0, got 0.0"),
        (ByNumber, r"arms of the history must be \[1, 0\], got \[0, 1\]"),
        (OneForAll, "who writes into the statistics must not change the experiment"),
        (Narrow, "width|lower in the bounds must be those of all results"),
        (Speechless, "the last event must be Noted"),
        (Absentminded, "the log that was read back must be"),
        (Nostalgic, "a forgotten arm must have no results"),
        (Unmoved, "drift must be"),
    ],
)
def test_faulty_experiments_are_found(kind, message):
    with pytest.raises(ContractBroken, match=message):
        check_experiment(kind)


def test_errors_are_of_the_kinds_that_callers_expect():
    assert issubclass(CapitalExhausted, RuntimeError)
    assert issubclass(Conflict, ValueError)
    assert issubclass(UnknownPlay, LookupError)


def test_every_part_of_the_protocol_is_used_by_a_rule():
    """Whoever adds to the protocol adds a rule."""
    sources = [inspect.getsource(module) for module in {inspect.getmodule(rule) for rule in RULES} if module]
    parts = [name for name in vars(AnyExperiment) if not name.startswith("_")]
    unused = [name for name in parts if not any(f".{name}" in source for source in sources)]
    assert unused == []
