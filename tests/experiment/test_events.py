import pytest

from mfbandit.experiment import events


@pytest.mark.parametrize(
    "event",
    [
        events.Asked(0, 1, 2),
        events.Told(0, 0.1, 1.0),
        events.Failed(0, 0.0),
        events.ArmAdded("x"),
        events.ArmRetired(3),
        events.ArmSetAside(3),
        events.ArmRestored(3),
    ],
)
def test_there_and_back(event):
    assert events.from_record(events.to_record(event)) == event


def test_unknown_or_incomplete():
    with pytest.raises(ValueError, match=r"event must be one of .*'Asked'.*, got 'Eaten'"):
        events.from_record({"event": "Eaten"})
    with pytest.raises(ValueError, match=r"a Told event must have exactly \['play', 'reward', 'cost'\]"):
        events.from_record({"event": "Told", "play": 1})
