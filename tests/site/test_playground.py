"""The playground's script makes the package's plays: the same rewards, told to both, in a real browser."""

import math
from pathlib import Path
from typing import Any

import pytest

import mfbandit as mfb
from tests.support.browsers import chromium

FOLDER = Path(__file__).parents[2] / "docs" / "playground"
PLAYS = 10_000
WORD = 0xFFFFFFFF

GAUSSIAN: dict[str, Any] = {
    "arms": 8,
    "costs": [1, 10, 100],
    "biases": [0.2, 0.1, 0],
    "scale": 0.2,
    "rho": 2,
    "seed": 1,
}
BINARY: dict[str, Any] = {"arms": 12, "costs": [1, 20], "biases": [0.15, 0], "binary": True, "rho": 0.5, "seed": 2}
MISLED: dict[str, Any] = {
    "arms": 5,
    "costs": [1, 4, 9],
    "biases": [0.3, 0.2, 0],
    "scale": 0.5,
    "rho": 2,
    "seed": 3,
    "misleading": True,
}
ONE_FIDELITY: dict[str, Any] = {"arms": 6, "costs": [3], "biases": [0], "binary": True, "rho": 2, "seed": 4}

RUN = """([settings, plays, multi]) => {
    const problem = { ...settings, means: Bandits.means(settings) };
    const run = new Bandits.Run(problem, multi);
    const made = [];
    for (let i = 0; i < plays; i++) { const p = run.step(); made.push([p.arm, p.fidelity, p.reward, p.index]); }
    return { means: problem.means, made, gammas: run.gammas, best: run.recommend() };
}"""


@pytest.fixture(scope="module")
def page():
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(path=FOLDER / "bandits.js")
        yield page


def mixed(h, value):
    """The script's mixing of two numbers of 32 bits."""
    h = (h ^ value) * 0x9E3779B1 & WORD
    h = (h ^ h >> 15) * 0x85EBCA6B & WORD
    return h ^ h >> 13


def uniform(*numbers):
    h = 1
    for number in (*numbers, 77):
        h = mixed(h, number)
    return h / 2**32


def reward(settings, means, arm, fidelity, n):
    """The reward of the n-th play of an arm at a fidelity, as the script draws it."""
    mean, cell = means[fidelity][arm], (settings["seed"], 3, fidelity, arm, n)
    if settings.get("binary"):
        return float(uniform(*cell) < mean)
    total = 0.0  # not sum(), which rounds in another way from Python 3.12 on
    for i in range(12):
        total += uniform(*cell, i)
    return mean + settings["scale"] * (total - 6)


@pytest.mark.parametrize("policy", [mfb.MFUCB, mfb.UCB], ids=["MF-UCB", "UCB"])
@pytest.mark.parametrize(
    "settings", [GAUSSIAN, BINARY, MISLED, ONE_FIDELITY], ids=["gaussian", "binary", "misled", "one"]
)
def test_plays_are_the_packages(page, settings, policy):
    multi = policy is mfb.MFUCB
    theirs = page.evaluate(RUN, [settings, PLAYS, multi])
    noise = mfb.Bounded(0, 1) if settings.get("binary") else mfb.SubGaussian(settings["scale"])
    fidelities = mfb.Fidelities(settings["costs"], settings["biases"], noise)
    experiment = mfb.Experiment(policy(rho=settings["rho"]), arms=settings["arms"], fidelities=fidelities)
    counts = [[0] * settings["arms"] for _ in settings["costs"]]
    for arm, fidelity, told, _ in theirs["made"]:
        play = experiment.ask()
        assert (play.arm, play.fidelity) == (arm, fidelity), sum(map(sum, counts))
        given = reward(settings, theirs["means"], arm, fidelity, counts[fidelity][arm])
        assert given == told
        counts[fidelity][arm] += 1
        experiment.tell(play, given)
    assert theirs["best"] == experiment.best()
    assert theirs["gammas"] == list(fidelities.gammas)


def test_means_keep_their_biases(page):
    means = page.evaluate("settings => Bandits.means(settings)", MISLED)
    for row, bias in zip(means, MISLED["biases"], strict=True):
        assert max(abs(low - top) for low, top in zip(row, means[-1], strict=True)) <= bias + 1e-15


def test_logarithms_are_pythons(page):
    """Math.log of Chromium differs at one number in a hundred, and ties then break apart."""
    theirs = page.evaluate("n => Array.from({ length: n }, (_, i) => Bandits.log(i + 1))", PLAYS)
    different = [t for t in range(1, PLAYS + 1) if theirs[t - 1] != math.log(t)]
    assert set(different) <= {9170}  # which glibc rounds to the other side


def test_is_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.js")) < 60_000
