"""The changes of an experiment that its pages offer; each asks for confirmation, and says what it will do."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mfbandit._internal.formatting import plain, readable
from mfbandit._internal.limits import MAX_ARM_NAME_LENGTH, MAX_NOTE_LENGTH
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Sure, policy_from_record
from mfbandit.policies import Policy
from mfbandit.service.arm_view import arm_index
from mfbandit.store import DurableExperiment

Fields = dict[str, str]


@dataclass(frozen=True)
class Control:
    """A change of an experiment that a page offers, after asking for confirmation.

    Args:
        title: the question, with {name} of the experiment and the fields given.
        detail: says what will happen; raises where it cannot.
        button: the label of the button that confirms.
        act: does it, with the fields given.
        fields: the names of the form fields that it needs.
    """

    title: str
    detail: Callable[[DurableExperiment, Fields], str]
    button: str
    act: Callable[[DurableExperiment, Fields], object]
    fields: tuple[str, ...] = ()


def _capital(text: str) -> float | None:
    try:
        return None if text.strip() == "unlimited" else float(text)
    except ValueError:
        raise InvalidArgument(f"capital must be a number or unlimited, got {text!r}") from None


def _biases(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument(f"biases must be numbers with commas between them, got {text!r}") from None


def _text(what: str, text: str, most: int) -> str:
    if not text.strip():
        raise InvalidArgument(f"{what} must not be empty, got {text!r}")
    if len(text) > most:
        raise InvalidArgument(f"{what} must have at most {most:,} characters, got {len(text):,}")
    return text.strip()


def _new_arm(experiment: DurableExperiment, fields: Fields) -> str:
    label = _text("the name of an arm", fields["arm"], MAX_ARM_NAME_LENGTH)
    if label in experiment.arms:
        raise InvalidArgument(f"the name of a new arm must not be there yet, got {label!r}")
    return label


def _known_arm(experiment: DurableExperiment, fields: Fields) -> str:
    return experiment.arms[arm_index(fields["arm"], experiment.arms)]


def _rule(fields: Fields) -> Sure | None:
    level = fields["level"].strip().removesuffix("%").strip()
    if level in ("", "never"):
        return None
    try:
        sure, tolerance = float(level), float(fields["tolerance"] or 0)
    except ValueError:
        raise InvalidArgument(
            f"level and tolerance must be numbers, got {fields['level']!r} and {fields['tolerance']!r}"
        ) from None
    return Sure(sure / 100 if sure > 1 else sure, tolerance=tolerance, estimates=fields["estimates"] == "yes")


def policy_of(text: str) -> Policy:
    """Return the policy that somebody wrote: its name, and maybe parameters as name=value.

    >>> policy_of("MFUCB"), policy_of("MFUCB rho=1.5")
    (MFUCB(rho=2.0), MFUCB(rho=1.5))
    >>> policy_of("MFUCB 2")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: parameters of a policy must be given as name=value, got '2'
    """
    name, *words = re.split(r"[\s,()]+", text.strip().rstrip(")"))
    record: dict[str, object] = {"name": name}
    for word in words:
        field, given, value = word.partition("=")
        if not given:
            raise InvalidArgument(f"parameters of a policy must be given as name=value, got {word!r}")
        record[field] = _value(value)
    return policy_from_record(record)


def _value(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _about(fields: Fields, experiment: DurableExperiment) -> str | None:
    return _known_arm(experiment, fields) if fields["arm"] else None


def _note_detail(experiment: DurableExperiment, fields: Fields) -> str:
    about = _about(fields, experiment)
    text = _text("a note", fields["text"], MAX_NOTE_LENGTH)
    where = experiment.name if about is None else f"{about} in {experiment.name}"
    return (
        f"“{text}” is written into the log of {where}, with your token's name. A note stays; it changes nothing else."
    )


def _stop_detail(experiment: DurableExperiment, fields: Fields) -> str:
    rule, before = _rule(fields), experiment.stop
    now = "It goes on until its capital is spent." if rule is None else f"It stops when it is {rule.sentence}."
    was = "there was no rule" if before is None else f"it was to stop when {before.sentence}"
    again = " What was decided is no longer in force." if experiment.decided is not None else ""
    return f"{now} Until now {was}.{again}"


CONTROLS = {
    "pause": Control(
        "Pause {name}?",
        lambda experiment, _: (
            f"No plays are handed out until it is resumed. Results of pending plays, {experiment.pending_count:,} "
            f"now, are still recorded."
        ),
        "Pause",
        lambda experiment, _: experiment.pause(),
    ),
    "resume": Control(
        "Resume {name}?",
        lambda *_: "Plays are handed out again to whoever asks.",
        "Resume",
        lambda experiment, _: experiment.resume(),
    ),
    "add": Control(
        "Add {arm}?",
        lambda experiment, fields: (
            f"{_new_arm(experiment, fields)} is a new arm of {experiment.name}, and is tried before any other. An arm "
            f"can be retired, but not removed."
        ),
        "Add the arm",
        lambda experiment, fields: experiment.add_arm(_new_arm(experiment, fields)),
        ("arm",),
    ),
    "retire": Control(
        "Retire {arm}?",
        lambda experiment, fields: (
            f"{fields['arm']} is not asked for or recommended any more in {experiment.name}, until it is restored. "
            f"Results of its pending plays are still recorded."
        ),
        "Retire",
        lambda experiment, fields: experiment.retire_arm(fields["arm"]),
        ("arm",),
    ),
    "restore": Control(
        "Restore {arm}?",
        lambda experiment, fields: (
            f"{fields['arm']}, which was retired or set aside after three failures in a row, is asked for again in "
            f"{experiment.name}."
        ),
        "Restore",
        lambda experiment, fields: experiment.restore_arm(fields["arm"]),
        ("arm",),
    ),
    "forget": Control(
        "Begin {arm} anew?",
        lambda experiment, fields: (
            f"The results of {fields['arm']} in {experiment.name} until now do not count any more: it is tried as a "
            f"new arm is. What they cost stays paid, and the log keeps them."
        ),
        "Begin anew",
        lambda experiment, fields: experiment.forget(fields["arm"]),
        ("arm",),
    ),
    "capital": Control(
        "Change the capital of {name}?",
        lambda experiment, fields: (
            f"All plays together may cost {_amount(_capital(fields['capital']))} from now on, instead of "
            f"{_amount(experiment.capital)}; {readable(experiment.spent)} of it is spent already."
        ),
        "Change the capital",
        lambda experiment, fields: experiment.set_capital(_capital(fields["capital"])),
        ("capital",),
    ),
    "policy": Control(
        "Change the policy of {name}?",
        lambda experiment, fields: (
            f"{policy_of(fields['policy'])!r} picks plays from now on, instead of {experiment.policy!r}. What was "
            f"learned is kept."
        ),
        "Change the policy",
        lambda experiment, fields: experiment.set_policy(policy_of(fields["policy"])),
        ("policy",),
    ),
    "biases": Control(
        "Change the biases of {name}?",
        lambda experiment, fields: (
            f"The policy assumes biases of {listed(_biases(fields['biases']))} from now on, "
            f"instead of {listed(experiment.fidelities.biases or ())}. Larger biases make "
            f"it look longer before it trusts a cheap fidelity. Whether they hold is tested again from the start."
        ),
        "Change the biases",
        lambda experiment, fields: experiment.set_biases(_biases(fields["biases"])),
        ("biases",),
    ),
    "stop": Control(
        "Change when {name} stops?",
        _stop_detail,
        "Change the rule",
        lambda experiment, fields: experiment.set_stop(_rule(fields)),
        ("level", "tolerance", "estimates"),
    ),
    "note": Control(
        "Write this note?",
        _note_detail,
        "Write the note",
        lambda experiment, fields: experiment.note(
            _text("a note", fields["text"], MAX_NOTE_LENGTH), arm=_about(fields, experiment)
        ),
        ("text", "arm"),
    ),
}


def control(verb: str) -> Control:
    """Return the control of a name.

    >>> control("pause").button
    'Pause'
    """
    if verb not in CONTROLS:
        raise InvalidArgument(f"verb must be one of {', '.join(CONTROLS)}, got {verb!r}")
    return CONTROLS[verb]


def listed(biases: Sequence[float]) -> str:
    """Write biases with commas between them.

    >>> listed([0.25, 0.0])
    '0.25, 0'
    """
    return ", ".join(plain(bias, thousands="") for bias in biases)


def _amount(capital: float | None) -> str:
    return "any amount" if capital is None else readable(capital)
