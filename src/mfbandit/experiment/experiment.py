"""Ask which play to make, tell what came of it: an experiment in memory."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Self, overload

from mfbandit._internal.formatting import plain
from mfbandit._internal.limits import MAX_PLAY_NUMBER_DIGITS
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import flag, number, positive, whole
from mfbandit.core import (
    LEVEL,
    Audit,
    Batch,
    Bounds,
    Counts,
    Fidelities,
    KeptClaims,
    Play,
    Reward,
    Stats,
    audit,
    limit,
    observed,
    refuting,
)
from mfbandit.errors import (
    CapitalExhausted,
    Conflict,
    ExperimentDecided,
    ExperimentPaused,
    InvalidArgument,
    NoActiveArms,
    UnknownPlay,
)
from mfbandit.experiment import events
from mfbandit.experiment.assumptions import Assumptions
from mfbandit.experiment.checks import (
    SavedLabels,
    arm_index,
    check_fidelity_names,
    check_is_policy,
    check_label,
    check_text,
    checked_capital,
    checked_choice,
    checked_labels,
    refuse_in_memory,
    saved_labels,
    with_capital,
)
from mfbandit.experiment.confidence_answer import Confidence, checked_level
from mfbandit.experiment.decisions import Decisions
from mfbandit.experiment.difference_answer import Difference
from mfbandit.experiment.drift_answer import Drift, drift_found, drifts_of, without_drifted
from mfbandit.experiment.events import (
    ArmAdded,
    ArmForgotten,
    ArmNoted,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesSet,
    BiasesWidened,
    BiasRefuted,
    CapitalSet,
    Decided,
    Event,
    Expired,
    Failed,
    FidelitiesSet,
    LeasesExtended,
    Noted,
    Opened,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    SharesSet,
    StopSet,
    TimePassed,
    Told,
    Unchanged,
    told,
)
from mfbandit.experiment.fading import Clock, Fading
from mfbandit.experiment.findings import Findings
from mfbandit.experiment.headline import Headline, headline
from mfbandit.experiment.history import History
from mfbandit.experiment.incarnations import new_incarnation, play_id
from mfbandit.experiment.incidents import incidents_of
from mfbandit.experiment.intervals import bounds_of
from mfbandit.experiment.lift import KeptLift, Lift
from mfbandit.experiment.log_check import check_possible
from mfbandit.experiment.memory import HalfLife, checked_memory, memory_from_record, memory_record
from mfbandit.experiment.protocol import PastResult, Result, Status, plays_until_exhausted
from mfbandit.experiment.recommendation import recommended
from mfbandit.experiment.serialization import (
    FORMAT,
    experiment_record,
    fidelities_from_record,
    fidelities_record,
    policy_from_record,
    policy_record,
)
from mfbandit.experiment.shares import NO_SHARES, Shares, shares_from_record, shares_record
from mfbandit.experiment.state import State, concentrations
from mfbandit.experiment.status import status_of
from mfbandit.experiment.stopping import Sure, checked_rule, checked_stop, decision_text, stop_from_record, stop_record
from mfbandit.policies import MFAuto, Policy, uses_biases

FAILURES_IN_A_ROW = 3
NOTHING_MORE = (None,) * 5
MANY = (Counts, Batch)  # observations; a tuple, as that is looked up faster than a union


class Experiment:
    r"""An experiment in memory: it asks for plays by a policy, and learns from what it is told.

    With one play at a time and :class:`~mfbandit.MFUCB` this is the paper's algorithm, play for play. Plays can also
    be asked for ahead of results, for many workers, and told in any order.

    Args:
        policy: the rule that picks plays; :class:`~mfbandit.MFAuto` by default.
        arms: the options: their names, or how many there are.
        fidelities: costs, biases and noise of each fidelity.
        capital: what all plays together may cost; None is unlimited.
        widen: whether biases that results refute are raised at once, to those that :meth:`audit` suggests.
        stop: when it is sure enough, and hands out no more plays; None is never, unless the policy has a rule of its
            own, as :class:`~mfbandit.MFSure` does.
        control: the arm that others are compared with, by its name or index; :meth:`lift` says by how much the best is
            above it.
        control_share: of the plays at the highest fidelity, for the control.
        least_share: of these plays, for every active arm. Over any stretch of n plays an arm with share s gets at least
            ⌊s·n⌋, whatever the policy chooses; a play that fails or expires is owed again.
        memory: how long results count; None is for ever.

    >>> from mfbandit import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))
    >>> exp = Experiment(arms=["ad-a", "ad-b"], fidelities=fid, capital=100)
    >>> truth = {"ad-a": 0.2, "ad-b": 0.8}
    >>> for play in exp.plays():
    ...     exp.tell(play, reward=truth[play.label])
    >>> exp.best(), exp.spent
    (1, 96.0)
    """

    def __init__(  # noqa: PLR0913 - options with names and defaults
        self,
        policy: Policy | None = None,
        *,
        arms: int | Sequence[str],
        fidelities: Fidelities,
        capital: float | None = None,
        widen: bool = False,
        stop: Sure | None = None,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        memory: HalfLife | None = None,
    ) -> None:
        policy = MFAuto() if policy is None else policy
        check_is_policy(policy)
        if not isinstance(fidelities, Fidelities):
            raise InvalidArgument(f"fidelities must be a Fidelities, got {fidelities!r}")
        if not isinstance(arms, SavedLabels):
            check_fidelity_names(fidelities)
        if fidelities.resume and memory is not None:
            raise InvalidArgument(f"memory must be None where plays resume, got {memory}")
        labels = checked_labels(arms)
        index = None if control is None else arm_index("control", control, labels)
        shares = Shares(index, control_share, least_share)
        shares.check(len(labels))
        self._state = State(
            policy, fidelities, labels, stop=checked_stop(stop), shares=shares, memory=checked_memory(memory)
        )
        # Asking once on trial shows at once that a policy lacks something, such as biases.
        start = self._state.stats
        checked_choice(policy, start, fidelities)
        self._state.capital = None if capital is None else checked_capital(capital, policy, fidelities, start)
        self._assumed = fidelities, Assumptions.of(fidelities)
        self._id = os.urandom(6).hex()
        self._first: dict[str, Any] = {
            "policy": policy_record(policy),
            "fidelities": fidelities_record(fidelities),
            "arms": arms if isinstance(arms, SavedLabels) else saved_labels(self._state.labels),
            "capital": self._state.capital,
        }
        self._widen = flag("widen", widen)
        if widen:  # else left out, as those lack it that were written before there was such a choice
            self._first["widen"] = True
        if stop is not None:
            self._first["stop"] = stop_record(stop)
        if shares != NO_SHARES:
            self._first["shares"] = shares_record(shares)
        if memory is not None:
            self._first["memory"] = memory_record(memory)
        self.clock: Clock = time.time  # by which results fade; a store has its own
        self._log: list[Event] = []
        self._claims = KeptClaims()
        self._decisions = Decisions(self)
        self._kept_lift = KeptLift()
        self._opened: Opened | None = None  # what the next ask says first
        self._latest: tuple[object, int] = (object(), -1)  # the play that was asked for last, and its number

    def __repr__(self) -> str:
        results = len(self._state.plays) - len(self._state.pending)
        return (
            f"<Experiment {type(self._state.policy).__name__}, {len(self._state.labels)} arms, "
            f"{len(self._state.fidelities)} fidelities, {results} plays settled, {len(self._state.pending)} pending, "
            f"spent {plain(self.spent)} of {self._state.capital}>"
        )

    # What it is made of

    @property
    def policy(self) -> Policy:
        """The rule that picks plays."""
        return self._state.policy

    @property
    def fidelities(self) -> Fidelities:
        """Costs, biases and noise of each fidelity."""
        return self._state.fidelities

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included; an arm's index is its place here."""
        return tuple(self._state.labels)

    @property
    def capital(self) -> float | None:
        """Λ, what all plays together may cost; None is unlimited."""
        return self._state.capital

    @property
    def widen(self) -> bool:
        """Whether biases that results refute are raised at once."""
        return self._widen

    @property
    def stop(self) -> Sure | None:
        """The rule for stopping; None: it goes on, unless the policy decides by a rule of its own."""
        return self._state.stop

    @property
    def shares(self) -> Shares:
        """The control, and the shares of arms of the plays at the highest fidelity.

        >>> from mfbandit import UCB, Bounded
        >>> fid = Fidelities([1], concentration=Bounded())
        >>> Experiment(UCB(), arms=["a", "b"], fidelities=fid, control="b", control_share=0.1).shares
        Shares(control=1, control_share=0.1, least_share=0.0)
        """
        return self._state.shares

    @property
    def memory(self) -> HalfLife | None:
        """How long results count; None is for ever."""
        return None if self._state.fading is None else self._state.fading.memory

    @property
    def remembers(self) -> bool:
        """Whether the policy keeps something between results, such as a fitted model."""
        return self._state.remembers

    @property
    def may_stop(self) -> bool:
        """Whether each result may decide it: it is not decided yet, and there is a rule or the policy has one."""
        state = self._state
        return state.decided is None and (state.stop is not None or (state.policy_decides and state.decide is not None))

    @property
    def id(self) -> str:
        """What the ids of its plays begin with; no other experiment has it."""
        return self._id

    @property
    def lease(self) -> float | None:
        """None: in memory a play may take for ever."""
        return None

    @property
    def remote(self) -> bool:
        """False: nothing waits for a service."""
        return False

    @property
    def shared(self) -> bool:
        """False: nobody else can use it at the same time."""
        return False

    @property
    def folded(self) -> State:
        """The state that the log has led to, for stores; everybody else only looks at it."""
        return self._state

    @property
    def definition(self) -> dict[str, Any]:
        """What the experiment began with, ready for JSON; whatever changed later is in the log."""
        return {"id": self._id, **self._first}

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(self._log)

    # What is known now

    @property
    def stats(self) -> Stats:
        """What was learned so far: a copy that later results do not change."""
        return self._state.stats.copy()

    @property
    def spent(self) -> float:
        """The cost of all told plays, and of failed ones that cost something."""
        return self._state.spent

    @property
    def reserved(self) -> float:
        """The cost of the pending plays."""
        return self._state.reserved

    @property
    def pending(self) -> tuple[Play, ...]:
        """The plays asked for and neither told nor failed, in the order of asking."""
        return tuple(self.play(number) for number in self._state.pending)

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that were retired."""
        return tuple(sorted(self._state.retired))

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The arms that failed three times in a row; not asked for or recommended until a result or ``restore_arm``."""
        return tuple(sorted(self._state.aside))

    @property
    def paused(self) -> bool:
        """Whether plays are not handed out for now."""
        return self._state.paused

    @property
    def decided(self) -> Decided | None:
        """What was decided, and how sure it was at that moment; None as long as it goes on.

        It stays when later results lower the confidence: a decision holds at the moment when it is made.
        :meth:`set_stop` goes on.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), stop=Sure(0.9))
        >>> _ = exp.add_results([(0, 0, 1.0, None)] * 6 + [(1, 0, 0.0, None)] * 6)
        >>> exp.decided.arm, round(exp.decided.level, 3), exp.decided.could_lose
        (0, 0.995, 0.0)
        """
        return self._state.decided

    @property
    def state(self) -> str:
        """What ``ask`` would do: "running", "decided", "paused", "exhausted" or "no active arms".

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), capital=1)
        >>> exp.state, exp.ask().arm, exp.state
        ('running', 0, 'exhausted')
        """
        if self._state.decided is not None:
            return "decided"
        if self._state.paused:
            return "paused"
        try:
            self._fitting()
        except CapitalExhausted:
            return "exhausted"
        except NoActiveArms:
            return "no active arms"
        return "running"

    @property
    def refuted(self) -> dict[tuple[int, int], float]:
        """The biases that results refuted, if the policy uses any: what is needed at least, by (fidelity, arm)."""
        return dict(self._state.refuted) if uses_biases(self._state.policy) else {}

    @property
    def incidents(self) -> tuple[str, ...]:
        """Warnings about arms that were set aside, and about spending beyond the capital."""
        return tuple(incidents_of(self._state, FAILURES_IN_A_ROW))

    @property
    def results_at(self) -> list[int]:
        """How many results there are at each fidelity."""
        return [int(count) for count in self._state.results_at]

    @property
    def observations_at(self) -> list[int]:
        """How many observations the results at each fidelity are; one each, unless told with counts or weights."""
        return [int(count) for count in self._state.observations_at]

    @property
    def pending_count(self) -> int:
        """How many plays are pending."""
        return len(self._state.pending)

    @property
    def history(self) -> History:
        """The results told so far, for :func:`~mfbandit.regret` and for analysis.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> exp.history.rewards.tolist()
        [0.5]
        """
        return self._state.plays.results()

    def status(self) -> Status:
        """State, capital, results, pending plays and the best arm so far, as a dictionary for JSON.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.status()["state"]
        'running'
        """
        return status_of(self, events=len(self._log))

    def best(self) -> int:
        """The arm to use if no more plays were made.

        It is what the policy recommends, with two exceptions. Results at a fidelity whose bias is refuted do not count.
        An arm that the highest fidelity has ruled out is never recommended.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.best()
        Traceback (most recent call last):
        mfbandit.errors.NoResults: There is no result of an active arm yet
        """
        return recommended(self._state.policy, self._state.stats, self._state.fidelities, self._refuted_fidelities)

    def headline(self) -> Headline:
        """The best arm so far, whether that is in doubt, and which arm comes next.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> exp.headline()
        Headline(best=0, doubt=None, runner_up=None)
        """
        state = self._state
        return headline(state.policy, state.stats, state.fidelities, self._refuted_fidelities, state.stale)

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone.

        Where noise or biases are not known, they are the policy's own intervals, if it has any; ``kind`` says which.

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
        return bounds_of(self._state.policy, self._state.stats, self._state.fidelities, self.arms, rho)

    def confidence(self, level: float = LEVEL) -> Confidence:
        """How sure it is that :meth:`best` names the best arm, how much could be lost, and which arms may be better.

        It may be looked at after every result. A valid answer is wrong at some time in at most 1 − level of all
        experiments, whatever rule chose the plays.

        Args:
            level: at which rivals and the possible loss are given, strictly between 0 and 1.

        Raises:
            NoResults: no active arm has a result yet.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([(0, 0, 1.0, None)] * 4 + [(1, 0, 0.0, None)] * 4)
        >>> found = exp.confidence()
        >>> found.best, round(found.level, 3), round(found.could_lose, 3), found.rivals
        (0, 0.942, 0.018, (1,))
        """
        return self.findings().confidence(checked_level(level))

    def difference(self, first: int | str, second: int | str, level: float = LEVEL) -> Difference:
        """By how much one arm is better than another, by their indices or names; how sure that is.

        It may be looked at after every result, for whichever arms: a valid answer is wrong for any of them at some time
        in at most 1 − level of all experiments.

        Args:
            first: an arm.
            second: another one.
            level: of the interval, between 0 and 1.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([("a", 0, 1.0, None)] * 20 + [("b", 0, 0.0, None)] * 20)
        >>> print(exp.difference("a", "b").sentence)
        Over 99.9 % sure that a is better than b (valid whenever you look): by 0.64 to 1 at 95 %.
        """
        return self.findings().difference(*self.two_arms(first, second), checked_level(level))

    def lift(self, level: float = LEVEL) -> Lift | None:
        """By how much the best arm so far is above the control, at the highest fidelity.

        If the control is the best so far, it is said of the best of the others. The interval may be looked at after
        every result, as that of :meth:`difference`.

        Args:
            level: of the interval, between 0 and 1.

        >>> from mfbandit import UCB, Rate
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Rate()), control="a")
        >>> _ = exp.add_results([("a", 0, Counts(200, 10_000), None), ("b", 0, Counts(400, 10_000), None)])
        >>> print(exp.lift())
        b is above the control a by 0.764 to 3.28 percentage points (observed 2), 38 % to 164 % of its observed rate,
            at 95 % (valid whenever you look).
        """
        return self._kept_lift.now(checked_level(level), self._state, self.findings)

    def two_arms(self, first: int | str, second: int | str) -> tuple[int, int]:
        """The indices of two arms that are to be compared.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.two_arms("b", 0)
        (1, 0)
        """
        arms = self._arm(first), self._arm(second)
        if arms[0] == arms[1]:
            raise InvalidArgument(f"the arms to compare must be two, got {self._state.labels[arms[0]]!r} twice")
        return arms

    def is_sure(self, rule: Sure) -> bool:
        """Whether it is sure enough by this rule now; :meth:`confidence` says how sure. It changes nothing.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([(0, 0, 1.0, None)] * 8 + [(1, 0, 0.0, None)] * 8)
        >>> exp.is_sure(Sure(0.9)), exp.is_sure(Sure(0.99999))
        (True, False)
        """
        return self._decisions.by_rule(checked_rule(rule)) is not None

    def findings(self) -> Findings:
        """What :meth:`confidence` is computed from: for stores, which compute it while others go on.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> exp.findings().confidence(0.9) == exp.confidence(0.9)
        True
        """
        return Findings.of(self._state, self._claims)

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far; see :mod:`mfbandit.core.audit`.

        It may be looked at after every result: in 99 of 100 experiments no bias that holds is ever refuted. The first
        time that an arm refutes one is an event in the log, if the policy uses biases. Then :meth:`set_biases` should
        raise it; with ``widen=True`` that happens by itself.

        >>> from mfbandit import MFUCB, Bounded
        >>> exp = Experiment(MFUCB(), arms=2, fidelities=Fidelities([1, 10], [0.1, 0], Bounded()))
        >>> exp.audit().alarm
        False
        """
        return audit(without_drifted(self._state.bias_stats, self._state.stale), self._state.fidelities, self.arms)

    def drift(self) -> tuple[Drift, ...]:
        """The means that have changed, by fidelity and arm; see :mod:`mfbandit.core.drift`.

        Each arm is looked at as its results come, at each fidelity whose noise is ``SubGaussian``, ``Bounded`` or
        ``Rate``. In 99 of 100 experiments no mean that stays the same is ever said to have changed. What is found is an
        event in the log, and no claim about that arm is made from then on, until :meth:`forget` begins it anew. Its
        results do not count for the test of the biases: a change is not blamed on them.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([("a", 0, 1.0, None)] * 40 + [("a", 0, 0.0, None)] * 40)
        >>> (found,) = exp.drift()
        >>> found.label, found.since, found.before, round(found.after, 2)
        ('a', 35, 1.0, 0.11)
        """
        return drifts_of(self._state)

    def block_effects(self) -> dict[str, float]:
        """By how much results in each block are above those elsewhere, as far as is known; that is taken out.

        Results that were told without a block are one more, named by empty text. It is empty where there are none.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> for day, rewards in (("monday", (0.2, 0.4)), ("sunday", (0.5, 0.7))):
        ...     for reward in rewards:
        ...         exp.tell(exp.ask(), reward, block=day)
        >>> {day: round(effect, 2) for day, effect in exp.block_effects().items()}
        {'monday': -0.12, 'sunday': 0.12}
        """
        return self._state.block_effects

    # The verbs

    @overload
    def ask(self, *, request_key: str | None = None, lease: float | None = None) -> Play: ...
    @overload
    def ask(self, n: int, *, request_key: str | None = None, lease: float | None = None) -> list[Play]: ...

    def ask(
        self, n: int | None = None, *, request_key: str | None = None, lease: float | None = None
    ) -> Play | list[Play]:
        """The next play to make, or the next ``n``.

        ``ask(n)`` equals n asks in a row and returns those that fit into the capital. Whatever was asked for is
        in ``pending`` until it is told or failed.

        Args:
            n: how many; those that fit into the capital are returned.
            request_key: for experiments in a store or at a service; None in memory.
            lease: for experiments in a store or at a service; None in memory.

        Raises:
            CapitalExhausted: the next play does not fit. One that is pending may still fail or turn out
                cheaper, and so make room.
            NoActiveArms: every arm is retired or set aside.
            ExperimentPaused: the experiment hands out no plays for now.
            ExperimentDecided: it is sure enough by its rule for stopping; :meth:`set_stop` goes on.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=3, fidelities=Fidelities([1], concentration=Bounded()), capital=2)
        >>> [play.arm for play in exp.ask(8)]
        [0, 1]
        """
        if request_key is not None or lease is not None:
            refuse_in_memory(request_key=request_key, lease=lease)
        if n is None:
            return self._ask_one()
        if whole("n", n) < 1:
            raise InvalidArgument(f"n must be at least 1, got {n}")
        plays = [self._ask_one()]
        with suppress(CapitalExhausted):
            while len(plays) < n:
                plays.append(self._ask_one())
        return plays

    def plays(self, until: Sure | None = None) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital, or it is sure enough.

        Args:
            until: how sure it has to be for this loop to end. The experiment's own rule for stopping, if it has one,
                ends the loop as well.

        Raises:
            NoActiveArms: every arm is retired or set aside.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), capital=5)
        >>> for play in exp.plays():
        ...     exp.tell(play, reward=float(play.arm))
        >>> exp.spent
        5.0
        """
        return plays_until_exhausted(self, until)

    def tell(  # noqa: PLR0913 - options with names and defaults
        self,
        play: Play | str,
        reward: Reward | None = None,
        cost: float | None = None,
        *,
        successes: int | None = None,
        trials: int | None = None,
        weight: int | None = None,
        sd: float | None = None,
        block: str | None = None,
        request_key: str | None = None,
    ) -> None:
        """Take in the result of a play, in any order: a reward, or many observations of 0 and 1, or their mean.

        The same result told again changes nothing.

        Args:
            play: the play, or its id.
            reward: what was observed: finite, at most 1e150 in size, and within the range if noise is ``Bounded``.
                With ``weight`` it is the mean of so many observations.
            cost: what the play really cost, where that is not the cost of its fidelity.
            successes: in place of a reward, how many of the ``trials`` were 1; all others were 0.
            trials: how many observations of 0 and 1 there are.
            weight: how many observations ``reward`` is the mean of.
            sd: the sample standard deviation of these observations, if it is known.
            block: the day, hour or machine that it is of. What a block does to all arms alike is taken out, once there
                are two; confidence is an estimate then.
            request_key: for experiments in a store or at a service; None in memory.

        Raises:
            UnknownPlay: the play was not asked from this experiment.
            Conflict: the play has another result already, or has failed; the first outcome is kept.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=1, fidelities=Fidelities([1], concentration=Bounded()))
        >>> play = exp.ask()
        >>> exp.tell(play, 0.5, cost=0.75)
        >>> exp.spent
        0.75
        >>> exp.tell(exp.ask(), successes=37, trials=1000)
        >>> exp.spent, exp.stats.counts.tolist(), exp.stats.sums.tolist()
        (1.75, [[1001]], [[37.5]])
        """
        if request_key is not None:
            refuse_in_memory(request_key=request_key)
        if (successes, trials, weight, sd, block) != NOTHING_MORE:
            reward = observed(reward, successes=successes, trials=trials, weight=weight, sd=sd, block=block)
        event = self._result(play, reward, cost)
        if self._is_new(event):
            self._learn(event)
            self._decide()

    def tell_many(self, results: Iterable[Result], *, request_key: str | None = None) -> None:
        """Take in many results (play, reward, cost or None) at once: all of them, or none if one is refused.

        >>> from mfbandit import UCB, Bounded, Counts
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> first, second = exp.ask(2)
        >>> exp.tell_many([(first, 0.5, None), (second, Counts(37, 1000), None)])
        >>> exp.spent
        2.0
        """
        refuse_in_memory(request_key=request_key)
        news: dict[int, Told] = {}
        for result in results:
            event = self._result(*result)
            if news.setdefault(event.play, event) != event:
                raise Conflict(f"Play {self.play_id(event.play)} was told twice: {news[event.play]} and {event}")
        for event in [event for event in news.values() if self._is_new(event)]:
            self._learn(event)
        self._decide()

    def fail(self, play: Play | str, cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics.

        Three failures of an arm in a row, with no result between, set the arm aside until a result of it comes in, or
        :meth:`restore_arm`.

        Args:
            play: the play, or its id.
            cost: what it cost all the same.
            request_key: for experiments in a store or at a service; None in memory.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.fail(exp.ask())
        >>> exp.spent, exp.ask().arm
        (0.0, 0)
        """
        refuse_in_memory(request_key=request_key)
        self.fail_many([play], cost)

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give many plays up at once: all of them, or none if one is refused; ``cost`` is what each cost all the same.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.fail_many(exp.ask(2), cost=0.5)
        >>> exp.spent, exp.pending
        (1.0, ())
        """
        refuse_in_memory(request_key=request_key)
        paid = checked_cost(cost)
        news = {at: Failed(at, paid) for at in map(self._number, plays)}
        for event in [event for event in news.values() if self._is_new(event)]:
            self._add(event)
            arm = self._state.plays.arms[event.play]
            if self._state.failures[arm] >= FAILURES_IN_A_ROW and arm not in self._state.aside:
                self._add(ArmSetAside(arm))

    def renew(self, play: Play | str, lease: float | None = None, *, request_key: str | None = None) -> float | None:
        """Say that a pending play is still being made: None, as in memory its time never ends.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.renew(exp.ask()) is None
        True
        """
        refuse_in_memory(request_key=request_key)
        (due,) = self.renew_many([play], lease).values()
        return due

    def renew_many(
        self, plays: Iterable[Play | str], lease: float | None = None, *, request_key: str | None = None
    ) -> dict[str, float | None]:
        """Say that pending plays are still being made: all of them, or none if one is refused.

        Raises:
            Conflict: a play is not pending any more.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> list(exp.renew_many(exp.ask(2)).values())
        [None, None]
        """
        refuse_in_memory(request_key=request_key)
        refuse_in_memory(lease=lease)
        numbers = self._renewable(plays)
        for at in numbers:
            self._add(Renewed(at))
        return {self.play_id(at): None for at in numbers}

    def add_results(self, results: Iterable[PastResult], *, request_key: str | None = None) -> list[Play]:
        """Take in results from elsewhere (arm, fidelity, reward, cost or None), as plays already made: a warm start.

        All of them, or none if one is refused. What they cost counts as spent; where that is not wanted, give a cost
        of 0.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([("a", 0, 0.25, None), ("a", 0, 0.75, 0.0)])
        >>> exp.spent, exp.stats.counts.tolist(), exp.ask().label
        (1.0, [[2, 0]], 'b')
        """
        refuse_in_memory(request_key=request_key)
        pairs = self._pairs(results)
        if pairs:
            self._say_opened()
        for asked, result in pairs:
            self._add(asked)
            self._learn(result)
        if self._state.quota is not None and pairs:  # these were not handed out: they are no part of any share
            self._add(SharesSet(shares_record(self._state.shares)))
        self._decide()
        return [self.play(asked.play) for asked, _ in pairs]

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """Add an arm, which will be tried before any other; returns its index.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.add_arm("b")
        1
        """
        refuse_in_memory(request_key=request_key)
        check_label(label)
        if label in self._state.index:
            raise InvalidArgument(f"arms must have different names, got {label!r} twice")
        self._state.shares.check(self._taking_part + 1)
        self._add(ArmAdded(label))
        return len(self._state.labels) - 1

    def retire_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Stop asking for an arm, by its index or name. It keeps its index and takes late results.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.retire_arm("a")
        >>> exp.ask().label
        'b'
        """
        refuse_in_memory(request_key=request_key)
        index = self._arm(arm)
        if index in self._state.retired:
            return
        if len(self._state.retired) + 1 == len(self._state.labels):
            label = self._state.labels[index]
            raise InvalidArgument(f"arm must not be the last one to be retired, got arm {index} ({label!r})")
        if index == self._state.shares.control:
            label = self._state.labels[index]
            raise InvalidArgument(f"arm must not be the control to be retired, got {label!r}; set_shares names another")
        self._add(ArmRetired(index))
        self._decide()

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was retired, or set aside after failures, take part again, by its index or name.

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
        refuse_in_memory(request_key=request_key)
        index = self._arm(arm)
        retired, aside = index in self._state.retired, index in self._state.aside
        if not retired and not aside:
            raise InvalidArgument(f"arm must be one that was retired or set aside, got arm {index}, which was not")
        if retired:
            self._state.shares.check(self._taking_part + 1)
            self._add(ArmReinstated(index))
        if aside:
            self._add(ArmRestored(index))

    def forget(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Begin an arm anew, by its index or name: its results until now do not count any more.

        What was paid stays paid, and the log keeps everything. Results told from now on count, also those of pending
        plays. For claims about the best arm it is a new arm, which needs a little more evidence.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([("a", 0, 1.0, None), ("b", 0, 0.5, None)])
        >>> exp.forget("a")
        >>> exp.stats.counts.tolist(), exp.spent, exp.ask().label
        ([[0, 1]], 2.0, 'a')
        """
        refuse_in_memory(request_key=request_key)
        index = self._arm(arm)
        if self._state.told_stats.counts[:, index].any():
            self._add(ArmForgotten(index))
            self._decide()

    def pause(self, *, request_key: str | None = None) -> None:
        """Hand out no plays until :meth:`resume`; results of pending ones are still taken.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.pause()
        >>> exp.ask()
        Traceback (most recent call last):
        mfbandit.errors.ExperimentPaused: The experiment is paused; resume it to ask for plays
        """
        refuse_in_memory(request_key=request_key)
        if not self._state.paused:
            self._add(Paused())

    def resume(self, *, request_key: str | None = None) -> None:
        """Hand out plays again.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.pause()
        >>> exp.resume()
        >>> exp.paused
        False
        """
        refuse_in_memory(request_key=request_key)
        if self._state.paused:
            self._add(Resumed())

    def set_capital(self, capital: float | None, *, request_key: str | None = None) -> None:
        """Change Λ, what all plays together may cost, those made so far included; None is unlimited.

        It cannot be less than what is spent and reserved already. A policy with a capital of its own, such as
        :class:`~mfbandit.MFTopTwo`, gets the new one, too, if the two were equal. Else its own stays as it is.

        >>> from mfbandit import MFTopTwo
        >>> exp = Experiment(MFTopTwo(capital=5), arms=2, fidelities=Fidelities([1]), capital=5)
        >>> exp.set_capital(10)
        >>> exp.capital, exp.policy.capital
        (10.0, 10.0)
        """
        refuse_in_memory(request_key=request_key)
        amount = None if capital is None else positive("capital", number("capital", capital))
        committed = self._state.committed
        if amount is not None and limit(amount) < committed:
            raise InvalidArgument(
                f"capital must cover the {plain(committed)} that is spent or reserved already, got {capital}"
            )
        if amount != self._state.capital:
            policy = with_capital(self._state.policy, self._state.capital, amount)
            self._add(CapitalSet(amount))
            if policy is not None:
                self._add(PolicySet(policy_record(policy)))

    def set_policy(self, policy: Policy, *, request_key: str | None = None) -> None:
        """Let another policy of the package pick plays from now on, with all that was learned.

        >>> from mfbandit import MFUCB, UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.set_policy(MFUCB(rho=1))
        >>> exp.policy
        MFUCB(rho=1.0)
        """
        refuse_in_memory(request_key=request_key)
        check_is_policy(policy)
        record = policy_record(policy)
        policy_from_record(record)  # the log has to be enough to go on from
        if self._state.stats.active.any():
            checked_choice(policy, replace(self._state.stats, memory=None), self._state.fidelities)
        if record != policy_record(self._state.policy):
            self._add(PolicySet(record))
            self._test_biases()
            self._decide()

    def set_biases(self, biases: Sequence[float], *, request_key: str | None = None) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on; whether they hold is tested anew.

        >>> from mfbandit import MFUCB, Bounded
        >>> fid = Fidelities([1, 10], [0.1, 0], Bounded())
        >>> exp = Experiment(MFUCB(), arms=2, fidelities=fid)
        >>> exp.set_biases([0.3, 0])
        >>> exp.fidelities.biases
        (0.3, 0.0)
        """
        refuse_in_memory(request_key=request_key)
        changed = replace(self._state.fidelities, biases=biases)
        if self._state.stats.active.any():
            checked_choice(self._state.policy, self._state.stats, changed)
        if changed.biases != self._state.fidelities.biases:
            self._add(BiasesSet(list(changed.known_biases)))
            self._test_biases()
            self._decide()

    def set_fidelities(self, fidelities: Fidelities, *, request_key: str | None = None) -> None:
        """Know other costs, biases or noise from now on: as many fidelities, of better-known properties.

        What was paid stays paid. A policy that remembers looks at all results again, one after the other. Whether the
        biases hold is tested anew.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.tell(exp.ask(), 0.5)
        >>> exp.set_fidelities(Fidelities([2], concentration=Bounded()))
        >>> exp.spent, exp.ask().cost
        (1.0, 2.0)
        """
        refuse_in_memory(request_key=request_key)
        if not isinstance(fidelities, Fidelities):
            raise InvalidArgument(f"fidelities must be a Fidelities, got {fidelities!r}")
        if fidelities.resume != self._state.fidelities.resume:
            raise InvalidArgument(f"fidelities must resume as before or not, got resume={fidelities.resume}")
        if len(fidelities) != len(self._state.fidelities):
            raise InvalidArgument(f"fidelities must be {len(self._state.fidelities)} as before, got {len(fidelities)}")
        check_fidelity_names(fidelities)
        record = json.loads(json.dumps(fidelities_record(fidelities)))  # as a log that is read back has it
        if fidelities_from_record(record, known=concentrations(self._state.fidelities)) != fidelities:
            raise InvalidArgument("fidelities must have concentrations of the package, or those they had before")
        if self._state.stats.active.any():
            checked_choice(self._state.policy, replace(self._state.stats, memory=None), fidelities)
        if fidelities != self._state.fidelities:
            self._add(FidelitiesSet(record))
            self._test_biases()
            self._decide()

    def set_stop(self, stop: Sure | None, *, request_key: str | None = None) -> None:
        """Stop by another rule from now on, or by none; an experiment that is decided goes on.

        What was decided is in the log. It is decided again at once if it is sure enough by the new rule. After this,
        what the policy itself decides does not count any more.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), stop=Sure(0.9))
        >>> _ = exp.add_results([(0, 0, 1.0, None)] * 6 + [(1, 0, 0.0, None)] * 6)
        >>> exp.state
        'decided'
        >>> exp.set_stop(Sure(0.999))
        >>> exp.state, exp.decided
        ('running', None)
        """
        refuse_in_memory(request_key=request_key)
        rule, state = checked_stop(stop), self._state
        if rule != state.stop or state.policy_decides or state.decided is not None:
            self._add(StopSet(stop_record(rule)))
            self._decide()

    def set_shares(
        self,
        *,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        request_key: str | None = None,
    ) -> None:
        """Let arms have these shares of the plays at the highest fidelity from now on; what is left out is none.

        Plays are counted from here.

        Args:
            control: the arm that others are compared with, by its name or index.
            control_share: of the plays at the highest fidelity, for the control.
            least_share: of these plays, for every active arm.
            request_key: for experiments in a store or at a service; None in memory.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.set_shares(control="a", control_share=0.5)
        >>> [play.label for play in exp.ask(4)].count("a")
        2
        >>> exp.set_shares(control="a", control_share=1.5)
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: control_share must be 0, or 1e-06 to 1, got 1.5
        """
        refuse_in_memory(request_key=request_key)
        index = None if control is None else arm_index("control", control, self._state.labels)
        if index in self._state.retired:
            raise InvalidArgument(f"control must be an arm that takes part, got {control!r}, which is retired")
        shares = Shares(index, control_share, least_share)
        shares.check(self._taking_part)
        if shares != self._state.shares:
            self._add(SharesSet(shares_record(shares)))

    def note(self, text: str, *, arm: int | str | None = None, request_key: str | None = None) -> None:
        """Write something into the log, for people.

        Args:
            text: what to remember.
            arm: the arm that it is about, by its index or name; None where it is about none.
            request_key: has no use in memory.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.note("the landing page changed today")
        >>> exp.log
        (Noted(text='the landing page changed today'),)
        >>> exp.note("its picture was replaced", arm=1)
        >>> exp.log[-1]
        ArmNoted(arm=1, text='its picture was replaced')
        """
        refuse_in_memory(request_key=request_key)
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"text must not be empty, got {text!r}")
        check_text("text must be", text)
        self._add(Noted(text) if arm is None else ArmNoted(self._arm(arm), text))

    def with_patience(self, seconds: float) -> Self:
        """The experiment itself: in memory nothing is waited for.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.with_patience(3.0) is exp
        True
        """
        positive("seconds", seconds)
        return self

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
        log = [events.to_record(event) for event in self.log]
        return json.dumps({"format": FORMAT, **self.definition, "log": log}, allow_nan=False)

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
        record = experiment_record(text)
        experiment = cls.from_definition(record, policy=policy, fidelities=fidelities)
        for event in map(events.from_record, record["log"]):
            check_possible(experiment._state, event)
            experiment._add(event)
        experiment.begin_incarnation()
        return experiment

    @classmethod
    def from_definition(
        cls, definition: Mapping[str, Any], *, policy: Policy | None = None, fidelities: Fidelities | None = None
    ) -> "Experiment":
        """The experiment of a :attr:`definition` before its first event, under its own id.

        Args:
            definition: id, policy, arms, fidelities, capital, widen if it is True, and stop if there is such a rule.
            policy: the policy, where it is one of your own and not the package's.
            fidelities: the fidelities, where their concentration is one of your own.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> Experiment.from_definition(exp.definition).id == exp.id
        True
        """
        given, arms = fidelities or fidelities_from_record(definition["fidelities"]), definition["arms"]
        if list(given.costs) != [*(definition["fidelities"].get("costs") or ())]:
            raise InvalidArgument(f"fidelities must have the saved costs, got {list(given.costs)}")
        experiment = cls(
            policy or policy_from_record(definition["policy"]),
            arms=SavedLabels(arms) if isinstance(arms, list) else arms,
            fidelities=given,
            capital=definition["capital"],
            widen=definition.get("widen", False),
            stop=stop_from_record(definition.get("stop")),
            **asdict(shares_from_record(definition.get("shares"))),
            memory=memory_from_record(definition.get("memory")),
        )
        experiment._id = str(definition["id"])
        return experiment

    # For stores, which keep the log elsewhere

    def drain(self) -> list[Event]:
        """Take the log out of memory: the events since this was called last.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.ask()
        >>> exp.drain(), exp.drain()
        ([Asked(play=0, arm=0, fidelity=0)], [])
        """
        news, self._log = self._log, []
        return news

    def play_id(self, number: int) -> str:
        """The id of the play of a number.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.ask().id == exp.play_id(0)
        True
        """
        return play_id(self._id, self._state.incarnations.of(number), number)

    def play(self, number: int) -> Play:
        """The play of a number, counted from 0 in the order of asking.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.ask() == exp.play(0)
        True
        """
        state = self._state
        arm, fidelity = state.plays[number]
        start = state.start(number)
        return Play(self.play_id(number), arm, fidelity, state.cost(number), state.labels[arm], resume_from=start)

    def check_results(self, results: Iterable[PastResult]) -> None:
        """Refuse what :meth:`add_results` would refuse, and change nothing.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.check_results([("b", 0, 0.5, None)])
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: arm must be the name of an arm, got 'b'
        """
        self._pairs(results)

    def number(self, play: Play | str) -> int:
        """The number of a play, counted from 0 in the order of asking.

        Raises:
            UnknownPlay: the play was not asked from this experiment.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.number(exp.ask())
        0
        """
        return self._number(play)

    def note_unchanged(self) -> None:
        """Write down that a request changed nothing.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.note_unchanged()
        >>> exp.log
        (Unchanged(),)
        """
        self._add(Unchanged())

    def begin_incarnation(self) -> None:
        """Give plays asked for from now on ids that no other copy of this experiment gives out.

        It is an event in the log, which comes before the next play and not before.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.begin_incarnation()
        >>> exp.log
        ()
        >>> len(exp.ask().id.split("-"))
        3
        """
        self._opened = Opened(new_incarnation())

    def expire(self, number: int) -> None:
        """Take a pending play back whose lease ran out; it still takes one late result, and its arm is not blamed.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.ask()
        >>> exp.expire(0)
        >>> exp.pending
        ()
        """
        self._add(Expired(number))

    def extend_leases(self, seconds: float) -> None:
        """Say that the leases of all pending plays end so many seconds later; stores keep them.

        >>> from mfbandit import UCB, Bounded
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> exp.extend_leases(7200.0)
        >>> exp.log
        (LeasesExtended(seconds=7200.0),)
        """
        self._add(LeasesExtended(seconds))

    # How the verbs work

    @property
    def _assumptions(self) -> Assumptions:
        known, assumptions = self._assumed
        if known is not self._state.fidelities:
            assumptions = Assumptions.of(self._state.fidelities)
            self._assumed = self._state.fidelities, assumptions
        return assumptions

    def _learn(self, event: Told) -> None:
        """Take in a result, and what follows from it: its arm works after all, or refutes a bias for the first time."""
        state = self._state
        if state.fading is not None:
            self._say_time(state.fading)
        self._add(event)
        arm = state.plays.arms[event.play]
        if arm in state.aside:
            self._add(ArmRestored(arm))
        if state.changes.next is not None and (drift := drift_found(state, event)) is not None:
            self._add(drift)
        if uses_biases(state.policy) and (refuted := self._assumptions.refuted_by(event.play, state)):
            self._say_refuted(refuted)

    def _say_time(self, fading: Fading) -> None:
        """Let results fade until now, where their half-life is a time and enough of it has passed."""
        if fading.memory.seconds is not None and fading.is_due(now := self.clock()):
            self._add(TimePassed(now))

    def _test_biases(self) -> None:
        """Say so in the log if results so far refute what is assumed from now on."""
        if uses_biases(self._state.policy):
            found = refuting(without_drifted(self._state.bias_stats, self._state.stale), self._state.fidelities)
            self._say_refuted([one for one in found if one[:2] not in self._state.refuted])

    def _decide(self) -> None:
        """Say so in the log if it is decided now; once said, it stays."""
        if self._state.decided is None and (found := self._decisions.now()) is not None:
            self._add(found)

    def _say_refuted(self, found: Sequence[tuple[int, int, float]]) -> None:
        for fidelity, arm, needed in found:
            self._add(BiasRefuted(fidelity, arm, needed))
        if found and self._widen:
            self._add(BiasesWidened(list(self.audit().suggested or ())))

    @property
    def _refuted_fidelities(self) -> list[int]:
        return sorted({fidelity for fidelity, _ in self.refuted}) if self._state.refuted else []

    def _ask_one(self) -> Play:
        state = self._state
        if state.decided is not None:
            raise ExperimentDecided(self._decided_text(state.decided))
        if state.paused:
            raise ExperimentPaused("The experiment is paused; resume it to ask for plays")
        if state.fading is not None:
            self._say_time(state.fading)
        arm, fidelity = self._fitting()
        if self._opened is not None:
            self._say_opened()
        number = len(state.plays)
        self._add(Asked(number, arm, fidelity))
        play = self.play(number)
        self._latest = play, number
        return play

    def _decided_text(self, decided: Decided) -> str:
        said = decision_text(decided, self._state.labels[decided.arm])
        return f"The experiment is decided: {said}; set_stop goes on"

    def _say_opened(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            self._add(opened)

    def _fitting(self) -> tuple[int, int]:
        """The next play, if it fits into the capital."""
        arm, fidelity = self._choose()
        if self._state.capital is None:
            return arm, fidelity
        costs, start = self._state.fidelities.costs, self._state.told_stats.start(arm, fidelity)
        cost = costs[fidelity] - (0.0 if start is None else costs[start])
        committed = self._state.committed
        if committed + cost > limit(self._state.capital):
            left = max(self._state.capital - committed, 0.0)  # late results may have cost more than there was
            raise CapitalExhausted(
                f"The next play costs {plain(cost)} (fidelity {fidelity}), and only {plain(left)} of the capital "
                f"{plain(self._state.capital)} is left"
            )
        return arm, fidelity

    def _choose(self) -> tuple[int, int]:
        state = self._state
        stats = state.stats
        if len(state.retired | state.aside) == len(state.labels):
            raise NoActiveArms(
                f"No arm is active: {len(state.retired)} retired, {len(state.aside)} set aside "
                f"after {FAILURES_IN_A_ROW} failures in a row (restore_arm brings them back)"
            )
        arm, fidelity = checked_choice(state.policy, stats, state.fidelities)
        quota = state.quota
        if quota is not None and fidelity == len(state.fidelities) - 1:
            arm = quota.arm(arm, stats.active)
        return arm, fidelity

    @property
    def _taking_part(self) -> int:
        """The number of arms that have a share, now or once they are no longer set aside."""
        return len(self._state.labels) - len(self._state.retired)

    def _number(self, play: Play | str) -> int:
        if play is self._latest[0]:  # nearly always, with one play at a time: nothing has to be read from its id
            return self._latest[1]
        name = play.id if isinstance(play, Play) else str(play)
        digits = name.rpartition("-")[2]
        if digits.isdecimal() and len(digits) <= MAX_PLAY_NUMBER_DIGITS:
            at = int(digits)
            # A number may be that of another play, if a copy or an older state of this experiment has given it out.
            if at < len(self._state.plays) and self.play_id(at) == name:
                self._check_as_asked(play, at)
                return at
        raise UnknownPlay(f"Play not found: {play!r} was not asked from this experiment")

    def _check_as_asked(self, play: Play | str, at: int) -> None:
        if isinstance(play, Play) and (play.arm, play.fidelity) != self._state.plays[at]:
            arm, fidelity = self._state.plays[at]
            raise UnknownPlay(
                f"Play not found: {play.id} is of arm {arm} at fidelity {fidelity}, "
                f"got arm {play.arm} at fidelity {play.fidelity}"
            )

    def _renewable(self, plays: Iterable[Play | str]) -> list[int]:
        numbers = [self._number(play) for play in plays]
        for at in numbers:
            if at not in self._state.pending:
                known = self._state.plays.outcome(at)
                raise Conflict(f"only a pending play can be renewed, got {known}")
        return numbers

    def _result(self, play: Play | str, reward: Reward | None, cost: float | None) -> Told:
        at = self._number(play)
        fidelity = self._state.plays.fidelities[at]
        paid = self._state.cost(at) if cost is None else checked_cost(cost)
        return self._told(at, reward, fidelity, paid)

    def _told(self, at: int, reward: Reward | None, fidelity: int, paid: float) -> Told:
        if isinstance(reward, MANY):
            self._assumptions.check_observations(reward, fidelity)
            return told(at, reward, paid)
        value = number("reward", reward)
        self._assumptions.check_reward(value, fidelity)
        return Told(at, value, paid)

    def _pairs(self, results: Iterable[PastResult]) -> list[tuple[Asked, Told]]:
        first = len(self._state.plays)
        return [self._past(first + i, *result) for i, result in enumerate(results)]

    def _past(
        self, at: int, arm: int | str, fidelity: int, reward: Reward, cost: float | None = None, name: str | None = None
    ) -> tuple[Asked, Told]:
        if name is not None:
            refuse_in_memory(id=name)
        index = self._arm(arm)
        if index in self._state.retired:
            raise InvalidArgument(f"arm must be one that takes part, got {arm!r}, which is retired")
        if not 0 <= whole("fidelity", fidelity) < len(self._state.fidelities):
            raise InvalidArgument(f"fidelity must lie in 0 to {len(self._state.fidelities) - 1}, got {fidelity}")
        paid = self._state.fidelities.costs[fidelity] if cost is None else checked_cost(cost)
        return Asked(at, index, int(fidelity)), self._told(at, reward, fidelity, paid)

    def _is_new(self, event: Told | Failed) -> bool:
        if self._state.plays.takes_outcome(event.play):
            return True
        known = self._state.plays.outcome(event.play)
        if known is not None and known != event:
            outcome, got = events.outcome_text(known), events.outcome_text(event)
            raise Conflict(f"Play {self.play_id(event.play)} already has the outcome {outcome}; got {got}")
        return False

    def _arm(self, arm: int | str) -> int:
        labels = self._state.labels
        if isinstance(arm, str):
            if arm not in self._state.index:
                raise InvalidArgument(f"arm must be the name of an arm, got {arm!r}")
            return self._state.index[arm]
        if not 0 <= whole("arm", arm) < len(labels):
            raise InvalidArgument(f"arm must lie in 0 to {len(labels) - 1}, got {arm}")
        return int(arm)

    def _add(self, event: Event) -> None:
        self._log.append(event)  # before anything that takes its time and could be interrupted
        self._state.apply(event)
