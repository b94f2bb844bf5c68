"""Long work leaves the event loop: one experiment's does not hold up the others."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import httpx
import pytest

from mfbandit import MFUCB, MFBayes, Store, StoreUnavailable
from mfbandit.service import create_app
from mfbandit.service.lanes import THREADS_PER_EXPERIMENT, Lanes
from mfbandit.store import logged_experiment
from tests.support.stores import Clock, make

SHORT_SECONDS = 100.0  # what must not wait is answered long before; what waits does so for longer
HELD_SECONDS = 300.0


class Held:
    """Let a function wait for some of its calls until it is let go."""

    def __init__(self, monkeypatch, owner, name, wanted):
        self.waiting, self.go_on, inner = threading.Event(), threading.Event(), getattr(owner, name)

        def held(*args):
            if wanted(*args):
                self.waiting.set()
                self.go_on.wait(timeout=HELD_SECONDS)
            return inner(*args)

        monkeypatch.setattr(owner, name, held)


@asynccontextmanager
async def talking(store):
    transport = httpx.ASGITransport(create_app(store))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
        yield client


async def until(event):
    while not event.is_set():
        await asyncio.sleep(0.01)


async def use(client, name):
    """Ask, tell and look, within a short time."""
    async with asyncio.timeout(SHORT_SECONDS):
        address = f"/api/experiments/{name}"
        (play,) = (await client.post(f"{address}/ask", json={})).json()["plays"]
        told = await client.post(f"{address}/tell", json={"results": [{"play": play["id"], "reward": 0.5}]})
        looks = [await client.get(f"{address}{view}") for view in ("", "/best", "/arms", "/bounds", "/log")]
        looks += [await client.get(page) for page in ("/health", f"/experiments/{name}", "/api/experiments")]
        changed = await client.post(f"{address}/notes", json={"text": "hello"})
    assert {answer.status_code for answer in (told, changed, *looks)} == {200}


@pytest.mark.parametrize("requests", [1, 100], ids=["one long ask", "a hundred requests behind it"])
def test_a_long_ask_does_not_hold_up_other_experiments(tmp_path, monkeypatch, requests):
    async def check():
        with Store(tmp_path / "store.db") as store:
            make(store, "busy", policy=MFUCB(rho=7), arms=200)
            make(store, "other")
            held = Held(monkeypatch, MFUCB, "choose", lambda policy, *_: policy.rho == 7)
            async with talking(store) as client, asyncio.TaskGroup() as tasks:
                asking = tasks.create_task(client.post("/api/experiments/busy/ask", json={"n": 500}))
                await until(held.waiting)
                try:
                    paths = ["/api/experiments/busy", "/experiments/busy", "/api/experiments/busy/bounds"]
                    behind = [tasks.create_task(client.get(paths[i % 3])) for i in range(requests)]
                    behind.append(tasks.create_task(client.post("/api/experiments/busy/notes", json={"text": "x"})))
                    await asyncio.sleep(0.1)
                    await use(client, "other")
                    assert not asking.done()
                finally:
                    held.go_on.set()
                assert len((await asking).json()["plays"]) == 500
                assert {(await one).status_code for one in behind} == {200}

    asyncio.run(check())


def test_reading_again_after_a_failed_write_does_not_hold_up_others(tmp_path, monkeypatch):
    async def check():
        with Store(tmp_path / "store.db") as store:
            long = make(store, "long")
            make(store, "other")

            def full(*_):
                raise StoreUnavailable("no space left")

            with monkeypatch.context() as patch:
                patch.setattr("mfbandit.store.writer._append_all", full)
                with pytest.raises(StoreUnavailable):
                    long.note("not kept")
            held = Held(monkeypatch, logged_experiment, "read_all", lambda _, of: of.name == "long")
            async with talking(store) as client, asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(client.post("/api/experiments/long/ask", json={}))
                await until(held.waiting)
                try:
                    await use(client, "other")
                    assert not telling.done()
                finally:
                    held.go_on.set()
                assert (await telling).status_code == 200

    asyncio.run(check())


def test_fitting_a_model_of_many_arms_leaves_the_loop(tmp_path, monkeypatch):
    """Telling a result is short for most policies; one that keeps a model may fit it anew."""

    async def check():
        with Store(tmp_path / "store.db") as store:
            at_work: list[threading.Thread] = []
            remember = MFBayes.remember

            def noted(*args):
                at_work.append(threading.current_thread())
                return remember(*args)

            monkeypatch.setattr(MFBayes, "remember", noted)
            for name, arms in (("small", 20), ("large", 3000)):
                make(store, name, policy=MFBayes(), arms=arms)
            async with talking(store) as client:
                for name, on_loop in (("small", True), ("large", False)):
                    address = f"/api/experiments/{name}"
                    (play,) = (await client.post(f"{address}/ask", json={})).json()["plays"]
                    at_work.clear()
                    told = await client.post(f"{address}/tell", json={"results": [{"play": play["id"], "reward": 0.5}]})
                    assert told.status_code == 200
                    assert ({threading.current_thread()} == set(at_work)) == on_loop
                    assert at_work

    asyncio.run(check())


def test_short_verbs_stay_on_the_loop(tmp_path, monkeypatch):
    """A thread costs more than they do."""

    async def check():
        with Store(tmp_path / "store.db") as store:
            make(store, "short")
            make(store, "long", arms=1000)
            at_work: list[threading.Thread] = []
            choose = MFUCB.choose

            def noted(*args):
                at_work.append(threading.current_thread())
                return choose(*args)

            monkeypatch.setattr(MFUCB, "choose", noted)
            async with talking(store) as client:
                await client.post("/api/experiments/short/ask", json={})
                assert set(at_work) == {threading.current_thread()}
                at_work.clear()
                await client.post("/api/experiments/long/ask", json={"n": 1000})
                assert threading.current_thread() not in at_work

    asyncio.run(check())


class TestLanes:
    def test_let_a_few_in_at_a_time_and_forget_who_is_gone(self):
        async def check():
            lanes, inside, most = Lanes(), 0, 0

            async def work():
                nonlocal inside, most
                async with lanes.of("a"):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.01)
                    inside -= 1

            async with asyncio.TaskGroup() as tasks:
                for _ in range(10):
                    tasks.create_task(work())
                async with asyncio.timeout(SHORT_SECONDS), lanes.of("b"):
                    pass
            assert (most, len(lanes)) == (THREADS_PER_EXPERIMENT, 0)

        asyncio.run(check())


def test_expiry_passes_over_what_is_busy(tmp_path, monkeypatch):
    clock = Clock()
    with Store(tmp_path / "store.db", clock=clock) as store:
        busy, other = make(store, "busy", policy=MFUCB(rho=7)), make(store, "other", lease=10)
        other.ask()
        clock.now += 11
        held = Held(monkeypatch, MFUCB, "choose", lambda policy, *_: policy.rho == 7)
        asking = threading.Thread(target=busy.ask)
        asking.start()
        held.waiting.wait(timeout=HELD_SECONDS)
        start = time.monotonic()
        for experiment in (busy, other):
            experiment.expire(wait=False)
        assert time.monotonic() - start < SHORT_SECONDS
        assert other.pending_count == 0
        held.go_on.set()
        asking.join(timeout=HELD_SECONDS)
