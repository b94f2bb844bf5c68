"""The same experiments over HTTP.

Requests that were not answered are sent again with the same request key, so that a lost answer never makes a second
play, result or arm.
"""

import copy
import json
import os
import random
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload
from urllib.parse import quote, urlsplit

import numpy as np

from mfbandit._internal.imports import need
from mfbandit._internal.limits import DEFAULT_LEASE_SECONDS
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import number, positive, whole
from mfbandit.core import Audit, Bounds, Fidelities, Play, Stats, audit, bounds_table
from mfbandit.errors import CapitalExhausted, InvalidArgument, StoreError, StoreUnavailable, UnknownExperiment
from mfbandit.experiment import (
    FORMAT,
    Asked,
    Event,
    Experiment,
    History,
    Record,
    Status,
    Told,
    fidelities_from_record,
    fidelities_record,
    from_record,
    plays_until_exhausted,
    policy_from_record,
    policy_record,
    to_record,
)
from mfbandit.policies import Policy
from mfbandit.service.problem_details import MARK, error_of
from mfbandit.store import check_name

if TYPE_CHECKING:
    import httpx

AGAIN = (502, 503, 504)  # answers that may be others a moment later
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between attempts
PAGE = 1000
MOST = 1000  # results in one request


def connect(url: str, token: str | None = None, *, patience: float = 60.0) -> "RemoteStore":
    """The experiments of a service.

    Args:
        url: its address, such as http://127.0.0.1:8000.
        token: a bearer token, if the service has any.
        patience: seconds for which a request that is not answered is tried again.

    >>> connect("ftp://host")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: url must begin with http:// or https:// and name a host, got 'ftp://host'
    """
    need("httpx", "connect", "service")
    return RemoteStore(Line(url, token, patience=patience))


