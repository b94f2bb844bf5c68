"""Numbers at the ends of what a float holds: refused by name, or calculated with; never a bug."""

import json
import math
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Bounded, Experiment, Fidelities, MFBayes, MFTopTwo, Store, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.service.app import create_app
from tests.support.effort import examples
from tests.support.in_process import InProcess
from tests.support.services import FIDELITIES, problem

JSON = {"content-type": "application/json"}
SIZES = [1e308, 1.7e308, 1e200, 1e151, 1e150, 1e100, 1e16, 1e-10, 1e-100, 1e-150, 1e-151, 1e-200, 1e-320, 5e-324]
EXTREMES = [*SIZES, *(-size for size in SIZES), 0, -0.0, 1, 2, 10**16, 2**53 + 1, 10**400, -(10**400)]
VIEWS = ("", "/bounds", "/audit", "/confidence", "/best", "/stats", "/pending", "/log", "/export")
HUGE = pytest.param(10**5000, id="5000 digits")
NEGATIVE = pytest.param(-(10**400), id="negative of 400 digits")
numbers = st.sampled_from(EXTREMES)
sizes = st.sampled_from([size for size in EXTREMES if size > 0])


class Place:
    """Experiments of a service in this process: every answer is one that is meant."""

    def __init__(self, store):
        self._door, self._made = InProcess(create_app(store)), 0

    def post(self, address, body):
        answer = self._door.post(f"/api/experiments{address}", content=json.dumps(body), headers=JSON)
        assert answer.status_code < 500, (address, body, answer.text)
        return answer

    def create(self, body):
        """Its address, or nothing where it was refused."""
        self._made += 1
        answer = self.post("", {"name": f"e{self._made}", **body})
        if answer.status_code != 201:
            problem(answer, 422, "invalid", "got")
            return None
        return f"/e{self._made}"

    def look(self, address):
        for view in VIEWS:
            answer = self._door.get(f"/api/experiments{address}{view}")
            assert answer.status_code < 500, (view, answer.text)
        for page in ("/", f"/experiments{address}"):
            assert self._door.get(page).status_code == 200

    def play(self, address, rewards, costs):
        answer = self.post(f"{address}/ask", {"n": len(rewards)})
        plays = answer.json().get("plays", [])
        for play, reward, cost in zip(plays, rewards, costs, strict=False):
            self.post(f"{address}/tell", {"results": [{"play": play["id"], "reward": reward, "cost": cost}]})


@pytest.fixture(scope="module")
def place():
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/a.db") as store:
        yield Place(store)


def policies():
    rho = st.fixed_dictionaries({"name": st.sampled_from(["MFUCB", "UCB"]), "rho": sizes, "kl": st.booleans()})
    two = st.fixed_dictionaries(
        {"name": st.just("MFTopTwo"), "capital": sizes}, optional={"kappa": sizes, "share": sizes}
    )
    return rho | two | st.sampled_from([{"name": name} for name in ("MFUCB", "UCB", "MFAda", "MFBayes")])


def noises():
    scale = st.fixed_dictionaries({"name": st.just("SubGaussian"), "scale": sizes})
    span = st.fixed_dictionaries({"name": st.just("Bounded"), "low": numbers, "high": numbers})
    return scale | span | st.sampled_from([{"name": "Bounded"}, {"name": "SubGaussian", "scale": 1}])


@settings(max_examples=examples(60))
@given(st.data())
def test_whatever_an_experiment_begins_with(place, data):
    levels = data.draw(st.integers(1, 3))
    costs = data.draw(st.just([1, 10, 100][:levels]) | st.lists(sizes, min_size=levels, max_size=levels).map(sorted))
    some = st.lists(sizes, min_size=levels - 1, max_size=levels - 1)
    falling = some.map(lambda biases: [*sorted(biases, reverse=True), 0])
    biases = data.draw(st.just([0.2, 0.1, 0][3 - levels :]) | st.none() | falling)
    capital = data.draw(st.none() | sizes)
    fidelities = {"costs": costs, "biases": biases, "concentration": data.draw(noises())}
    body = {"policy": data.draw(policies()), "arms": 2, "fidelities": fidelities, "capital": capital}
    address = place.create(body)
    if address is not None:
        rewards = data.draw(st.lists(numbers, min_size=3, max_size=3))
        place.play(address, rewards, data.draw(st.lists(st.none() | numbers, min_size=3, max_size=3)))
        place.look(address)


