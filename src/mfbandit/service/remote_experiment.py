"""An experiment of a service, over HTTP.

A request that was not answered is sent again with the same request key. So a lost answer never makes a second play,
result or arm, and a repeated control never undoes what somebody else did meanwhile. Results, failures and renewals are
the same if they come twice, and need no key.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, cast, overload
from urllib.parse import quote

import numpy as np

from mfbandit._internal.limits import MAX_ITEMS_PER_REQUEST
from mfbandit._internal.typing import JSON, JSONObject
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import number, positive, whole
from mfbandit.core import LEVEL, Audit, Bounds, Fidelities, Play, Reward, Stats, audit, observed
from mfbandit.errors import CapitalExhausted, InvalidArgument, NoResults
from mfbandit.experiment import (
    FORMAT,
    Asked,
    Confidence,
    Decided,
    Difference,
    Drift,
    Event,
    HalfLife,
    History,
    Lift,
    PastResult,
    Record,
    Result,
    Shares,
    Status,
    Sure,
    Told,
    checked_level,
    checked_rule,
    checked_stop,
    confidence_from_record,
    difference_from_record,
    drift_from_record,
    fidelities_from_record,
    from_record,
    lift_from_record,
    memory_from_record,
    plays_until_exhausted,
    policy_from_record,
    policy_record,
    shares_from_record,
    stop_from_record,
    stop_record,
    to_record,
    with_counts,
    without_drifted,
)
from mfbandit.policies import Policy
from mfbandit.service.members import (
    arm_member,
    cost_member,
    integers,
    key_member,
    meant,
    numbers,
    play_from,
    reward_members,
    stats_from,
)
from mfbandit.service.transport import Transport, new_key
from mfbandit.store import check_name


class RemoteExperiment:
    """An experiment of a service, with the verbs of :class:`~mfbandit.Experiment`; many threads may share it.

    Args:
        transport: sends its requests.
        name: its name in the store of the service.
    """

    def __init__(self, transport: Transport, name: str) -> None:
        check_name(name)  # it becomes a part of the address
        self._transport, self._name = transport, name
        self._path = f"/api/experiments/{quote(name, safe='')}"

    def __repr__(self) -> str:
        return f"<Experiment {self._name!r} at {self._transport.url}>"

    # What it is made of

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._name

    def status(self) -> Status:
        """State, capital, results, pending plays and the best arm so far, all of one moment."""
        return cast("Status", self._get(""))

    @property
    def definition(self) -> dict[str, Any]:
        """What the experiment began with; whatever changed later is in the log."""
        return dict(self._get("/definition"))

    def to_json(self) -> str:
        """The whole experiment with its log, for :meth:`mfbandit.Experiment.from_json` to go on from in memory."""
        log = [to_record(event) for event in self.log]
        return json.dumps({"format": FORMAT, **self.definition, "log": log}, allow_nan=False)

    @property
    def id(self) -> str:
        """What the ids of its plays begin with."""
        return str(self.status()["id"])

    @property
    def state(self) -> str:
        """What ``ask`` would do: "running", "decided", "paused", "exhausted" or "no active arms"."""
        return str(self.status()["state"])

    @property
    def paused(self) -> bool:
        """Whether plays are not handed out for now."""
        return bool(self.status()["paused"])

    @property
    def decided(self) -> Decided | None:
        """What was decided, and how sure it was at that moment; None as long as it goes on."""
        known = self.status()["decided"]
        return None if known is None else Decided(**known)

    @property
    def policy(self) -> Policy:
        """The rule that picks plays."""
        return policy_from_record(self.status()["policy"])

    @property
    def fidelities(self) -> Fidelities:
        """Costs, biases and noise of each fidelity."""
        return fidelities_from_record(self.status()["fidelities"])

    @property
    def capital(self) -> float | None:
        """Λ, what all plays together may cost; None is unlimited."""
        capital = self.status()["capital"]
        return None if capital is None else float(capital)

    @property
    def widen(self) -> bool:
        """Whether biases that results refute are raised at once."""
        return bool(self.status()["widen"])

    @property
    def stop(self) -> Sure | None:
        """The rule for stopping; None: it goes on, unless the policy decides by a rule of its own."""
        return stop_from_record(self.status()["stop"])

    @property
    def shares(self) -> Shares:
        """The control, and the shares of arms of the plays at the highest fidelity."""
        return shares_from_record(self.status()["shares"])

    @property
    def memory(self) -> HalfLife | None:
        """How long results count; None is for ever."""
        return memory_from_record(self.status()["memory"])

    @property
    def lease(self) -> float | None:
        """Seconds within which a play is told, failed or renewed if ``ask`` says nothing else; None is for ever."""
        lease = self.status()["lease"]
        return None if lease is None else float(lease)

    @property
    def remote(self) -> bool:
        """True: verbs wait for the service."""
        return True

    @property
    def shared(self) -> bool:
        """True: others can use it at the same time."""
        return True

    @property
    def results_at(self) -> list[int]:
        """How many results there are at each fidelity."""
        return [int(number) for number in self.status()["results"]]

    @property
    def observations_at(self) -> list[int]:
        """How many observations the results at each fidelity are; one each, unless told with counts or weights."""
        return [int(number) for number in self.status()["observations"]]

    @property
    def events(self) -> int:
        """How many events its log has."""
        return int(self.status()["events"])

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included."""
        return tuple(self._get("/arms")["arms"])

    # What is known now

    @property
    def spent(self) -> float:
        """The cost of all told plays, and of failed ones that cost something."""
        return float(self.status()["spent"])

    @property
    def reserved(self) -> float:
        """The cost of the pending plays."""
        return float(self.status()["reserved"])

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that were retired."""
        return tuple(self.status()["retired"])

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The arms that failed three times in a row."""
        return tuple(self.status()["set_aside"])

    @property
    def pending(self) -> tuple[Play, ...]:
        """The plays asked for and neither told nor failed, in the order of asking."""
        return tuple(play_from(record) for record in self._get("/pending")["plays"])

    @property
    def stats(self) -> Stats:
        """What was learned so far."""
        return stats_from(self._get("/stats"))

    def best(self) -> int:
        """The arm to use if no more plays were made; never one that the highest fidelity has ruled out."""
        return int(self._get("/best")["arm"])

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone."""
        found = self._get("/bounds", **({} if rho is None else {"rho": positive("rho", rho)}))
        return Bounds(
            tuple(found["arms"]),
            tuple(found["fidelities"]),
            np.array(found["plays"], dtype=np.int64),
            numbers(found["means"], math.nan),
            numbers(found["widths"], math.inf),
            numbers(found["lower"], -math.inf),
            numbers(found["upper"], math.inf),
            found["kind"],
            integers(found["observations"]),
        )

    def confidence(self, level: float = LEVEL) -> Confidence:
        """How sure it is that :meth:`best` names the best arm, how much could be lost, and which arms may be better."""
        return confidence_from_record(self._get("/confidence", level=checked_level(level)))

    def difference(self, first: int | str, second: int | str, level: float = LEVEL) -> Difference:
        """By how much one arm is better than another, by their indices or names; how sure that is."""
        one, other = (self._index(arm) for arm in (first, second))
        return difference_from_record(self._get("/difference", first=one, second=other, level=checked_level(level)))

    def _index(self, arm: int | str) -> int:
        if not isinstance(arm, str):
            return whole("arm", arm)
        labels = self.arms
        if arm not in labels:
            raise InvalidArgument(f"arm must be the name of an arm, got {arm!r}")
        return labels.index(arm)

    def lift(self, level: float = LEVEL) -> Lift | None:
        """By how much the best arm so far is above the control; None without a control or without results."""
        return lift_from_record(self._get("/lift", level=checked_level(level))["lift"])

    def is_sure(self, rule: Sure) -> bool:
        """Whether it is sure enough by this rule now; it changes nothing."""
        level = checked_rule(rule).level
        try:
            return not self.set_aside and rule.met_by(self.confidence(level))  # those that are set aside may come back
        except NoResults:
            return False

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far."""
        known = self._get("/stats")
        stats, compared = stats_from(known), integers(known.get("compared"))
        stats = stats if compared is None else with_counts(stats, compared)
        stats = without_drifted(stats, [(m, arm) for m, arm in known["drifted"]])
        return audit(stats, fidelities_from_record(known["fidelities"]), known["arms"])

    def block_effects(self) -> dict[str, float]:
        """By how much results in each block are above those elsewhere, as far as is known; that is taken out."""
        return {name: float(effect) for name, effect in self._get("/blocks")["effects"].items()}

    def drift(self) -> tuple[Drift, ...]:
        """The means that have changed, by fidelity and arm."""
        return tuple(drift_from_record(one) for one in self._get("/drift")["drift"])

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers and times; those after number ``after``."""
        while page := self._get("/log", after=after, limit=MAX_ITEMS_PER_REQUEST)["events"]:
            for told in page:
                seq, when = told.pop("seq"), told.pop("time")
                more = [told.pop(name, None) for name in ("due", "request_key", "actor")]
                yield Record(seq, when, from_record(told), *more)
            after = seq

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(record.event for record in self.records())

    @property
    def history(self) -> History:
        """The results told so far, in the order of telling."""
        plays: dict[int, Asked] = {}
        told: list[tuple[int, int, float, float, int, float]] = []
        for event in self.log:
            if isinstance(event, Asked):
                plays[event.play] = event
            elif isinstance(event, Told):
                play = plays[event.play]
                found = event.observed
                told.append((play.arm, play.fidelity, event.reward, event.cost, found.number, found.total))
        arms, fidelities, rewards, costs, weights, sums = zip(*told, strict=True) if told else ((),) * 6
        return History(
            np.array(arms, dtype=np.int64),
            np.array(fidelities, dtype=np.int64),
            np.array(rewards, dtype=np.float64),
            np.array(costs, dtype=np.float64),
            np.array(weights, dtype=np.int64),
            np.array(sums, dtype=np.float64),
        )

    # The verbs

    @overload
    def ask(self, *, request_key: str | None = None, lease: float | None = None) -> Play: ...
    @overload
    def ask(self, n: int, *, request_key: str | None = None, lease: float | None = None) -> list[Play]: ...

    def ask(
        self, n: int | None = None, *, request_key: str | None = None, lease: float | None = None
    ) -> Play | list[Play]:
        """The next play to make, or the next ``n``; a request key is made up if none is given."""
        wanted, key = 1 if n is None else whole("n", n), request_key or new_key()
        plays = self._ask(min(wanted, MAX_ITEMS_PER_REQUEST), key, lease)
        with suppress(CapitalExhausted):
            while len(plays) < wanted and len(plays) % MAX_ITEMS_PER_REQUEST == 0:
                plays += self._ask(min(wanted - len(plays), MAX_ITEMS_PER_REQUEST), f"{key}-{len(plays)}", lease)
        return plays[0] if n is None else plays

    def _ask(self, n: int, key: str, lease: float | None) -> list[Play]:
        body: JSONObject = {"n": n, "request_key": key}
        if lease is not None:
            body["lease"] = positive("lease", lease)
        return [play_from(record) for record in self._post("/ask", body)["plays"]]

    def plays(self, until: Sure | None = None) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital, or the experiment is decided."""
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
        """Take in the result of a play, in any order."""
        given = observed(reward, successes=successes, trials=trials, weight=weight, sd=sd, block=block)
        self.tell_many([(play, given, cost)], request_key=request_key)

    def tell_many(self, results: Iterable[Result], *, request_key: str | None = None) -> None:
        """Take in at most a thousand results (play, reward, cost or None): all of them, or none if one is refused."""
        told = [{**meant(play), **reward_members(reward), **cost_member(cost)} for play, reward, cost in results]
        self._post("/tell", {"results": told, **key_member(request_key)})

    def fail(self, play: Play | str, cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics."""
        self.fail_many([play], cost, request_key=request_key)

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give at most a thousand plays up at once: all of them, or none if one is refused."""
        given = [meant(play) for play in plays]
        self._post("/fail", {"plays": given, "cost": checked_cost(cost), **key_member(request_key)})

    def renew(self, play: Play | str, lease: float | None = None, *, request_key: str | None = None) -> float | None:
        """Renew the lease of a pending play, counted from now; returns when it ends, None for never."""
        (due,) = self.renew_many([play], lease, request_key=request_key).values()
        return due

    def renew_many(
        self, plays: Iterable[Play | str], lease: float | None = None, *, request_key: str | None = None
    ) -> dict[str, float | None]:
        """Renew the leases of at most a thousand plays: all of them, or none; returns when they end, by their ids."""
        body: JSONObject = {"plays": [meant(play) for play in plays], **key_member(request_key)}
        if lease is not None:
            body["lease"] = positive("lease", lease)
        return dict(self._post("/renew", body)["due"])

    def add_results(self, results: Iterable[PastResult], *, request_key: str | None = None) -> list[Play]:
        """Add past results (arm, fidelity, reward, cost or None, maybe an id), at most a thousand at once."""
        past = [
            {
                "arm": arm_member(arm),
                "fidelity": whole("fidelity", fidelity),
                **reward_members(reward),
                **cost_member(cost),
                **({} if name is None else {"id": name}),
            }
            for arm, fidelity, reward, cost, name in ((*result, None, None)[:5] for result in results)
        ]
        body = {"results": past, "request_key": request_key or new_key()}
        return [play_from(record) for record in self._post("/results", body)["plays"]]

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """Add an arm, which will be tried before any other; returns its index."""
        return int(self._post("/arms", {"label": label, "request_key": request_key or new_key()})["arm"])

    def retire_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Stop asking for an arm, by its index or name."""
        self._post("/retire", {"arm": arm_member(arm), "request_key": request_key or new_key()})

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was retired, or set aside after failures, take part again, by its index or name."""
        self._post("/restore", {"arm": arm_member(arm), "request_key": request_key or new_key()})

    def forget(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Begin an arm anew, by its index or name: its results until now do not count any more."""
        self._post("/forget", {"arm": arm_member(arm), "request_key": request_key or new_key()})

    def pause(self, *, request_key: str | None = None) -> None:
        """Hand out no plays until :meth:`resume`; results of pending plays are still recorded."""
        self._post("/pause", {"request_key": request_key or new_key()})

    def resume(self, *, request_key: str | None = None) -> None:
        """Hand out plays again."""
        self._post("/resume", {"request_key": request_key or new_key()})

    def set_capital(self, capital: float | None, *, request_key: str | None = None) -> None:
        """Change Λ, what all plays together may cost, those made so far included; None is unlimited."""
        amount = None if capital is None else number("capital", capital)
        self._post("/capital", {"capital": amount, "request_key": request_key or new_key()})

    def set_biases(self, biases: Sequence[float], *, request_key: str | None = None) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on; whether they hold is tested again from the start."""
        assumed = [number("bias", bias) for bias in biases]
        self._post("/biases", {"biases": assumed, "request_key": request_key or new_key()})

    def set_policy(self, policy: Policy, *, request_key: str | None = None) -> None:
        """Let another policy of the package pick plays from now on, with all that was learned."""
        self._post("/policy", {"policy": policy_record(policy), "request_key": request_key or new_key()})

    def set_stop(self, stop: Sure | None, *, request_key: str | None = None) -> None:
        """Stop by another rule from now on, or by none; an experiment that is decided goes on."""
        self._post("/stop", {"stop": stop_record(checked_stop(stop)), "request_key": request_key or new_key()})

    def set_shares(
        self,
        *,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        request_key: str | None = None,
    ) -> None:
        """Let arms have these shares of the plays at the highest fidelity from now on; what is left out is none."""
        Shares(None if control is None else 0, control_share, least_share)  # refused in the same words
        chosen = {
            "control": None if control is None else arm_member(control),
            "control_share": float(control_share),
            "least_share": float(least_share),
        }
        self._post("/shares", {**chosen, "request_key": request_key or new_key()})

    def note(self, text: str, *, arm: int | str | None = None, request_key: str | None = None) -> None:
        """Write a note into the log; maybe about an arm, by its index or name."""
        about = {} if arm is None else {"arm": arm_member(arm)}
        self._post("/notes", {"text": text, **about, "request_key": request_key or new_key()})

    def with_patience(self, seconds: float) -> Self:
        """Return the same experiment for a caller in a hurry: requests are given up after so many seconds."""
        return type(self)(self._transport.with_patience(seconds), self._name)

    def _get(self, path: str, **query: float) -> JSON:
        return self._transport.get(self._path + path, **query)

    def _post(self, path: str, body: JSONObject | None = None) -> JSON:
        return self._transport.post(self._path + path, body)
