"""Whether cheap looks mislead, in words that need no paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mfbandit.core import Audit, Fidelities, FidelityAudit, Stats, needed_bias, scales
from mfbandit.experiment import conflicting
from mfbandit.policies import Policy
from mfbandit.service.reward_unit import RewardUnit

ARMS_NAMED = 5
CANDIDATES = 10  # arms whose results at two fidelities are compared closely


@dataclass(frozen=True)
class BiasSentence:
    """What is known of one fidelity, or of one arm at it.

    Args:
        mark: "misleads", "off" (on average), "fine" or "untested".
        text: in words.
    """

    mark: str
    text: str


def bias_sentences(
    found: Audit | None, stats: Stats, fidelities: Fidelities, labels: Sequence[str]
) -> list[BiasSentence]:
    """Say for each fidelity below the highest whether looks there mislead.

    Args:
        found: the test of biases; None where it cannot be made.
        stats: all results.
        fidelities: the fidelities.
        labels: the names of arms.

    >>> from mfbandit import Fidelities, SubGaussian
    >>> from mfbandit.core import audit
    >>> fid = Fidelities([1, 60], [0.1, 0], SubGaussian(0.1), ["a minute", "an hour"])
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:], stats.sums[:] = 50, [[45.0], [15.0]]
    >>> bias_sentences(audit(stats, fid, ["ad 8"]), stats, fid, ["ad 8"])[0].text
    'Looks at a minute overstate ad 8: 0.9 there, 0.3 at an hour. At most 0.1 apart was assumed, so they do not count.'
    """
    if found is None:
        return []
    said: list[BiasSentence] = []
    for one in found.fidelities:
        said += [_of_arm(arm, one, stats, fidelities, labels) for arm in one.refuting[:ARMS_NAMED]]
        if len(one.refuting) > ARMS_NAMED:
            more = len(one.refuting) - ARMS_NAMED
            said.append(BiasSentence("misleads", f"Looks at {one.name} mislead about {more:,} more arms."))
        said += [] if one.refuting else _most_misled(one, stats, fidelities, labels)
        said.append(_on_average(one, fidelities))
    return said


def _of_arm(arm: int, one: FidelityAudit, stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> BiasSentence:
    unit, top = RewardUnit.of(fidelities), fidelities.labels[-1]
    here, there = (float(stats.means[m, arm]) for m in (one.fidelity, -1))
    word = "overstate" if here > there else "understate"
    text = f"Looks at {one.name} {word} {labels[arm]}: {unit.value(here)} there, {unit.value(there)} at {top}."
    return BiasSentence(
        "misleads", f"{text} At most {unit.gap(one.bias or 0.0)} apart was assumed, so they do not count."
    )


def _on_average(one: FidelityAudit, fidelities: Fidelities) -> BiasSentence:
    unit, looks = RewardUnit.of(fidelities), f"looks at {one.name}"
    if not one.arms:
        return BiasSentence("untested", f"Whether {looks} mislead is not known yet: no arm was looked at both ways.")
    arms = f"{one.arms:,} arm{'s' * (one.arms != 1)}"
    if one.offset_low <= 0 <= one.offset_high:
        text = f"On average, {looks} neither overstate nor understate {arms}, as far as one can tell"
        mark = "fine"
    else:
        word, ends = (
            ("overstate", (-one.offset_high, -one.offset_low))
            if one.offset < 0
            else (
                "understate",
                (one.offset_low, one.offset_high),
            )
        )
        text = f"On average, {looks} {word} {arms} by {unit.gap(ends[0], 2)} to {unit.gap(ends[1], 2)}"
        mark = "off"
    if one.bias is None:
        return BiasSentence(mark, f"{text}.")
    held = "" if one.refuting else f"; none by more than the assumed {unit.gap(one.bias)}, by all results"
    return BiasSentence(mark, f"{text}{held}.")


def arm_bias_sentences(
    arm: int, found: Audit | None, policy: Policy, stats: Stats, fidelities: Fidelities, labels: Sequence[str]
) -> list[BiasSentence]:
    """Say whether looks at lower fidelities mislead about one arm.

    Args:
        arm: which one.
        found: the test of biases; None where it cannot be made.
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the fidelities.
        labels: the names of arms.
    """
    surely = [said for m in range(len(fidelities) - 1) if (said := _misled(arm, m, stats, fidelities, labels))]
    return surely or suspicions([arm], found, policy, stats, fidelities, labels)


def _misled(arm: int, m: int, stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> BiasSentence | None:
    """Say by how much looks at a fidelity mislead about an arm at least; None where that may be nothing."""
    if not (stats.counts[m, arm] and stats.counts[-1, arm]) or scales(fidelities) is None:
        return None
    least = needed_bias(stats, m, arm, fidelities)
    if not least > 0:
        return None
    unit, names = RewardUnit.of(fidelities), fidelities.labels
    here, there = (float(stats.means[row, arm]) for row in (m, -1))
    word = "overstate" if here > there else "understate"
    text = f"Looks at {names[m]} {word} {labels[arm]} by at least {unit.gap(least, 2)}: "
    return BiasSentence("off", f"{text}{unit.value(here)} there, {unit.value(there)} at {names[-1]}.")


def _most_misled(one: FidelityAudit, stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> list[BiasSentence]:
    """Say about which arm looks at a fidelity mislead most; nothing where about none."""
    counts = (
        stats.counts[one.fidelity] * stats.counts[-1] / np.maximum(stats.counts[one.fidelity] + stats.counts[-1], 1)
    )
    gaps = np.abs(np.nan_to_num(stats.means[one.fidelity] - stats.means[-1])) * np.sqrt(counts)
    arms = [arm for arm in np.argsort(-gaps)[:CANDIDATES].tolist() if counts[arm] and arm not in one.refuting]
    if not arms or scales(fidelities) is None:
        return []
    most = max(arms, key=lambda arm: needed_bias(stats, one.fidelity, arm, fidelities))
    said = _misled(most, one.fidelity, stats, fidelities, labels)
    return [] if said is None else [said]


def suspicions(
    arms: Sequence[int],
    found: Audit | None,
    policy: Policy,
    stats: Stats,
    fidelities: Fidelities,
    labels: Sequence[str],
) -> list[BiasSentence]:
    """Say about which arms looks at lower fidelities seem to mislead, short of a refutation.

    Args:
        arms: those to look at.
        found: the test of biases; None where it cannot be made.
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the fidelities.
        labels: the names of arms.

    >>> from mfbandit import MFUCB, Fidelities, SubGaussian
    >>> from mfbandit.core import audit
    >>> fid = Fidelities([1, 60], [0.1, 0], SubGaussian(0.1), ["a minute", "an hour"])
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:], stats.sums[:] = 2, [[1.0], [1.5]]
    >>> suspicions([0], audit(stats, fid, ["ad 8"]), MFUCB(), stats, fid, ["ad 8"])
    []
    >>> stats.counts[:], stats.sums[:] = 2, [[1.8], [0.9]]
    >>> suspicions([0], audit(stats, fid, ["ad 8"]), MFUCB(), stats, fid, ["ad 8"])[0].text
    'Looks at a minute seem to overstate ad 8: 0.9 there, 0.45 at an hour. That is not certain yet.'
    """
    unit, top, said = RewardUnit.of(fidelities), fidelities.labels[-1], []
    for arm in arms:
        for m in conflicting(policy, stats, fidelities, arm):
            if found is None or arm in found.fidelities[m].refuting:
                continue
            here, there = (float(stats.means[row, arm]) for row in (m, -1))
            word = "overstate" if here > there else "understate"
            text = f"Looks at {fidelities.labels[m]} seem to {word} {labels[arm]}: {unit.value(here)} there, "
            said.append(BiasSentence("off", f"{text}{unit.value(there)} at {top}. That is not certain yet."))
    return said
