"""What a TOML file may say, and what is said about files that may not."""

import numpy as np
import pytest

from mfbandit import (
    LUCB,
    MFUCB,
    UCB,
    Bernoulli,
    Bounded,
    Gaussian,
    MFAda,
    MFAuto,
    MFBayes,
    MFTopTwo,
    SubGaussian,
    paper_problem,
)
from mfbandit.cli.config import Config
from mfbandit.cli.problem_files import as_toml, described
from mfbandit.cli.toml_table import NUMBER
from mfbandit.problems.builtin import misleading_problem
from mfbandit.problems.learning_curves import learning_curve_problem

OWN = """
[problem]
means = [[0.5, 0.4], [0.4, 0.6]]
rewards = "gaussian"
sigma = [0.1, 0.2]

[fidelities]
costs = [1, 10]
biases = [0.2, 0]
scale = 0.2
names = ["short", "long"]
"""


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "problem.toml"
        path.write_text(text)
        return Config(path)

    return write


class TestProblems:
    def test_ones_own(self, config):
        problem = config(OWN).problem()
        assert problem.means.tolist() == [[0.5, 0.4], [0.4, 0.6]]
        assert problem.rewards == Gaussian([0.1, 0.2])
        assert problem.fidelities.tails == (SubGaussian(0.2), SubGaussian(0.2))
        assert problem.fidelities.labels == ("short", "long")

    def test_bernoulli_and_a_range(self, config):
        problem = config(
            '[problem]\nmeans = [[0.5, 0.4]]\nrewards = "bernoulli"\n[fidelities]\ncosts = [1]\nrange = [0, 1]\n'
        ).problem()
        assert problem.rewards == Bernoulli()
        assert problem.fidelities.tails == (Bounded(0, 1),)

    def test_noise_of_each_fidelity(self, config):
        told = config(OWN.replace("scale = 0.2", "scale = [0.1, 0.3]")).fidelities()
        assert told.tails == (SubGaussian(0.1), SubGaussian(0.3))

    def test_noise_may_be_unknown(self, config):
        assert config("[fidelities]\ncosts = [1, 2]\n").fidelities().concentration is None

    @pytest.mark.parametrize("given", ['"bounded"', "1", "[0, 1]"])
    def test_noise_in_the_words_of_python(self, config, given):
        with pytest.raises(ValueError, match=r"\[fidelities\] concentration must be written as range = \[low, high\]"):
            config(f"[fidelities]\ncosts = [1, 2]\nconcentration = {given}\n").fidelities()

    def test_ready_ones(self, config):
        assert config("[problem]\npaper = 3\nseed = 5\n").problem().digest == paper_problem(3, 5).digest
        assert config("[problem]\nmisleading = 7\n").problem().digest == misleading_problem(7).digest
        assert config('[problem]\nlearning_curve = "cmc"\n').problem().digest == learning_curve_problem("cmc").digest
        assert config("[problem]\nlearning_curve = 23\n").problem().digest == learning_curve_problem("cmc").digest

    @pytest.mark.parametrize("name", ["1", "2", "3", "4", "misleading", "cmc"])
    def test_described_problems_are_read_back_to_the_last_digit(self, config, name):
        again = config(described(name, seed=4))
        problem = {"misleading": misleading_problem, "cmc": lambda: learning_curve_problem("cmc")}.get(
            name, lambda: paper_problem(int(name), 4)
        )()
        assert again.problem().digest == problem.digest
        assert again.problem().fidelities.tails == problem.fidelities.tails
        assert again.policies() == [MFUCB(2.0), UCB(2.0)]
        full = 40 * problem.arms * problem.fidelities.costs[-1]
        assert all(again.table(job).need("capital", NUMBER) == full for job in ("simulate", "theory", "plan"))

    def test_scales_of_each_fidelity_are_written(self, config):
        problem = config(OWN.replace("scale = 0.2", "scale = [0.1, 0.3]")).problem()
        assert "scale = [0.1, 0.3]" in as_toml(problem)
        assert np.array_equal(config(as_toml(problem)).problem().means, problem.means)

    def test_replayed_rewards_cannot_be_written(self):
        with pytest.raises(ValueError, match="must have Gaussian or Bernoulli rewards to be written out"):
            as_toml(learning_curve_problem("cmc"))


class TestPolicies:
    def test_those_by_default(self, config):
        assert config("").policies() == [MFAuto(), MFUCB(), UCB()]

    def test_given_ones(self, config):
        text = '[[policies]]\nname = "UCB"\n[[policies]]\nname = "MFUCB"\nrho = 0.5\n'
        assert config(text).policies() == [UCB(), MFUCB(0.5)]


HAS_COST = "[fidelities] needs the key costs, a list of numbers; it has cost, did you mean costs?"


def test_parameters_of_every_kind(config):
    lucb = '[[policies]]\nname = "LUCB"\nbest_mean = 1\nsecond_mean = 0.5\nexplore = "B"\n'
    assert config(lucb).policies() == [LUCB(1.0, 0.5, explore="B")]
    text = '[[policies]]\nname = "MFUCB"\nrho = 2\nkl = true\n[[policies]]\nname = "MFBayes"\nkappa = 3\n[[policies]]\nname = "MFAda"\n[[policies]]\nname = "MFTopTwo"\ncapital = 50\nshare = 0.5\n'
    assert config(text).policies() == [MFUCB(2.0, kl=True), MFBayes(kappa=3.0), MFAda(), MFTopTwo(50, share=0.5)]
    with pytest.raises(ValueError, match="number 1 kl must be true or false, got 1"):
        config('[[policies]]\nname = "MFUCB"\nkl = 1\n').policies()


