"""Ask which play to make, tell what came of it: an experiment in memory."""

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from mfbandit import events
from mfbandit.arrays import FloatArray, IntArray
from mfbandit.capital import limit
from mfbandit.confidence import Bounds, bounds_table
from mfbandit.errors import CapitalExhausted, Conflict, NoActiveArms, NoResults, UnknownPlay
from mfbandit.events import ArmAdded, ArmRestored, ArmRetired, ArmSetAside, Asked, Event, Failed, Told
from mfbandit.fidelities import Fidelities
from mfbandit.ledger import Ledger
from mfbandit.policies import Policy
from mfbandit.policies.protocol import Remembers
from mfbandit.stats import Play, Stats
from mfbandit.values import cost as checked_cost
from mfbandit.values import number, positive, whole
from mfbandit.wire import fidelities_from_record, fidelities_record, policy_from_record, policy_record

FAILURES_IN_A_ROW = 3
FORMAT = 1


@dataclass(frozen=True, eq=False)
class History:
    """The results of an experiment in the order in which they were told; arrays of shape (N,)."""

    arms: IntArray
    fidelities: IntArray
    rewards: FloatArray
    costs: FloatArray


class Experiment:
    r"""An experiment in memory: it asks for plays by a policy, and learns from what it is told.

    With one play at a time this is the paper's algorithm, play for play. Plays can also be asked for ahead of
    results, for many workers, and told in any order.

    Args:
        policy: the rule that picks plays.
        arms: the options: their names, or how many there are.
        fidelities: costs, biases and noise of each fidelity.
        capital: what all plays together may cost; None is unlimited.

    >>> from mfbandit import MFUCB, SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))
    >>> exp = Experiment(MFUCB(), arms=["ad-a", "ad-b"], fidelities=fid, capital=100)
    >>> truth = {"ad-a": 0.2, "ad-b": 0.8}
    >>> for play in exp.plays():
    ...     exp.tell(play, reward=truth[play.label])
    >>> exp.best(), exp.spent
    (1, 100.0)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        arms: int | Sequence[str],
        fidelities: Fidelities,
        capital: float | None = None,
    ) -> None:
        check_is_policy(policy)
        if not isinstance(fidelities, Fidelities):
            raise ValueError(f"fidelities must be a Fidelities, got {fidelities!r}")
        labels = _labels(arms)
        self._policy = policy
        # Found out once: asking whether an object has a protocol takes as long as a play.
        self._remember = policy.remember if isinstance(policy, Remembers) else None
        self._fidelities = fidelities
        self._ledger = Ledger(fidelities, labels)
        # Asking once on trial shows at once that a policy lacks something, such as biases.
        start = self._ledger.stats
        checked_choice(policy, start, fidelities)
        self._capital = None if capital is None else checked_capital(capital, policy, fidelities, start)
        self._id = secrets.token_hex(6)
        self._first_labels = tuple(labels)
        self._log: list[Event] = []

    def __repr__(self) -> str:
        results = len(self._ledger.plays) - len(self._ledger.pending)
        return (
            f"<Experiment {type(self._policy).__name__}, {len(self._ledger.labels)} arms, "
            f"{len(self._fidelities)} fidelities, {results} plays settled, {len(self._ledger.pending)} pending, "
            f"spent {self.spent:g} of {self._capital}>"
        )

    # What it is made of

    @property
    def policy(self) -> Policy:
        """The rule that picks plays."""
        return self._policy

    @property
    def fidelities(self) -> Fidelities:
        """Costs, biases and noise of each fidelity."""
        return self._fidelities

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included; an arm's index is its place here."""
        return tuple(self._ledger.labels)

    @property
    def capital(self) -> float | None:
        """Λ, what all plays together may cost; None is unlimited."""
        return self._capital

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(self._log)

    # What is known now

    @property
    def stats(self) -> Stats:
        """What was learned so far: a copy that later results do not change."""
        return self._ledger.stats.copy()

    @property
    def spent(self) -> float:
        """The cost of all told plays, and of failed ones that cost something."""
        return self._ledger.spent

    @property
    def reserved(self) -> float:
        """The cost of the plays under way."""
        return self._ledger.reserved

    @property
    def pending(self) -> tuple[Play, ...]:
        """The plays asked for and neither told nor failed, in the order of asking."""
        return tuple(self._play(number) for number in self._ledger.pending)

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that were retired."""
        return tuple(sorted(self._ledger.retired))

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The arms that failed three times in a row; not asked for or recommended until ``restore_arm``."""
        return tuple(sorted(self._ledger.aside))

    @property
    def history(self) -> History:
        """The results told so far, for :func:`~mfbandit.regret` and for analysis.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> exp.history.rewards.tolist()
        [0.5]
        """
        told = [event for event in self._log if isinstance(event, Told)]
        plays = [self._ledger.plays[event.play] for event in told]
        return History(
            np.array([play.arm for play in plays], dtype=np.int64),
            np.array([play.fidelity for play in plays], dtype=np.int64),
            np.array([event.reward for event in told], dtype=np.float64),
            np.array([event.cost for event in told], dtype=np.float64),
        )

    def best(self) -> int:
        """The arm that the policy would recommend now.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.best()
        Traceback (most recent call last):
        mfbandit.errors.NoResults: best() needs at least one result of an active arm, and there is none yet
        """
        stats = self._ledger.stats
        if not (stats.counts.any(axis=0) & stats.active).any():
            raise NoResults("best() needs at least one result of an active arm, and there is none yet")
        return int(self._policy.recommend(stats, self._fidelities))

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone.

        Args:
            rho: exploration parameter ρ of the widths; the policy's own by default, else 2.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> print(exp.bounds())
        arm  fidelity  plays    mean   width    lower   upper
        a    0             1  0.5000  0.8326  -0.3326  1.3326
        b    0             0       -       -        -       -
        """
        used = positive("rho", getattr(self._policy, "rho", 2.0) if rho is None else rho)
        return bounds_table(self._ledger.stats, self._fidelities, used, self.arms)

    # The verbs

    @overload
    def ask(self) -> Play: ...
    @overload
    def ask(self, n: int) -> list[Play]: ...

    def ask(self, n: int | None = None) -> Play | list[Play]:
        """The next play to make, or the next ``n``.

        ``ask(n)`` equals n asks in a row and returns those that fit into the capital. Whatever was asked for is
        in ``pending`` until it is told or failed.

        Raises:
            CapitalExhausted: the next play does not fit. One that is pending may still fail or turn out
                cheaper, and so make room.
            NoActiveArms: every arm is retired or set aside.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=3, fidelities=Fidelities([1], concentration=Bounded()), capital=2)
        >>> [play.arm for play in exp.ask(8)]
        [0, 1]
        """
        if n is None:
            return self._ask_one()
        if whole("n", n) < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        plays = [self._ask_one()]
        with suppress(CapitalExhausted):
            while len(plays) < n:
                plays.append(self._ask_one())
        return plays

    def plays(self) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital.

        Raises:
            NoActiveArms: every arm is retired or set aside.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), capital=5)
        >>> for play in exp.plays():
        ...     exp.tell(play, reward=float(play.arm))
        >>> exp.spent
        5.0
        """
        while True:
            try:
                play = self.ask()
            except CapitalExhausted:
                return
            yield play

    def tell(self, play: Play | str, reward: float, cost: float | None = None) -> None:
        """Take in the result of a play, in any order.

        The same result told again changes nothing.

        Args:
            play: the play, or its id.
            reward: what was observed: finite, and at most 1e150 in size.
            cost: what the play really cost, where that is not the cost of its fidelity.

        Raises:
            UnknownPlay: the play was not asked from this experiment.
            Conflict: the play has another result already, or has failed; the first outcome is kept.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=1, fidelities=Fidelities([1], concentration=Bounded()))
        >>> play = exp.ask()
        >>> exp.tell(play, 0.5, cost=0.75)
        >>> exp.spent
        0.75
        """
        at = self._number(play)
        nominal = self._fidelities.costs[self._ledger.plays[at].fidelity]
        event = Told(at, number("reward", reward), nominal if cost is None else checked_cost(cost))
        if self._is_new(at, event):
            self._add(event)

    def fail(self, play: Play | str, cost: float = 0.0) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics.

        Three failures of an arm in a row, with no result between, set the arm aside.

        Args:
            play: the play, or its id.
            cost: what it cost all the same.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.fail(exp.ask())
        >>> exp.spent, exp.ask().arm
        (0.0, 0)
        """
        at = self._number(play)
        event = Failed(at, checked_cost(cost))
        if not self._is_new(at, event):
            return
        self._add(event)
        arm = self._ledger.plays[at].arm
        if self._ledger.failures[arm] >= FAILURES_IN_A_ROW and arm not in self._ledger.aside:
            self._add(ArmSetAside(arm))

    def add_arm(self, label: str) -> int:
        """A new arm, which will be tried before any other; returns its index.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.add_arm("b")
        1
        """
        _check_label(label)
        if label in self._ledger.index:
            raise ValueError(f"arms must have different names, got {label!r} twice")
        self._add(ArmAdded(label))
        return len(self._ledger.labels) - 1

    def retire_arm(self, arm: int | str) -> None:
        """Stop asking for an arm, by its index or name. It keeps its index and takes late results.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.retire_arm("a")
        >>> exp.ask().label
        'b'
        """
        index = self._arm(arm)
        if index in self._ledger.retired:
            return
        if len(self._ledger.retired) + 1 == len(self._ledger.labels):
            raise ValueError(f"the last arm cannot be retired, got arm {index} ({self._ledger.labels[index]!r})")
        self._add(ArmRetired(index))

    def restore_arm(self, arm: int | str) -> None:
        """Let an arm that was set aside after failures take part again, by its index or name.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> for _ in range(3):
        ...     exp.fail(exp.ask())
        >>> exp.set_aside
        (0,)
        >>> exp.restore_arm("a")
        >>> exp.ask().label
        'a'
        """
        index = self._arm(arm)
        if index not in self._ledger.aside:
            raise ValueError(f"only an arm that was set aside can be restored, got arm {index}, which was not")
        self._add(ArmRestored(index))

    # Keeping it

    def to_json(self) -> str:
        """The whole experiment with its log, to go on later exactly where it stopped.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> play = exp.ask()
        >>> again = Experiment.from_json(exp.to_json())
        >>> again.tell(play, 1.0)
        >>> again.ask().arm
        1
        """
        return json.dumps(
            {
                "format": FORMAT,
                "id": self._id,
                "policy": policy_record(self._policy),
                "fidelities": fidelities_record(self._fidelities),
                "arms": self._first_labels,
                "capital": self._capital,
                "log": [events.to_record(event) for event in self._log],
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(
        cls, text: str, *, policy: Policy | None = None, fidelities: Fidelities | None = None
    ) -> "Experiment":
        """The experiment that :meth:`to_json` wrote.

        Args:
            text: the JSON.
            policy: the policy, where it is one of your own and not the package's.
            fidelities: the fidelities, where their concentration is one of your own.
        """
        record = _record(text)
        given = fidelities or fidelities_from_record(record["fidelities"])
        if list(given.costs) != record["fidelities"].get("costs"):
            raise ValueError(f"fidelities must have the saved costs, got {list(given.costs)}")
        experiment = cls(
            policy or policy_from_record(record["policy"]),
            arms=record["arms"],
            fidelities=given,
            capital=record["capital"],
        )
        experiment._id = record["id"]
        for event in map(events.from_record, record["log"]):
            experiment._ledger.check(event)
            experiment._add(event)
        return experiment

    # How the verbs work

    def _ask_one(self) -> Play:
        arm, fidelity = self._choose()
        cost = self._fidelities.costs[fidelity]
        committed = self._ledger.committed
        if self._capital is not None and committed + cost > limit(self._capital):
            raise CapitalExhausted(
                f"the next play costs {cost:g} (fidelity {fidelity}), and of the capital {self._capital:g} "
                f"only {self._capital - committed:g} is left"
            )
        number = len(self._ledger.plays)
        self._add(Asked(number, arm, fidelity))
        return self._play(number)

    def _choose(self) -> tuple[int, int]:
        stats = self._ledger.stats
        if len(self._ledger.retired | self._ledger.aside) == len(self._ledger.labels):
            raise NoActiveArms(
                f"no arm can be asked for: {len(self._ledger.retired)} retired, {len(self._ledger.aside)} set aside "
                f"after {FAILURES_IN_A_ROW} failures in a row (restore_arm brings those back)"
            )
        return checked_choice(self._policy, stats, self._fidelities)

    def _play(self, number: int) -> Play:
        asked = self._ledger.plays[number]
        cost = self._fidelities.costs[asked.fidelity]
        return Play(f"{self._id}-{number}", asked.arm, asked.fidelity, cost, self._ledger.labels[asked.arm])

    def _number(self, play: Play | str) -> int:
        name = play.id if isinstance(play, Play) else play
        experiment, _, digits = str(name).rpartition("-")
        known = experiment == self._id and digits.isdecimal() and int(digits) < len(self._ledger.plays)
        if not known or (isinstance(play, Play) and not self._asked_for(play, int(digits))):
            raise UnknownPlay(f"a play must have been asked from this experiment, got {play!r}")
        return int(digits)

    def _asked_for(self, play: Play, at: int) -> bool:
        # A copy of this experiment, loaded from its JSON, may have used the same id for another play.
        asked = self._ledger.plays[at]
        return play.arm == asked.arm and play.fidelity == asked.fidelity

    def _is_new(self, number: int, event: Told | Failed) -> bool:
        known = self._ledger.outcomes[number]
        if known is not None and known != event:
            raise Conflict(f"play {self._id}-{number} already has the outcome {known}, got {event}")
        return known is None

    def _arm(self, arm: int | str) -> int:
        labels = self._ledger.labels
        if isinstance(arm, str):
            if arm not in self._ledger.index:
                raise ValueError(f"arm must be the name of an arm, got {arm!r}")
            return self._ledger.index[arm]
        if not 0 <= whole("arm", arm) < len(labels):
            raise ValueError(f"arm must lie in 0 to {len(labels) - 1}, got {arm}")
        return int(arm)

    def _add(self, event: Event) -> None:
        self._ledger.apply(event)
        self._log.append(event)  # before anything that takes its time and could be interrupted
        if self._remember is not None and isinstance(event, Told):
            self._ledger.memory = self._remember(self._ledger.stats, self._fidelities)


def _labels(arms: int | Sequence[str]) -> list[str]:
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        labels = [str(k) for k in range(whole("arms", arms))]
    else:
        labels = list(arms)
    if not labels:
        raise ValueError(f"arms must be at least one, got {arms!r}")
    for label in labels:
        _check_label(label)
    if len(set(labels)) != len(labels):
        (twice, _), *_ = Counter(labels).most_common(1)
        raise ValueError(f"arms must have different names, got {twice!r} twice")
    return labels


def _check_label(label: object) -> None:
    if not isinstance(label, str) or not label:
        raise ValueError(f"arms must be named by text that is not empty, got {label!r}")


def check_is_policy(policy: object) -> None:
    """Refuse what is no policy, such as a policy's class.

    >>> from mfbandit import UCB
    >>> check_is_policy(UCB)
    Traceback (most recent call last):
    ValueError: policy must be an object with choose, index and recommend, got <class 'mfbandit.policies.ucb.UCB'>
    """
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise ValueError(f"policy must be an object with choose, index and recommend, got {policy!r}")


def checked_capital(capital: float, policy: Policy, fidelities: Fidelities, stats: Stats) -> float:
    """A capital that pays for the first play that the policy would make, or an error.

    >>> from mfbandit import UCB, Bounded
    >>> checked_capital(5, UCB(), Fidelities([10], concentration=Bounded()), Stats.empty(1, 3))
    Traceback (most recent call last):
    ValueError: capital must pay for the first play, which costs 10 with UCB, got 5
    """
    _, first = checked_choice(policy, stats, fidelities)
    amount, cost = number("capital", capital), fidelities.costs[first]
    if limit(amount) < cost:
        raise ValueError(
            f"capital must pay for the first play, which costs {cost:g} with {type(policy).__name__}, got {capital}"
        )
    return amount


def checked_choice(policy: Policy, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
    """What a policy chooses, or an error if there is no such arm or fidelity.

    >>> from mfbandit import UCB, Bounded
    >>> checked_choice(UCB(), Stats.empty(1, 3), Fidelities([1], concentration=Bounded()))
    (0, 0)
    """
    choice = policy.choose(stats, fidelities)
    arm, fidelity = whole("a chosen arm", choice[0]), whole("a chosen fidelity", choice[1])
    if not (0 <= arm < len(stats.active) and stats.active[arm] and 0 <= fidelity < len(fidelities)):
        raise ValueError(
            f"a policy must choose an active arm of the {len(stats.active)} and a fidelity of the {len(fidelities)}, "
            f"and {type(policy).__name__} chose arm {arm} at fidelity {fidelity}"
        )
    return arm, fidelity


def _record(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"an experiment's JSON cannot be read: {error}") from None
    needed = {"format", "id", "policy", "fidelities", "arms", "capital", "log"}
    if not isinstance(record, dict) or not needed <= record.keys():
        raise ValueError(f"an experiment's JSON must have {sorted(needed)}")
    if record["format"] != FORMAT:
        raise ValueError(f"an experiment's JSON must have format {FORMAT}, got {record['format']!r}")
    for name, kind in (("id", str), ("policy", dict), ("fidelities", dict), ("arms", list), ("log", list)):
        if not isinstance(record[name], kind):
            raise ValueError(f"an experiment's JSON must have a {kind.__name__} as {name}, got {record[name]!r}")
    return record
