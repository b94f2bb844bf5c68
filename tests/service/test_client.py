"""The client: the same experiments over HTTP, though answers get lost and services go away."""

import json
import multiprocessing
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pytest

import mfbandit
import mfbandit.service.transport
from mfbandit import (
    MFUCB,
    Bounded,
    CapitalExhausted,
    Conflict,
    Fidelities,
    NoResults,
    NotAllowed,
    Store,
    StoreError,
    StoreUnavailable,
    UnknownExperiment,
    UnknownPlay,
    check_experiment,
    connect,
)
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import AnyExperiment
from mfbandit.service import RemoteExperiment
from mfbandit.service.transport import Connections, Transport
from mfbandit.store import DurableExperiment
from tests.support.services import served

FIDELITIES = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("client") / "a.db") as service:
        yield service


@pytest.fixture
def store(service):
    with connect(service.url, patience=5) as store:
        yield store


@pytest.fixture
def name(request):
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[-60:].strip("-")


def make(store, name, **more):
    return store.create(name, MFUCB(), arms=["a", "b", "c"], fidelities=FIDELITIES, **more)


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on; loses as many answers as its server says, after the service has done what was asked."""

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {"content-type": "application/json"}
        answer = httpx.request(self.command, self.server.target + self.path, content=body, headers=headers)  # type: ignore[attr-defined]
        with self.server.counting:  # type: ignore[attr-defined]
            self.server.passed.append((self.command, self.path))  # type: ignore[attr-defined]
            lost = self.server.lose > 0  # type: ignore[attr-defined]
            self.server.lose -= lost  # type: ignore[attr-defined]
        self.close_connection = True
        if not lost:
            self.send_response(answer.status_code)
            for field in ("content-type", "x-mfbandit"):
                self.send_header(field, answer.headers[field])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


@contextmanager
def listening(handler, **more):
    """An HTTP server on a free port, in a thread of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    vars(server).update(more)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def proxy(service):
    with listening(Proxy, target=service.url, lose=0, passed=[], counting=threading.Lock()) as proxy:
        yield proxy


@pytest.fixture
def lossy(proxy):
    """A store behind the proxy."""
    with connect(f"http://127.0.0.1:{proxy.server_address[1]}", patience=10) as store:
        yield store


def test_it_keeps_the_contract_of_experiments(store):
    numbers = iter(range(1000))

    def made(policy, arms, fidelities, capital):
        return store.create(f"contract-{next(numbers)}", policy, arms=arms, fidelities=fidelities, capital=capital)

    check_experiment(made)


class TestLostAnswers:
    """The service has done it, the answer is lost, the client asks again: it is done once."""

    @pytest.fixture
    def experiment(self, lossy, proxy, name):
        made = make(lossy, name)
        proxy.passed.clear()
        return made

    def lose(self, proxy, times=2):
        proxy.lose = times

    def test_ask(self, experiment, proxy):
        self.lose(proxy)
        plays = experiment.ask(2)
        assert len(proxy.passed) == 3
        assert experiment.pending == tuple(plays)

    def test_tell(self, experiment, proxy):
        play = experiment.ask()
        self.lose(proxy)
        experiment.tell(play, 0.5)
        assert experiment.spent == 1
        assert len(experiment.log) == 3  # with the opening

    def test_fail(self, experiment, proxy):
        play = experiment.ask()
        self.lose(proxy)
        experiment.fail(play, cost=0.5)
        assert experiment.spent == 0.5

    def test_add_arm(self, experiment, proxy):
        self.lose(proxy)
        assert experiment.add_arm("d") == 3
        assert experiment.arms == ("a", "b", "c", "d")

    def test_note(self, experiment, proxy):
        self.lose(proxy)
        experiment.note("hello")
        assert len(experiment.log) == 1

    def test_import(self, experiment, proxy):
        self.lose(proxy)
        plays = experiment.add_results([("a", 0, 0.5, None), ("b", 0, 0.25, None)])
        assert [play.label for play in plays] == ["a", "b"]
        assert experiment.spent == 2

    def test_restore(self, experiment, proxy):
        for _ in range(3):
            experiment.fail(experiment.ask())
        self.lose(proxy)
        experiment.restore_arm("a")
        assert experiment.set_aside == ()

    def test_create(self, lossy, proxy, name):
        self.lose(proxy)
        made = make(lossy, name)
        assert made.events == 0
        assert lossy.list().count(name) == 1
        with pytest.raises(Conflict, match="already"):
            make(lossy, name)

    @pytest.mark.usefixtures("experiment")
    def test_delete(self, lossy, proxy, name):
        self.lose(proxy)
        lossy.delete(name, confirm=name)
        assert name not in lossy.list()
        with pytest.raises(UnknownExperiment):
            lossy.delete(name, confirm=name)

    @pytest.mark.usefixtures("experiment")
    def test_deletions_by_many_at_once(self, lossy, proxy, name):
        """Only who lost an answer is content with there being nothing."""
        names = [f"{name[-50:]}-{i}" for i in range(8)]
        for one in names:
            make(lossy, one)
        self.lose(proxy, 4)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: lossy.delete(one, confirm=one), names))
        assert not set(names) & set(lossy.list())

    def test_revoke(self, lossy, monkeypatch):
        """The service is told apart from one that never had the token."""
        answers = iter([StoreUnavailable("lost"), InvalidArgument("no such token"), InvalidArgument("no such token")])

        def once(*_):
            raise next(answers)

        monkeypatch.setattr(Transport, "_send_once", once)
        lossy.revoke_token("0a1b2c3d")
        with pytest.raises(InvalidArgument, match="no such token"):
            lossy.revoke_token("0a1b2c3d")

    def test_views(self, experiment, proxy):
        self.lose(proxy)
        assert experiment.spent == 0

    def test_a_key_of_ones_own_is_kept(self, experiment):
        assert experiment.ask(2, request_key="mine") == experiment.ask(2, request_key="mine")


