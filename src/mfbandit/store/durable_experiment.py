"""An experiment whose log is in a database: the verbs of :class:`~mfbandit.Experiment`, kept on disk."""

import json
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar, overload

from mfbandit._internal.typing import IntArray
from mfbandit._internal.validation import positive
from mfbandit.core import LEVEL, Audit, Bounds, Fidelities, Play, Reward, Stats, observed
from mfbandit.experiment import (
    FORMAT,
    ArmAdded,
    ArmHistory,
    ArmReinstated,
    ArmRestored,
    Asked,
    Confidence,
    Decided,
    Difference,
    Drift,
    Event,
    Experiment,
    Findings,
    HalfLife,
    Headline,
    History,
    Lift,
    NextResults,
    Noted,
    PastResult,
    Record,
    Result,
    Shares,
    Status,
    Sure,
    checked_level,
    plays_until_exhausted,
    status_of,
    to_record,
)
from mfbandit.policies import Policy
from mfbandit.store.figures import Figures, figures_of
from mfbandit.store.import_ids import ImportPlan
from mfbandit.store.logged_experiment import LoggedExperiment, LogState, Repeatable
from mfbandit.store.recent import RECENT, RecentActivity
from mfbandit.store.request_keys import request_text
from mfbandit.store.writer import Job, LogEnd, Ticket

SHORT_LOOKS = 50_000  # at arms, by a policy: some milliseconds
LOOKS_OF_A_STOP_TEST = 200  # at each arm, where all of them have to be compared
LOOKS_OF_A_MODEL = 20  # at each arm, for a choice or after a result, by a policy that keeps a model of all arms

T = TypeVar("T")


class Promise:
    """What verbs of a queued experiment did; await it before telling anybody."""

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []

    def add(self, ticket: Ticket) -> None:
        """Promise what a ticket does, too."""
        if ticket not in self._tickets:
            self._tickets.append(ticket)

    def __await__(self) -> Generator[Any, None, None]:
        for ticket in self._tickets:
            yield from ticket.__await__()