@settings(max_examples=examples(20))
@given(st.data())
def test_whatever_it_is_told_and_changed_to(place, data):
    policy = data.draw(st.sampled_from([{"name": name} for name in ("MFUCB", "UCB", "MFAda", "MFBayes")]))
    noise = {"name": "SubGaussian", "scale": 1.0}
    body = {"policy": policy, "arms": 3, "fidelities": {**FIDELITIES, "concentration": noise}}
    address = place.create(body)
    for _ in range(2):
        rewards = data.draw(st.lists(numbers, min_size=4, max_size=4))
        place.play(address, rewards, data.draw(st.lists(st.none() | numbers, min_size=4, max_size=4)))
        place.post(f"{address}/capital", {"capital": data.draw(numbers)})
        place.post(f"{address}/biases", {"biases": [data.draw(numbers), data.draw(st.sampled_from([0, -0.0]))]})
        place.post(f"{address}/policy", {"policy": data.draw(policies())})
        past = {"arm": 0, "fidelity": 0, "reward": data.draw(numbers), "cost": data.draw(numbers)}
        place.post(f"{address}/results", {"results": [past]})
        place.look(address)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": {"name": "MFUCB", "rho": 1e-320}}, "rho must be from 1e-150 to 1e+150, got 1e-320"),
        ({"policy": {"name": "MFUCB", "rho": 10**400}}, "rho must be at most 1e+150 in size, got 10000"),
        ({"capital": 1e-320}, "capital must pay for the first play, which costs 1 with MFAuto, got 1e-320"),
        ({"fidelities": {"costs": [1e-320, 1]}}, "costs must be from 1e-150 to 1e+150, got [1e-320, 1.0]"),
        ({"fidelities": {"costs": [1, 2], "biases": [1e151, 0]}}, "body.fidelities.biases.0: Input should be"),
        ({"fidelities": {"costs": [1], "concentration": {"name": "SubGaussian", "scale": 1e-320}}}, "scale must be"),
        ({"fidelities": {"costs": [1], "concentration": {"name": "Bounded", "low": 0, "high": 1e-320}}}, "low must be"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(place, change, said):
    body = {"name": "named", "arms": 2, "fidelities": FIDELITIES, **change}
    problem(place.post("", body), 422, "invalid", said)


class TestInMemory:
    @pytest.mark.parametrize("value", [1e308, 1e-320, 5e-324, HUGE, NEGATIVE, math.inf, math.nan, 0])
    @pytest.mark.parametrize(
        "make",
        [
            SubGaussian,
            lambda value: Bounded(0, value),
            lambda value: Bounded(-value, value),
            MFUCB,
            UCB,
            MFTopTwo,
            lambda value: MFTopTwo(10, kappa=value),
            lambda value: Fidelities([value]),
            lambda value: Fidelities([value, 1e150]),
            lambda value: Experiment(MFBayes(), arms=2, fidelities=Fidelities([1]), capital=value),
        ],
    )
    def test_a_number_that_cannot_be_calculated_with(self, make, value):
        with pytest.raises(InvalidArgument, match=r"got "):
            make(value)

    @pytest.mark.parametrize("value", [1e308, HUGE, NEGATIVE, math.inf, math.nan, 0])
    def test_a_bias_may_be_small_but_not_as_large(self, value):
        Fidelities([1, 2], [5e-324, 0], SubGaussian(1))
        with pytest.raises(InvalidArgument, match=r"got "):
            Fidelities([1, 2], [value, 0])

    @pytest.mark.parametrize("value", [1e-150, 1e150])
    def test_the_last_that_can(self, value):
        fidelities = Fidelities([1, 2], [value, 0], SubGaussian(value))
        experiment = Experiment(MFUCB(), arms=2, fidelities=fidelities)
        for _ in range(4):
            experiment.tell(experiment.ask(), value)
        experiment.bounds()
        experiment.audit()
        assert experiment.best() in (0, 1)
