"""A policy with a capital of its own: it follows that of its experiment."""

import pytest

from mfbandit import Experiment, Fidelities, MFTopTwo, Store

FID = Fidelities([1, 5])


class TestCapitalOfThePolicy:
    def test_follows_where_the_two_were_equal(self):
        experiment = Experiment(MFTopTwo(capital=60), arms=4, fidelities=FID, capital=60)
        experiment.tell(experiment.ask(), 0.5)
        experiment.set_capital(90)
        assert experiment.policy == MFTopTwo(capital=90)
        assert [type(event).__name__ for event in experiment.log][-2:] == ["CapitalSet", "PolicySet"]
        again = Experiment.from_json(experiment.to_json())
        assert again.policy == experiment.policy
        assert [(play.arm, play.fidelity) for play in again.ask(9)] == [
            (play.arm, play.fidelity) for play in experiment.ask(9)
        ]

    @pytest.mark.parametrize(("own", "capital"), [(50, 90), (60, None)])
    def test_else_it_stays_as_it_was(self, own, capital):
        experiment = Experiment(MFTopTwo(capital=own), arms=4, fidelities=FID, capital=60)
        experiment.set_capital(capital)
        assert experiment.policy == MFTopTwo(capital=own)

    def test_one_request_in_a_store(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            kept = store.create("a", MFTopTwo(capital=60), arms=4, fidelities=FID, capital=60)
            kept.set_capital(90, request_key="k")
            kept.set_capital(90, request_key="k")
            assert kept.policy == MFTopTwo(capital=90)
        with Store(tmp_path / "a.db") as store:
            kept = store.open("a")
            kept.set_capital(90, request_key="k")
            assert [type(event).__name__ for event in kept.log].count("PolicySet") == 1