class Line:
    """Requests to one service, tried again where that is safe."""

    def __init__(self, url: str, token: str | None, *, patience: float) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgument(f"url must begin with http:// or https:// and name a host, got {url!r}")
        self.url = url.rstrip("/")
        self._token, self._patience = _checked_token(token), positive("patience", patience)
        self._clients: dict[int, httpx.Client] = {}  # by process: connections must not be shared after a fork

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_clients": {}}

    def get(self, path: str, **query: str | int | float) -> Any:  # noqa: ANN401 - anything JSON can say
        """The answer to a question."""
        return self._send("GET", path, query=query)[0]

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        """The answer to a request."""
        return self._send("POST", path, body=body or {})[0]

    def delete(self, path: str, gone: type[Exception] = UnknownExperiment, **query: str) -> None:
        """Ask for something to be deleted; that it is gone after a lost answer, as ``gone`` tells, is fine."""
        try:
            self._send("DELETE", path, query=query)
        except gone as error:
            if not getattr(error, "tried_before", False):
                raise

    def with_patience(self, seconds: float) -> "Line":
        """The same line, with the same connections, on which requests are given up after so many seconds."""
        other = copy.copy(self)
        other._patience = min(positive("seconds", seconds), self._patience)
        return other

    def close(self) -> None:
        """Let go of the connections."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _send(self, method: str, path: str, *, body: Any = None, query: Any = None) -> tuple[Any, int]:  # noqa: ANN401
        end, pause, attempts = time.monotonic() + self._patience, FIRST_PAUSE, 0
        while True:
            attempts += 1
            try:
                return self._once(method, path, body, query), attempts
            except StoreUnavailable as error:
                if time.monotonic() + pause > end:
                    raise StoreUnavailable(f"{error}; tried {attempts} times in {self._patience:g} s") from None
            except (UnknownExperiment, ValueError) as error:
                error.tried_before = attempts > 1  # type: ignore[union-attr]
                raise
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that clients do not all come at once
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, method: str, path: str, body: Any, query: Any) -> Any:  # noqa: ANN401
        client = self._connected()
        import httpx  # an extra, which is there now

        try:
            answer = client.request(method, path, json=body, params=query)
        except httpx.TransportError as error:
            raise StoreUnavailable(f"{self.url} cannot be reached: {str(error) or type(error).__name__}") from None
        return _read(answer, self.url)

    def _connected(self) -> "httpx.Client":
        client = self._clients.get(os.getpid())
        if client is None:
            made = _new_client(self.url, self._token)
            client = self._clients.setdefault(os.getpid(), made)
            if client is not made:  # another thread was faster
                made.close()
        return client


def _new_client(url: str, token: str | None) -> "httpx.Client":
    import httpx  # an extra, which connect has seen

    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(30.0, connect=5.0))


def _read(answer: "httpx.Response", url: str) -> Any:  # noqa: ANN401 - anything JSON can say
    try:
        content = answer.json()
    except ValueError:
        if answer.status_code in AGAIN:
            raise StoreUnavailable(f"{url} answered with status {answer.status_code}") from None
        raise StoreError(f"{url} must be a mfbandit service; its answer ({answer.status_code}) was no JSON") from None
    if answer.is_success:
        if MARK not in answer.headers:
            raise StoreError(f"{url} must be a mfbandit service; its answer has no header {MARK}")
        return content
    error = error_of(content) if isinstance(content, dict) else StoreError(str(content))
    if answer.status_code in AGAIN and not isinstance(error, StoreUnavailable):
        raise StoreUnavailable(str(error))
    raise error


class RemoteStore:
    """The experiments of a service; made by :func:`connect`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store at {self._line.url}>"

    @property
    def name(self) -> str:
        """Its address."""
        return self._line.url

    def close(self) -> None:
        """Let go of the connections."""
        self._line.close()

    def create(
        self,
        name: str,
        policy: Policy,
        *,
        arms: int | Sequence[str],
        fidelities: Fidelities,
        capital: float | None = None,
        lease: float | None = DEFAULT_LEASE_SECONDS,
    ) -> "RemoteExperiment":
        """A new experiment, as :meth:`mfbandit.Store.create` makes one."""
        # Made here first, so that what is wrong is told in the same words and nothing is sent.
        check_name(name)
        plain = Experiment(policy, arms=arms, fidelities=fidelities, capital=capital)
        body = {
            "name": name,
            "policy": policy_record(policy),
            "arms": list(plain.arms),
            "fidelities": fidelities_record(fidelities),
            "capital": plain.capital,
            "lease": None if lease is None else positive("lease", lease),
            "request_key": _key(),
        }
        self._line.post("/api/experiments", body)
        return RemoteExperiment(self._line, name)

    def open(self, name: str) -> "RemoteExperiment":
        """The experiment of that name."""
        experiment = RemoteExperiment(self._line, name)
        experiment.status()
        return experiment

    def list(self) -> tuple[str, ...]:
        """The names of all experiments, in the order in which they were made."""
        return tuple(self._line.get("/api/experiments")["experiments"])

    def delete(self, name: str, *, confirm: str) -> None:
        """Delete an experiment and its log, for good; ``confirm`` is its name again."""
        check_name(name)
        self._line.delete(f"/api/experiments/{quote(name, safe='')}", confirm=confirm)

    def create_token(self, name: str, scope: str) -> str:
        """A new bearer token; it cannot be shown again."""
        return str(self._line.post("/api/tokens", {"name": name, "scope": scope})["token"])

    def revoke_token(self, token: str) -> None:
        """Make a token worthless, by its id."""
        self._line.delete(f"/api/tokens/{quote(token, safe='')}", gone=ValueError)

    def tokens(self) -> dict[str, dict[str, Any]]:
        """What is known of all tokens, by their ids: name, scope and when they were made."""
        return {token["id"]: token for token in self._line.get("/api/tokens")["tokens"]}


