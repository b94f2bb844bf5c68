"""Numbers as people write them: no exponent where there is room for the digits."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mfbandit
from mfbandit import MFUCB, UCB, Bounded, CapitalExhausted, Experiment, Fidelities, SubGaussian
from mfbandit._internal.formatting import plain
from mfbandit.cli.status_text import status_text

EXPONENT = re.compile(r"\de\+?\d")
# Where a number with an exponent is meant: limits, names of keys, ratios, seconds and settings of other programs.
MAY_USE_G = {"validation.py", "panels.py", "report.py", "postgres.py", "error_handlers.py", "plotting.py"}


@given(st.floats(-1e14, 1e14), st.integers(1, 12))
def test_what_is_shown_is_as_close_as_promised(value, digits):
    text = plain(value, digits)
    assert abs(float(text.replace(",", "")) - value) <= max(0.51 * 10 ** (1 - digits) * abs(value), 1e-300)
    assert not EXPONENT.search(text) or abs(value) < 1000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.5, "-0.5"), (999.5, "999.5"), (2e6, "2,000,000"), (-2e6, "-2,000,000"), (1234567.8, "1,234,568"),
        (100000, "100,000"), (123456.7, "123,457"), (1000.25, "1,000.25"), (1e-7, "1e-07"), (1e15, "1e+15"),
        (float("inf"), "inf"), (999999999999999.0, "999,999,999,999,999"),
    ],
)  # fmt: skip
def test_examples(value, text):
    assert plain(value) == text


def test_nothing_that_people_read_has_an_exponent():
    fidelities = Fidelities([2e6, 3e7], [2e6, 0], SubGaussian(1e6))
    experiment = Experiment(MFUCB(), arms=["a", "b"], fidelities=fidelities, capital=3e10)
    experiment.add_results([("a", 0, 9e7, None), ("a", 1, 1e6, 2.5e10)] * 1)
    texts = [repr(experiment), status_text(experiment.status()), str(experiment.audit()), *experiment.audit().warnings]
    texts += fidelities.advice()
    experiment.ask(10_000)
    with pytest.raises(CapitalExhausted) as refused:
        experiment.ask()
    texts.append(str(refused.value))
    assert len(texts) >= 5
    texts = [text.replace(experiment.id, "its id") for text in texts]
    assert [text for text in texts if EXPONENT.search(text)] == []
    assert "at cost 2,000,000" in texts[1]
    assert "of 30,000,000,000" in texts[1]


def test_refusals_have_none_either():
    with pytest.raises(ValueError, match=r"which costs 2,000,000 with UCB, got 5"):
        Experiment(UCB(), arms=2, fidelities=Fidelities([2e6], concentration=Bounded()), capital=5)
    bounded = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded(0, 2e6)))
    with pytest.raises(ValueError, match=r"reward must lie in 0 to 2,000,000, as the fidelities say"):
        bounded.tell(bounded.ask(), 3e6)


def test_amounts_of_capital_are_formatted_in_one_place():
    """``:g`` writes 2e+06; only where that is meant may it be used for a cost, a capital, a bias or what is spent."""
    rooms = Path(mfbandit.__file__).parent
    amount = re.compile(r"\{[^{}:]*(?:cost|capital|bias|spent|left|committed|reward)[^{}:]*:,?(?:\.\d+)?g\}")
    found = [
        f"{file.relative_to(rooms)}: {hit}"
        for file in sorted(rooms.rglob("*.py"))
        if file.name not in MAY_USE_G
        for hit in amount.findall(file.read_text())
    ]
    assert found == []