WRONG = {
    "not TOML": ("[problem\n", "must be TOML: "),
    "an unknown table": ("[problems]\npaper = 1\n", "problem.toml: has no table problems; did you mean problem?"),
    "no problem": ("[simulate]\ncapital = 1\n", "the table [problem] is missing; it needs one of the keys paper,"),
    "no fidelities": ('[problem]\nmeans = [[1]]\nrewards = "bernoulli"\n', "the table [fidelities] is missing"),
    "a misspelt key": (
        OWN.replace("biases", "biasses"),
        "problem.toml: [fidelities] has no key biasses; did you mean biases?",
    ),
    "a key from nowhere": (
        OWN + "xyz = 1\n",
        "[fidelities] has no key xyz; it may have costs, biases, names, scale, range",
    ),
    "no costs": (
        OWN.replace("costs = [1, 10]", ""),
        "problem.toml: [fidelities] needs the key costs, a list of numbers",
    ),
    "a misspelt needed key": (OWN.replace("costs", "cost"), HAS_COST),
    "costs as text": (OWN.replace("[1, 10]", '"cheap"'), "[fidelities] costs must be a list of numbers, got 'cheap'"),
    "costs with a flag": (
        OWN.replace("[1, 10]", "[1, true]"),
        "[fidelities] costs must be a list of numbers, got [1, True]",
    ),
    "impossible costs": (
        OWN.replace("[1, 10]", "[10, 1]"),
        "[fidelities] costs must be strictly increasing, got [10.0, 1.0]",
    ),
    "noise twice": (OWN + "range = [0, 1]\n", "[fidelities] scale and range must not both be given"),
    "a range of one": (OWN.replace("scale = 0.2", "range = [1]"), "[fidelities] range must be two numbers"),
    "negative noise": (
        OWN.replace("scale = 0.2", "scale = -1"),
        "[fidelities] scale must be positive and finite, got -1",
    ),
    "unknown rewards": (
        OWN.replace("gaussian", "normal"),
        "[problem] rewards must be 'gaussian' or 'bernoulli', got 'normal'",
    ),
    "no sigma": (OWN.replace("sigma = [0.1, 0.2]", ""), "[problem] needs the key sigma, a number or a list of numbers"),
    "negative sigma": (OWN.replace("[0.1, 0.2]", "-1"), "[problem] sigma must be finite and not negative, got -1"),
    "means beyond biases": (OWN.replace("[0.5, 0.4]", "[0.9, 0.4]"), "[problem] means must lie within their biases"),
    "a paper problem 5": ("[problem]\npaper = 5\n", "[problem] paper must be 1, 2, 3 or 4, got 5"),
    "a paper problem in words": ('[problem]\npaper = "one"\n', "[problem] paper must be a whole number, got 'one'"),
    "a ready problem with fidelities": (
        "[problem]\npaper = 1\n[fidelities]\ncosts = [1]\n",
        "brings its own fidelities",
    ),
    "an unknown data set": ('[problem]\nlearning_curve = "x"\n', "[problem] learning_curve must be one of"),
    "too many digits": ("[problem]\npaper = 1" + 5000 * "0", "must be TOML: "),
    "deep nesting": ("x = " + 5000 * "[" + 5000 * "]", "must be TOML: "),
    "one misleading arm": (
        "[problem]\nmisleading = 1\n",
        "[problem] misleading must be a number of arms from 2 to 10,000,000, got 1",
    ),
    "a negative seed": ("[problem]\npaper = 1\nseed = -1\n", "[problem] seed must not be negative, got -1"),
    "a table that is none": ("problem = 3\n", "problem must be a table, [problem], got 3"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_problems(config, text, said):
    with pytest.raises(ValueError, match=r"problem\.toml") as error:
        config(text).problem()
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[policies]]\nname = "UBC"\n',
            "name must be one of IISE, LUCB, MFAda, MFAuto, MFBayes, MFGrad, MFSure, MFTopTwo, MFUCB, Thompson, UCB, got 'UBC'",
        ),
        ('[[policies]]\nname = "MFTopTwo"\n', "[[policies]] number 1 needs the key capital, a finite number"),
        ("[[policies]]\nrho = 2\n", "[[policies]] number 1 needs the key name, text in quotes"),
        ('[[policies]]\nname = "UCB"\nrho = "two"\n', "[[policies]] number 1 rho must be a finite number, got 'two'"),
        ('[[policies]]\nname = "UCB"\nrho = -2\n', "[[policies]] number 1 rho must be positive and finite, got -2"),
        ('[[policies]]\nname = "UCB"\nroh = 2\n', "[[policies]] number 1 has no key roh; did you mean rho?"),
        ("policies = 3\n", "policies must be tables, [[policies]], got 3"),
    ],
)
def test_wrong_policies(config, text, said):
    with pytest.raises(ValueError, match=r"problem\.toml") as error:
        config(text).policies()
    assert said in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"File not found: .*nothing\.toml"):
        Config(tmp_path / "nothing.toml")


def test_a_byte_order_mark_is_fine(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf[problem]\npaper = 3\n")
    assert Config(path).problem().arms == 200


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "picture.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"picture\.toml must be TOML"):
        Config(path)


def test_unknown_names_to_describe():
    with pytest.raises(ValueError, match=r"name must be 1, 2, 3, 4, misleading or one of .*cmc.*, got '5'"):
        described("5")
