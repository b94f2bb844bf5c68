"""The reference of events: the kinds of record in an experiment's log."""

import dataclasses
from inspect import getdoc
from pathlib import Path
from typing import Any, get_args

from _site.pages import heading, save
from mfbandit.experiment import Event


def write(app: Any) -> None:
    """Write the page."""
    about = (
        "The log of an experiment is a list of these, in order; its state is computed from them. ``exp.records()`` "
        "returns them with a number, a time and who asked for them. Names and fields are kept for ever. "
        "``play`` is the number of a play, ``arm`` and ``fidelity`` count from 0."
    )
    parts = [heading("Events"), about, ""]
    for kind in get_args(Event):
        fields = ", ".join(f"``{field.name}``" for field in dataclasses.fields(kind))
        says = (getdoc(kind) or "").split("\n\nArgs:")[0].split("\n\n>>>")[0]
        parts += [heading(kind.__name__, "-"), says, "", f"Fields: {fields or 'none'}.", ""]
    save(Path(app.srcdir) / "reference", "events", parts)
