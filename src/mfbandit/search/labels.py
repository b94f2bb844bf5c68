"""Names of candidates, made from their settings."""

from collections import Counter
from collections.abc import Mapping, Sequence

MAX_LABEL_CHARACTERS = 60


def settings_label(settings: Mapping[str, object]) -> str:
    """Name a candidate by its settings, cut off where that is long.

    >>> settings_label({"depth": 3, "rate": 0.1234567})
    'depth=3, rate=0.123457'
    """
    label = ", ".join(f"{key}={_short(value)}" for key, value in settings.items())
    return label if len(label) <= MAX_LABEL_CHARACTERS else label[: MAX_LABEL_CHARACTERS - 3] + "..."


def unique_labels(labels: Sequence[str]) -> list[str]:
    """Number the labels that occur more than once.

    >>> unique_labels(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: Counter[str] = Counter()
    taken = set(labels)
    unique = []
    for one in labels:
        seen[one] += 1
        label = one
        while seen[one] > 1 and label in taken:
            label = f"{one} ({seen[one]})"
            if label in taken:
                seen[one] += 1
        taken.add(label)
        unique.append(label)
    return unique


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