class TestServicesThatGoAway:
    def test_one_that_comes_back_in_time_was_never_away(self, tmp_path):
        with ExitStack() as stack:
            first = stack.enter_context(served(tmp_path / "a.db"))
            store = stack.enter_context(connect(first.url, patience=30))
            experiment = make(store, "ads")
            play = experiment.ask()
            first.kill()
            back = threading.Thread(target=lambda: stack.enter_context(served(tmp_path / "a.db", first.port)))
            back.start()
            experiment.tell(play, 0.5)
            back.join()
            assert experiment.spent == 1

    def test_of_several_the_next_one_is_asked(self, service):
        with connect(f"http://127.0.0.1:1,{service.url}", patience=30) as store:
            assert store.list() == store.list()
            assert store.name == service.url

    def test_of_several_one_that_is_silent_is_not_waited_for(self, service, monkeypatch):
        monkeypatch.setattr(mfbandit.service.transport, "FIRST_ANSWER_TIMEOUT_SECONDS", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            both = f"http://127.0.0.1:{silent.getsockname()[1]}, {service.url}"
            began = time.monotonic()
            with connect(both, patience=30) as store:
                assert store.list() == store.list()
            assert time.monotonic() - began < 10

    def test_patience_has_an_end(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # nobody listens
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            start = time.monotonic()
            with connect(url, patience=0.5) as store, pytest.raises(StoreUnavailable, match=f"{url} cannot be reached"):
                store.list()
            assert time.monotonic() - start < 5

    @pytest.mark.parametrize("kind", ["text/html", "application/json"])
    def test_a_server_that_is_none_is_told_at_once(self, kind):
        class Stranger(Proxy):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                body = b'{"experiments": []}' if "json" in kind else b"<h1>hello</h1>"
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        with listening(Stranger) as server, connect(f"http://127.0.0.1:{server.server_address[1]}") as store:
            refused = pytest.raises(StoreError, match="is not an mfbandit service")
            with refused:
                store.list()

    @pytest.mark.parametrize(
        "url", ["ftp://host", "127.0.0.1:8000", "http://", "", None, "http://[", "http://host:99999"]
    )
    def test_addresses_that_are_none(self, url):
        with pytest.raises(ValueError, match="url must begin with http:// or https://"):
            connect(url)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "a.db"
    with Store(path) as store:
        tokens = {scope: store.create_token(scope, scope) for scope in ("read", "write", "admin")}
    with served(path) as service:
        yield service.url, tokens


class TestTokens:
    def test_errors_are_not_allowed_and_come_at_once(self, guarded):
        url, tokens = guarded
        for token, said in (
            (None, "a token is needed"),
            ("mfb_0a1b2c3d_x", "not one of"),
            (tokens["read"], "scope write"),
        ):
            with connect(url, token) as store, pytest.raises(NotAllowed, match=said):
                make(store, "no")

    def test_they_are_made_listed_and_revoked(self, guarded):
        url, tokens = guarded
        with connect(url, tokens["admin"]) as store:
            text = store.create_token("ci", "read")
            public = text.split("_")[1]
            assert store.tokens()[public]["name"] == "ci"
            with connect(url, text) as reader:
                assert reader.list() == store.list()
            store.revoke_token(public)
            assert public not in store.tokens()
            with pytest.raises(ValueError, match=f"Token not found: '{public}'"):
                store.revoke_token(public)

    def test_one_read_from_a_file_may_end_in_a_new_line(self, guarded):
        with connect(guarded[0], guarded[1]["read"] + "\n") as store:
            assert store.list() == ()

    @pytest.mark.parametrize("token", ["", " ", "a\nb", "sécret", "a\x00b"])
    def test_what_cannot_be_one_is_refused_and_not_shown(self, token):
        with pytest.raises(ValueError, match="token must be printable ASCII") as caught:
            connect("http://127.0.0.1:1", token)
        assert "cret" not in str(caught.value)


class TestLikeTheStore:
    def test_what_it_knows_is_what_the_store_knows(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as remote:
            far = make(remote, "ads", capital=500, lease=60)
            for i, play in enumerate(far.ask(20)):
                far.tell(play, 0.1 * (i % 10)) if i % 5 else far.fail(play, 0.25)
            far.add_arm("d")
            far.retire_arm("b")
            far.note("hello")
            far.set_policy(MFUCB(rho=1))
            far.ask(3, lease=30)
            with Store(tmp_path / "a.db", read_only=True) as local:
                near = local.open("ads")
                for what in ("id", "name", "state", "paused", "policy", "fidelities", "capital", "lease", "events",
                             "arms", "spent", "reserved", "retired", "set_aside", "pending", "log"):  # fmt: skip
                    assert getattr(far, what) == getattr(near, what), what
                assert list(far.records()) == list(near.records())
                assert list(far.records(after=30)) == list(near.records(after=30))
                assert far.best() == near.best()
                same(far.stats, near.stats, "counts", "sums", "squares", "pending", "active")
                same(far.history, near.history, "arms", "fidelities", "rewards", "costs")
                for rho in (None, 0.5):
                    same(far.bounds(rho), near.bounds(rho), "plays", "means", "widths", "lower", "upper")
                assert str(far.bounds()) == str(near.bounds())
                assert far.definition == json.loads(json.dumps(near.definition))
                assert far.audit() == near.audit()
                assert far.confidence(0.9) == near.confidence(0.9)
                assert far.results_at == near.results_at
                again = mfbandit.Experiment.from_json(far.to_json())
                assert [(play.arm, play.fidelity) for play in again.ask(5)] == [
                    (play.arm, play.fidelity) for play in far.ask(5)
                ]

    def test_bounds_and_audit_are_of_one_moment(self, lossy, proxy, name):
        experiment = make(lossy, name)
        experiment.tell(experiment.ask(), 0.5)
        proxy.passed.clear()
        bounds, audit = experiment.bounds(), experiment.audit()
        address = f"/api/experiments/{name}"
        assert proxy.passed == [("GET", f"{address}/bounds"), ("GET", f"{address}/stats")]
        assert (bounds.plays.shape, len(audit.fidelities)) == ((2, 3), 1)

    def test_they_are_of_one_moment_while_others_change_everything(self, store, name):
        """Arms are added while bounds are read: none is without its numbers."""
        experiment = make(store, name)
        with ThreadPoolExecutor(1) as pool:
            adding = pool.submit(lambda: [experiment.add_arm(f"new-{i}") for i in range(100)])
            while not adding.done():
                assert len(str(experiment.bounds()).splitlines()) > 1
                experiment.audit()
            adding.result()

    def test_it_is_an_experiment_to_type_checkers(self, store, tmp_path, name):
        """And so is one in a store, and one in memory; mypy sees to it."""
        remote: RemoteExperiment = make(store, name)
        with Store(tmp_path / "a.db") as local:
            durable: DurableExperiment = make(local, name)
            memory = mfbandit.Experiment(MFUCB(), arms=3, fidelities=FIDELITIES)
            kinds: list[AnyExperiment] = []
            one: AnyExperiment = remote
            kinds.append(one)
            one = durable
            kinds.append(one)
            one = memory
            kinds.append(one)
            assert [kind.remote for kind in kinds] == [True, False, False]
            assert [kind.with_patience(3.0).state for kind in kinds] == ["running"] * 3

    def test_many_at_once(self, store, name):
        experiment = make(store, name, capital=1234)
        plays = experiment.ask(5000)  # more than fit into one request, or into the capital
        assert len({play.id for play in plays}) == len(plays) == 1234
        due = experiment.renew_many(plays[:10], lease=60)
        assert list(due) == [play.id for play in plays[:10]]
        experiment.fail_many(plays[:1000])
        experiment.set_biases([0.4, 0])
        assert experiment.fidelities.biases == (0.4, 0.0)
        assert experiment.set_aside == (0, 1, 2)

    def test_errors_are_the_same(self, store, name):
        experiment = make(store, name, capital=2)
        with pytest.raises(NoResults):
            experiment.best()
        with pytest.raises(UnknownPlay, match="nobody-0"):
            experiment.tell("nobody-0", 1.0)
        with pytest.raises(ValueError, match="reward must be a number, got 'x'"):
            experiment.tell(experiment.ask(), "x")
        with pytest.raises(ValueError, match="arm must be the name of an arm, got 'z'"):
            experiment.retire_arm("z")
        experiment.ask()
        with pytest.raises(CapitalExhausted):
            experiment.ask()
        with pytest.raises(mfbandit.ExperimentPaused):
            experiment.pause() or experiment.ask()
        with pytest.raises(UnknownExperiment, match="'no-such'"):
            store.open("no-such")

    @pytest.mark.parametrize("bad", ["", "..", ".", "a/b", "a?b", "a#b", "%2e", "a b", "é", None, 3])
    def test_names_that_are_parts_of_addresses_are_refused_here(self, store, bad):
        for use in (lambda: make(store, bad), lambda: store.open(bad), lambda: store.delete(bad, confirm=bad)):
            with pytest.raises(ValueError, match="an experiment's name must be"):
                use()

    def test_numbers_may_be_numpys(self, store, name):
        experiment = make(store, name)
        play = experiment.ask(np.int64(1))[0]
        experiment.tell(play, np.float32(0.5), cost=np.float64(0.5))
        experiment.add_results([(np.int64(1), np.int64(0), np.float64(0.5), None)])
        experiment.retire_arm(np.int64(2))
        assert (experiment.spent, experiment.retired) == (1.5, (2,))

    def test_plays_go_on_until_the_capital_is_spent(self, store, name):
        experiment = make(store, name, capital=30)
        for play in experiment.plays():
            experiment.tell(play, 0.5)
        assert experiment.state == "exhausted"
        assert len(experiment.history.rewards) == sum(experiment.status()["results"])


def same(one, other, *fields):
    for field in fields:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


def work(experiment, times):
    for _ in range(times):
        experiment.tell(experiment.ask(), 0.5)


class TestSharing:
    def test_threads(self, store, name):
        experiment = make(store, name)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: work(experiment, 10), range(8)))
        assert sum(experiment.status()["results"]) == 80

    @pytest.mark.parametrize("way", ["fork", "spawn"])
    def test_processes(self, store, name, way):
        """Forked off with connections open, or started anew with a pickled copy."""
        experiment = make(store, name)
        work(experiment, 1)
        workers = [multiprocessing.get_context(way).Process(target=work, args=(experiment, 5)) for _ in range(2)]
        for worker in workers:
            worker.start()
        work(experiment, 5)
        for worker in workers:
            worker.join(30)
            assert worker.exitcode == 0
        assert sum(experiment.status()["results"]) == 16

    def test_pickled_it_is_the_same(self, store, name):
        experiment = make(store, name)
        play = experiment.ask()
        again, other = pickle.loads(pickle.dumps((experiment, store)))
        with other:
            again.tell(play, 0.5)
            assert experiment.spent == 1
            assert repr(again) == repr(experiment)
            assert other.list() == store.list()

    def test_closed_by_another_thread_in_the_middle_it_connects_anew(self, service, monkeypatch):
        closed = httpx.Client(base_url=service.url)
        closed.close()
        real, first = Connections.client, iter([closed])
        monkeypatch.setattr(Connections, "client", lambda one, url: next(first, None) or real(one, url))
        with connect(service.url) as store:
            assert store.list() == store.list()

    def test_patience_of_one_is_not_that_of_others(self):
        patient = Transport(Connections("http://127.0.0.1:1", None), patience=60)
        hurried = patient.with_patience(0.1)
        assert (patient._patience, hurried._patience) == (60, 0.1)
        assert patient.with_patience(100)._patience == 60
        assert patient._connections is hurried._connections

    def test_threads_that_begin_at_once_share_their_connections(self, service, monkeypatch):
        """What one of them opens in vain is closed again."""
        made, gate = [], threading.Barrier(4)

        def slow(*given):
            gate.wait()
            made.append(real(*given))
            return made[-1]

        real = mfbandit.service.transport._new_client
        monkeypatch.setattr(mfbandit.service.transport, "_new_client", slow)
        with connect(service.url) as store, ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: store.list(), range(4)))
            assert [client.is_closed for client in made].count(False) == 1
        assert all(client.is_closed for client in made)
