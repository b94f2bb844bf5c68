"""Many arms that are called by their numbers: a commit does not write their names again."""

import json

from mfbandit import MFUCB, Experiment, Store
from mfbandit.experiment.checks import MAX_LABELS_LISTED
from tests.support.stores import FID, make

MANY = MAX_LABELS_LISTED + 1


def names(count):
    return list(map(str, range(count)))


def test_their_number_is_kept_and_they_are_the_same_after_opening(place):
    with Store(place) as store:
        made = make(store, arms=MANY)
        assert made.definition["arms"] == MANY
        made.add_arm("another")
        made.tell(made.ask(), 0.5)
    with Store(place) as store:
        again = store.open("exp")
        assert list(again.arms) == [*names(MANY), "another"]
        assert again.results_at[0] == 1


def test_names_of_ones_own_are_all_kept():
    for given in (["first", *names(MANY)[1:]], [*names(MANY - 1), "last"], [*names(MANY - 3), "b", "a", str(MANY - 1)]):
        assert Experiment(MFUCB(), arms=given, fidelities=FID).definition["arms"] == given


def test_what_was_written_with_a_list_still_opens():
    plain = Experiment(MFUCB(), arms=MANY, fidelities=FID)
    written = json.loads(json.dumps({**plain.definition, "arms": names(MANY)}))
    again = Experiment.from_definition(written)
    assert list(again.arms) == names(MANY)
    assert again.definition["arms"] == names(MANY)