class DurableExperiment:
    """An experiment in a store. Verbs return once what they did is on disk, and may be called from many threads.

    Beyond what :class:`~mfbandit.Experiment` does, every verb takes a request key, with which a repeated request does
    nothing more and is answered as before. ``ask`` takes a lease: a play that is neither told, failed nor renewed
    within it is taken back. Made by :class:`~mfbandit.Store`.

    Args:
        logged: the experiment in memory and its log on disk.
        settle: what to do with the ticket of a verb: wait for it, by default.
    """

    def __init__(self, logged: LoggedExperiment, settle: Callable[[Ticket], None] = Ticket.wait) -> None:
        self._logged, self._settle = logged, settle

    def __repr__(self) -> str:
        about = self._read(repr).removeprefix("<Experiment")
        return f"<Experiment {self.name!r} in {self._logged.home.name}:{about}"

    # What it is made of

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._logged.name

    @property
    def id(self) -> str:
        """What the ids of its plays begin with; no other experiment has it."""
        return self._read(lambda core: core.id)

    @property
    def created(self) -> float:
        """When it was made, in seconds since 1970."""
        return self._look(lambda folded: folded.entry.created)

    @property
    def policy(self) -> Policy:
        """The rule that picks plays."""
        return self._read(lambda core: core.policy)

    @property
    def fidelities(self) -> Fidelities:
        """Costs, biases and noise of each fidelity."""
        return self._read(lambda core: core.fidelities)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included; an arm's index is its place here."""
        return self._read(lambda core: core.arms)

    @property
    def capital(self) -> float | None:
        """Λ, what all plays together may cost; None is unlimited."""
        return self._read(lambda core: core.capital)

    @property
    def widen(self) -> bool:
        """Whether biases that results refute are raised at once."""
        return self._read(lambda core: core.widen)

    @property
    def stop(self) -> Sure | None:
        """The rule for stopping; None: it goes on, unless the policy decides by a rule of its own."""
        return self._read(lambda core: core.stop)

    @property
    def shares(self) -> Shares:
        """The control, and the shares of arms of the plays at the highest fidelity."""
        return self._read(lambda core: core.shares)

    @property
    def memory(self) -> HalfLife | None:
        """How long results count; None is for ever."""
        return self._read(lambda core: core.memory)

    @property
    def lease(self) -> float | None:
        """How long, in seconds, a play may take if ``ask`` says nothing else; None is for ever."""
        return self._look(lambda folded: folded.lease)

    @property
    def remote(self) -> bool:
        """False: nothing waits for a service."""
        return False

    @property
    def definition(self) -> dict[str, Any]:
        """What the experiment began with, ready for JSON; whatever changed later is in the log."""
        return self._read(lambda core: core.definition)

    @property
    def shared(self) -> bool:
        """True: others can use it at the same time."""
        return True

    @property
    def events(self) -> int:
        """How many events its log has."""
        return self._look(lambda folded: folded.events)

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order, read back from the disk."""
        return tuple(record.event for record in self.records())

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers and times, from the disk; those after number ``after``.

        The whole log (``after=0``) is checked against its digest while it is read.
        """
        return self._logged.records(after)

    def page(self, after: int, limit: int) -> list[Record]:
        """At most ``limit`` events after number ``after``, from the disk; plays and results as they were folded."""
        return self._logged.page(after, limit)

    def story(self, kinds: Collection[type[Event]] | None = None, arm: int | None = None) -> IntArray:
        """The numbers of all events that are not about plays, increasing; of some kinds or about an arm alone."""
        return self._look(lambda folded: folded.recent.story.numbers(kinds, arm))

    def told(self, numbers: IntArray) -> list[Record]:
        """Events of these numbers, from the disk; at most 500."""
        return self._logged.told(numbers)

    def where(self, play: int) -> tuple[int, int]:
        """The arm and the fidelity of a play, by its number."""
        return self._read(lambda core: core.folded.plays[play])

    def arm_history(self, arm: int) -> ArmHistory:
        """All results of an arm, in the order of telling; from memory."""
        return self._read(lambda core: core.folded.plays.of_arm(arm))

    def to_json(self) -> str:
        """The whole experiment with its log, for :meth:`mfbandit.Experiment.from_json` to go on from in memory."""
        log = [to_record(event) for event in self.log]
        return json.dumps({"format": FORMAT, **self.definition, "log": log}, allow_nan=False)

    # What is known now

    def now(self) -> float:
        """The store's time, in seconds since 1970."""
        return self._logged.home.clock()

    @property
    def stats(self) -> Stats:
        """What was learned so far: a copy that later results do not change."""
        return self._read(lambda core: core.stats)

    @property
    def compared(self) -> IntArray | None:
        """The observations that the test of the biases counts, where there are two blocks at least; else None."""
        return self._read(lambda core: core.folded.bias_stats.counts if core.folded.adjusts else None)

    @property
    def spent(self) -> float:
        """The cost of all told plays, and of failed ones that cost something."""
        return self._read(lambda core: core.spent)

    @property
    def reserved(self) -> float:
        """The cost of the pending plays."""
        return self._read(lambda core: core.reserved)

    @property
    def pending(self) -> tuple[Play, ...]:
        """The plays asked for and neither told nor failed, in the order of asking."""
        return self._read(lambda core: core.pending)

    @property
    def pending_count(self) -> int:
        """How many plays are pending."""
        return self._read(lambda core: core.pending_count)

    @property
    def leases(self) -> dict[str, float]:
        """When the leases of pending plays end, by the plays' ids, in seconds since 1970."""
        return self._look(lambda folded: {folded.core.play_id(at): due for at, due in folded.leases.due.items()})

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that were retired."""
        return self._read(lambda core: core.retired)

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The arms that failed three times in a row; not asked for or recommended until a result or ``restore_arm``."""
        return self._read(lambda core: core.set_aside)

    @property
    def paused(self) -> bool:
        """Whether plays are not handed out for now."""
        return self._read(lambda core: core.paused)

    @property
    def decided(self) -> Decided | None:
        """What was decided, and how sure it was at that moment; None as long as it goes on."""
        return self._read(lambda core: core.decided)

    @property
    def state(self) -> str:
        """What ``ask`` would do: "running", "decided", "paused", "exhausted" or "no active arms"."""
        return self._read(lambda core: core.state)

    @property
    def refuted(self) -> dict[tuple[int, int], float]:
        """The biases that results refuted: what is needed at least, by (fidelity, arm)."""
        return self._read(lambda core: core.refuted)

    @property
    def incidents(self) -> tuple[str, ...]:
        """Warnings about arms that were set aside, and about spending beyond the capital."""
        return self._read(lambda core: core.incidents)

    @property
    def results_at(self) -> list[int]:
        """How many results there are at each fidelity."""
        return self._read(lambda core: core.results_at)

    @property
    def observations_at(self) -> list[int]:
        """How many observations the results at each fidelity are; one each, unless told with counts or weights."""
        return self._read(lambda core: core.observations_at)

    def next_results(self, first: int, last: int) -> NextResults:
        """Some results in a row, for a :class:`~mfbandit.experiment.trend.ConfidenceTrend`; from memory."""
        return self._read(lambda core: core.folded.next_results(first, last))

    @property
    def history(self) -> History:
        """The results told so far, in the order of telling."""
        return self._read(lambda core: core.history)

    def status(self) -> Status:
        """State, capital, results, pending plays and the best arm so far, all of one moment."""
        with self._logged.current() as folded:
            found = status_of(folded.core, events=folded.events, lease=folded.lease)
            return {"name": self.name, "created": folded.entry.created, **found}

    def figures(self) -> Figures:
        """Numbers for those who watch many experiments, all of one moment; cheap, however many arms there are."""
        with self._logged.current() as folded:
            return figures_of(folded.core, leases=len(folded.leases.due), expiries=self._logged.expiries)

    def best(self) -> int:
        """The arm to use if no more plays were made; never one that the highest fidelity has ruled out."""
        return self._read(lambda core: core.best())

    def headline(self) -> Headline:
        """The best arm so far, whether that is in doubt, and which arm comes next."""
        return self._read(lambda core: core.headline())

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone."""
        return self._read(lambda core: core.bounds(rho))

    def confidence(self, level: float = LEVEL) -> Confidence:
        """How sure it is that :meth:`best` names the best arm, how much could be lost, and which arms may be better.

        Nobody waits for it: it is computed from a copy of what was learned.
        """
        wanted = checked_level(level)
        return self.findings().confidence(wanted)

    def difference(self, first: int | str, second: int | str, level: float = LEVEL) -> Difference:
        """By how much one arm is better than another, by their indices or names; how sure that is.

        Nobody waits for it: it is computed from a copy of what was learned.
        """
        wanted = checked_level(level)
        found, arms = self._read(lambda core: (core.findings(), core.two_arms(first, second)))
        return found.difference(*arms, wanted)

    def lift(self, level: float = LEVEL) -> Lift | None:
        """By how much the best arm so far is above the control; None without a control or without results."""
        return self._read(lambda core: core.lift(level))

    def findings(self) -> Findings:
        """A copy of what was learned, from which more can be computed while the experiment goes on."""
        return self._read(lambda core: core.findings())

    def is_sure(self, rule: Sure) -> bool:
        """Whether it is sure enough by this rule now; it changes nothing."""
        return self._read(lambda core: core.is_sure(rule))

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far."""
        return self._read(lambda core: core.audit())

    def block_effects(self) -> dict[str, float]:
        """By how much results in each block are above those elsewhere, as far as is known; that is taken out."""
        return self._read(lambda core: core.block_effects())

    def drift(self) -> tuple[Drift, ...]:
        """The means that have changed, by fidelity and arm."""
        return self._read(lambda core: core.drift())

    def recently(self) -> RecentActivity:
        """What a page about it shows beyond numbers: spending over time, the latest plays and events, leases."""
        with self._logged.current() as folded:
            core, recent = folded.core, folded.recent
            plays = [(time, core.play(at), core.folded.plays.outcome(at)) for time, at in recent.settled]
            leases = [(core.play(at), due) for at, due in folded.leases.next_to_end(RECENT)]
            return RecentActivity(*recent.timeline.series(), plays[::-1], list(recent.events)[::-1], leases)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside, nothing changes, so that what is read belongs together; everybody else waits: it must be short."""
        with self._logged.current():
            yield

    def busy(self, patience: float = 0.0) -> bool:
        """Whether another thread is at work on it, for as long as ``patience`` says, in seconds."""
        return self._logged.busy(patience)

    @contextmanager
    def if_free(self, plays: int = 0, results: int = 0, *, reading: bool = False) -> Iterator[bool]:
        """Tell whether short work can be done at once; then nothing changes inside, as in :meth:`still`.

        False if another thread is at work on it, if it has to be read again, or if the work takes long.

        Args:
            plays: how many plays a policy has to choose for the work; each looks at every arm.
            results: how many results it brings; a policy that remembers something looks at every arm after each.
            reading: whether the work changes nothing, so that no rule for stopping has to be tested after it.
        """
        with self._logged.if_free() as folded:
            if folded is None:
                yield False
                return
            core, now = folded.core, self._logged.home.clock()
            looks = LOOKS_OF_A_MODEL * (plays + results) if core.remembers else plays
            looks += LOOKS_OF_A_STOP_TEST * (core.may_stop and not reading)
            yield looks * len(core.folded.labels) <= SHORT_LOOKS and not folded.leases.any_expired(now)

    # The verbs, kept

    @overload
    def ask(self, *, request_key: str | None = None, lease: float | None = None) -> Play: ...
    @overload
    def ask(self, n: int, *, request_key: str | None = None, lease: float | None = None) -> list[Play]: ...

    def ask(
        self, n: int | None = None, *, request_key: str | None = None, lease: float | None = None
    ) -> Play | list[Play]:
        """The next play to make, or the next ``n``.

        Args:
            n: how many; those that fit into the capital are returned.
            request_key: names this request: the same key again gives the same plays again, and makes no new ones.
            lease: seconds within which each play is told, failed or renewed; the experiment's own by default.
        """
        plays = self._keep(
            lambda core: core.ask(1 if n is None else n),
            request=_repeatable_ask(request_key, "ask", 1 if n is None else n, lease),
            due=lambda folded: self._due(folded, lease),
            expire=True,
        )
        return plays[0] if n is None else plays

    def plays(self, until: Sure | None = None) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital, or it is sure enough."""
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
        """Take in the result of a play, in any order; a late one after its lease ran out, too."""
        given = observed(reward, successes=successes, trials=trials, weight=weight, sd=sd, block=block)
        again = _repeatable(request_key, (), "tell", [(play, given, cost)])
        self._keep(lambda core: core.tell(play, given, cost), request=again)

    def tell_many(self, results: Iterable[Result], *, request_key: str | None = None) -> None:
        """Take in many results (play, reward, cost or None) at once: all of them, or none if one is refused."""
        given = list(results)  # not under the lock: whatever makes them may take its time, or ask this experiment
        again = _repeatable(request_key, (), "tell", given)
        self._keep(lambda core: core.tell_many(given), request=again)

    def fail(self, play: Play | str, cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics."""
        self.fail_many([play], cost, request_key=request_key)

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give many plays up at once: all of them, or none if one is refused."""
        given = list(plays)
        again = _repeatable(request_key, (), "fail", given, cost)
        self._keep(lambda core: core.fail_many(given, cost), request=again)

    def renew(self, play: Play | str, lease: float | None = None, *, request_key: str | None = None) -> float | None:
        """Make the lease of a pending play longer, counted from now; returns when it ends.

        Raises:
            Conflict: the play is not pending any more.
        """
        (due,) = self.renew_many([play], lease, request_key=request_key).values()
        return due

    def renew_many(
        self, plays: Iterable[Play | str], lease: float | None = None, *, request_key: str | None = None
    ) -> dict[str, float | None]:
        """Make the leases of many plays longer: all of them, or none if one is refused; when they end, by their ids."""
        given = list(plays)
        again = None
        if request_key is not None:
            text = request_text(request_key, "renew", given, lease)
            again = Repeatable(text, (), lambda core, made: [core.play_id(at) for at in made])
        with self._logged.current() as folded:
            until = self._due(folded, lease)
            renewed, ticket = self._logged.write(
                lambda core: list(core.renew_many(given)), request=again, due=lambda _: until, expire=True
            )
            ends = {play: folded.leases.due.get(int(play.rpartition("-")[2])) for play in renewed}
        self._settle(ticket)
        return ends

    def add_results(self, results: Iterable[PastResult], *, request_key: str | None = None) -> list[Play]:
        """Take in results from elsewhere (arm, fidelity, reward, cost or None, maybe an id), as plays already made.

        Results with ids are recognized for good: one that is there already is not added again. The ids of plays of
        this experiment count as well, and the result of one that is pending is told.

        Raises:
            Conflict: a result of that id is there, with another content.
        """
        given = list(results)
        again = _repeatable_ask(request_key, "add_results", given)
        with self._logged.current() as folded:
            plan = ImportPlan(folded.core, folded.imports, given)
            if again is not None and plan.has_ids:
                again = replace(again, answer=plan.answer)
            plays, ticket = self._logged.write(plan.run, request=again, ids=plan.ids)
        self._settle(ticket)
        return plays

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """Add an arm, which will be tried before any other; returns its index."""
        again = None
        if request_key is not None:
            again = Repeatable(request_text(request_key, "add_arm", label), (ArmAdded,), lambda _, arms: arms[0])
        return self._keep(lambda core: core.add_arm(label), request=again)

    def retire_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Stop asking for an arm, by its index or name. It keeps its index and takes late results."""
        again = _repeatable(request_key, (), "retire_arm", arm)
        self._keep(lambda core: core.retire_arm(arm), request=again)

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was retired, or set aside after failures, take part again, by its index or name."""
        again = _repeatable(request_key, (ArmReinstated, ArmRestored), "restore_arm", arm)
        self._keep(lambda core: core.restore_arm(arm), request=again)

    def forget(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Begin an arm anew, by its index or name: its results until now do not count any more."""
        self._keep(lambda core: core.forget(arm), request=_repeatable(request_key, (), "forget", arm))

    def pause(self, *, request_key: str | None = None) -> None:
        """Hand out no plays until :meth:`resume`; results of pending ones are still taken."""
        self._keep(lambda core: core.pause(), request=_repeatable(request_key, (), "pause"))

    def resume(self, *, request_key: str | None = None) -> None:
        """Hand out plays again."""
        self._keep(lambda core: core.resume(), request=_repeatable(request_key, (), "resume"))

    def set_capital(self, capital: float | None, *, request_key: str | None = None) -> None:
        """Change Λ, what all plays together may cost, those made so far included; None is unlimited."""
        again = _repeatable(request_key, (), "set_capital", capital)
        self._keep(lambda core: core.set_capital(capital), request=again)

    def set_policy(self, policy: Policy, *, request_key: str | None = None) -> None:
        """Let another policy of the package pick plays from now on, with all that was learned."""
        again = _repeatable(request_key, (), "set_policy", policy)
        self._keep(lambda core: core.set_policy(policy), request=again)

    def set_biases(self, biases: Sequence[float], *, request_key: str | None = None) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on; whether they hold is tested anew."""
        given = list(biases)
        again = _repeatable(request_key, (), "set_biases", given)
        self._keep(lambda core: core.set_biases(given), request=again)

    def set_fidelities(self, fidelities: Fidelities, *, request_key: str | None = None) -> None:
        """Know other costs, biases or noise from now on; what was paid stays paid."""
        again = _repeatable(request_key, (), "set_fidelities", fidelities)
        self._keep(lambda core: core.set_fidelities(fidelities), request=again)

    def set_stop(self, stop: Sure | None, *, request_key: str | None = None) -> None:
        """Stop by another rule from now on, or by none; an experiment that is decided goes on."""
        again = _repeatable(request_key, (), "set_stop", stop)
        self._keep(lambda core: core.set_stop(stop), request=again)

    def set_shares(
        self,
        *,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        request_key: str | None = None,
    ) -> None:
        """Let arms have these shares of the plays at the highest fidelity from now on; what is left out is none."""
        chosen = {"control": control, "control_share": control_share, "least_share": least_share}
        again = _repeatable(request_key, (), "set_shares", chosen)
        self._keep(
            lambda core: core.set_shares(control=control, control_share=control_share, least_share=least_share),
            request=again,
        )

    def note(self, text: str, *, arm: int | str | None = None, request_key: str | None = None) -> None:
        """Write something into the log, for people; maybe about an arm, by its index or name."""
        content = (text,) if arm is None else (text, arm)
        again = _repeatable(request_key, (Noted,) if arm is None else (), "note", *content)
        self._keep(lambda core: core.note(text, arm=arm), request=again)

    def expire(self, *, wait: bool = True) -> None:
        """Take back the plays whose leases have run out; ``ask`` does so by itself.

        Args:
            wait: whether to wait while another thread is at work on the experiment; else nothing is done then.
        """
        ticket = self._logged.expire(wait=wait)
        if ticket is not None:
            self._settle(ticket)

    # Other views of it

    def queued(self) -> tuple[Self, Promise]:
        """The same experiment with verbs that do not wait for the disk, and a promise that holds when they are there.

        For a service, which awaits the promise while it goes on with other requests. What the verbs did must not be
        told to anybody before.
        """
        promise = Promise()
        return type(self)(self._logged, promise.add), promise

    def with_patience(self, seconds: float) -> Self:
        """The experiment itself: there is no service to wait for."""
        positive("seconds", seconds)
        return self

    def refresh(self) -> None:
        """Read again what others have written meanwhile: for a store that was opened for reading."""
        if self._logged.home.read_only:
            self._logged.refresh()

    def is_current(self) -> bool:
        """Tell whether what is in memory is what was kept; otherwise it is read again before it is used."""
        return self._logged.is_current()

    def leave(self, job: Callable[[LogEnd], Job]) -> Ticket:
        """Do a last job after all that was handed in, and be of no use from then on: another process goes on."""
        return self._logged.leave(job)

    def drop(self) -> bool:
        """Be of no use from now on, unless it was read again meanwhile; tell whether it is so."""
        return self._logged.drop()

    def be_deleted(self) -> None:
        """Tell whoever still has it from now on that it was deleted."""
        self._logged.forget()

    # How it is kept

    def _look(self, read: Callable[[LogState], T]) -> T:
        with self._logged.current() as folded:
            return read(folded)

    def _read(self, read: Callable[[Experiment], T]) -> T:
        with self._logged.current() as folded:
            return read(folded.core)

    def _keep(
        self,
        verb: Callable[[Experiment], T],
        *,
        request: Repeatable[T] | None = None,
        due: Callable[[LogState], float | None] = lambda _: None,
        expire: bool = False,
    ) -> T:
        result, ticket = self._logged.write(verb, request=request, due=due, expire=expire)
        self._settle(ticket)
        return result

    def _due(self, folded: LogState, lease: float | None) -> float | None:
        seconds = folded.lease if lease is None else positive("lease", lease)
        return None if seconds is None else self._logged.home.clock() + seconds


def _repeatable_ask(key: str | None, verb: str, *content: object) -> Repeatable[list[Play]] | None:
    if key is None:
        return None
    text = request_text(key, verb, *content)
    return Repeatable(text, (Asked,), lambda core, plays: [core.play(at) for at in plays])


def _repeatable(
    key: str | None, kinds: tuple[type[Event], ...], verb: str, *content: object
) -> Repeatable[None] | None:
    """A request without an answer; ``kinds`` are those of logs that kept no digests."""
    return None if key is None else Repeatable(request_text(key, verb, *content), kinds, lambda _, __: None)