class RemoteExperiment:
    """An experiment of a service, with the verbs of :class:`~mfbandit.Experiment`; safe for many threads."""

    def __init__(self, line: Line, name: str) -> None:
        check_name(name)  # it becomes a part of the address
        self._line, self._name = line, name
        self._path = f"/api/experiments/{quote(name, safe='')}"

    def __repr__(self) -> str:
        return f"<Experiment {self._name!r} at {self._line.url}>"

    # What it is made of

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._name

    def status(self) -> Status:
        """Everything at a glance, as the service tells it."""
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
        """What ``ask`` would do: "running", "paused", "exhausted" or "no active arms"."""
        return str(self.status()["state"])

    @property
    def paused(self) -> bool:
        """Whether plays are not handed out for now."""
        return self.state == "paused"

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
    def lease(self) -> float | None:
        """How long, in seconds, a play may take if ``ask`` says nothing else."""
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
        """The cost of the plays under way."""
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
        return tuple(_play(record) for record in self._get("/pending")["plays"])

    @property
    def stats(self) -> Stats:
        """What was learned so far."""
        told = self._get("/stats")
        counts, pending = (np.array(told[name], dtype=np.int64) for name in ("counts", "pending"))
        sums, squares = (np.array(told[name], dtype=np.float64) for name in ("sums", "squares"))
        return Stats(counts, sums, squares, pending, np.array(told["active"], dtype=np.bool_))

    def best(self) -> int:
        """The arm that the policy would recommend now."""
        return int(self._get("/best")["arm"])

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone."""
        status = self.status()
        used = positive("rho", status["policy"].get("rho", 2.0) if rho is None else rho)
        return bounds_table(self.stats, fidelities_from_record(status["fidelities"]), used, self.arms)

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far."""
        return audit(self.stats, self.fidelities, self.arms)

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers and times; those after number ``after``."""
        while page := self._get("/log", after=after, limit=PAGE)["events"]:
            for told in page:
                seq, when = told.pop("seq"), told.pop("time")
                due, request = told.pop("due", None), told.pop("request_key", None)
                yield Record(seq, when, from_record(told), due, request)
            after = seq

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(record.event for record in self.records())

    @property
    def history(self) -> History:
        """The results told so far, in the order of telling."""
        plays: dict[int, Asked] = {}
        told: list[tuple[int, int, float, float]] = []
        for event in self.log:
            if isinstance(event, Asked):
                plays[event.play] = event
            elif isinstance(event, Told):
                play = plays[event.play]
                told.append((play.arm, play.fidelity, event.reward, event.cost))
        arms, fidelities, rewards, costs = zip(*told, strict=True) if told else ((), (), (), ())
        return History(
            np.array(arms, dtype=np.int64),
            np.array(fidelities, dtype=np.int64),
            np.array(rewards, dtype=np.float64),
            np.array(costs, dtype=np.float64),
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
        wanted, key = 1 if n is None else whole("n", n), request_key or _key()
        plays = self._ask(min(wanted, MOST), key, lease)
        with suppress(CapitalExhausted):
            while len(plays) < wanted and len(plays) % MOST == 0:  # a request has its limit
                plays += self._ask(min(wanted - len(plays), MOST), f"{key}-{len(plays)}", lease)
        return plays[0] if n is None else plays

    def _ask(self, n: int, key: str, lease: float | None) -> list[Play]:
        body: dict[str, Any] = {"n": n, "request_key": key}
        if lease is not None:
            body["lease"] = positive("lease", lease)
        return [_play(record) for record in self._post("/ask", body)["plays"]]

    def plays(self) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital."""
        return plays_until_exhausted(self.ask)

    def tell(self, play: Play | str, reward: float, cost: float | None = None) -> None:
        """Take in the result of a play, in any order."""
        self.tell_many([(play, reward, cost)])

    def tell_many(self, results: Iterable[tuple[Play | str, float, float | None]]) -> None:
        """Take in at most a thousand results (play, reward, cost or None): all of them, or none if one is refused."""
        told = [
            {"play": _id(play), "reward": number("reward", reward), **_cost(cost)} for play, reward, cost in results
        ]
        self._post("/tell", {"results": told})

    def fail(self, play: Play | str, cost: float = 0.0) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics."""
        self.fail_many([play], cost)

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0) -> None:
        """Give at most a thousand plays up at once: all of them, or none if one is refused."""
        self._post("/fail", {"plays": [_id(play) for play in plays], "cost": checked_cost(cost)})

    def renew(self, play: Play | str, lease: float | None = None) -> float | None:
        """Make the lease of a play that is under way longer, counted from now; returns when it ends."""
        (due,) = self.renew_many([play], lease).values()
        return due

    def renew_many(self, plays: Iterable[Play | str], lease: float | None = None) -> dict[str, float | None]:
        """Make the leases of at most a thousand plays longer: all of them, or none; when they end, by their ids."""
        body: dict[str, Any] = {"plays": [_id(play) for play in plays]}
        if lease is not None:
            body["lease"] = positive("lease", lease)
        return dict(self._post("/renew", body)["due"])

    def add_results(
        self, results: Iterable[tuple[int | str, int, float, float | None]], *, request_key: str | None = None
    ) -> list[Play]:
        """Take in results from elsewhere (arm, fidelity, reward, cost or None), at most a thousand at once."""
        past = [
            {
                "arm": _arm(arm),
                "fidelity": whole("fidelity", fidelity),
                "reward": number("reward", reward),
                **_cost(cost),
            }
            for arm, fidelity, reward, cost in ((*result, None)[:4] for result in results)
        ]
        body = {"results": past, "request_key": request_key or _key()}
        return [_play(record) for record in self._post("/results", body)["plays"]]

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """A new arm, which will be tried before any other; returns its index."""
        return int(self._post("/arms", {"label": label, "request_key": request_key or _key()})["arm"])

    def retire_arm(self, arm: int | str) -> None:
        """Stop asking for an arm, by its index or name."""
        self._post("/retire", {"arm": _arm(arm)})

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was set aside after failures take part again, by its index or name."""
        self._post("/restore", {"arm": _arm(arm), "request_key": request_key or _key()})

    def pause(self) -> None:
        """Hand out no plays until :meth:`resume`; results of those under way are still taken."""
        self._post("/pause")

    def resume(self) -> None:
        """Hand out plays again."""
        self._post("/resume")

    def set_capital(self, capital: float | None) -> None:
        """Change Λ, what all plays together may cost, those made so far included; None is unlimited."""
        self._post("/capital", {"capital": None if capital is None else number("capital", capital)})

    def set_biases(self, biases: Sequence[float]) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on; whether they hold is tested anew."""
        self._post("/biases", {"biases": [number("bias", bias) for bias in biases]})

    def set_policy(self, policy: Policy) -> None:
        """Let another policy of the package pick plays from now on, with all that was learned."""
        self._post("/policy", {"policy": policy_record(policy)})

    def note(self, text: str, *, request_key: str | None = None) -> None:
        """Write something into the log, for people."""
        self._post("/notes", {"text": text, "request_key": request_key or _key()})

    def with_patience(self, seconds: float) -> Self:
        """The same experiment for a caller in a hurry: requests are given up after so many seconds."""
        return type(self)(self._line.with_patience(seconds), self._name)

    def _get(self, path: str, **query: int) -> Any:  # noqa: ANN401 - anything JSON can say
        return self._line.get(self._path + path, **query)

    def _post(self, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        return self._line.post(self._path + path, body)


def _key() -> str:
    return uuid.uuid4().hex


def _id(play: Play | str) -> str:
    return play.id if isinstance(play, Play) else str(play)


def _arm(arm: int | str) -> int | str:
    return arm if isinstance(arm, str) else whole("arm", arm)


def _checked_token(token: str | None) -> str | None:
    """A token as it can be sent; one that was read from a file may end in a new line. Errors do not show it."""
    text = None if token is None else token.strip()
    if text is not None and not (text and text.isascii() and text.isprintable()):
        raise InvalidArgument("token must be printable ASCII characters, at least one; got others, not shown here")
    return text


def _cost(cost: float | None) -> dict[str, float]:
    return {} if cost is None else {"cost": checked_cost(cost)}


def _play(record: dict[str, Any]) -> Play:
    return Play(record["id"], record["arm"], record["fidelity"], record["cost"], record["label"])
