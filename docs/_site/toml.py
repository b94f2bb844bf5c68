"""The reference of TOML files: what a file may have, and the parameters of each policy."""

import dataclasses
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import Any

from _site.pages import code, heading, save, terms
from mfbandit.cli import config
from mfbandit.policies import POLICIES


def write(app: Any) -> None:
    """Write the page."""
    whole = cleandoc(config.__doc__ or "")
    first, rest = whole.split("\n\n", 1)
    tables, last = rest.rsplit("\n\n", 1)
    about = (
        f"{first} ``mfbandit COMMAND --help`` says which tables a command reads. {last} "
        "``mfbandit problem 1`` prints a whole file to start from."
    )
    rules = "The keys of a table in ``[[policies]]``, besides ``name``; see :ref:`api-policies`."
    parts = [heading("TOML files"), about, "", heading("All tables", "-"), code(dedent(tables), "toml")]
    parts += [heading("Policies and their parameters", "-"), rules, "", terms(map(_policy, POLICIES))]
    save(Path(app.srcdir) / "reference", "toml", parts)


def _policy(kind: Any) -> tuple[str, str]:
    return f"``{kind.__name__}``", ", ".join(map(_parameter, dataclasses.fields(kind))) or "none"


def _parameter(field: "dataclasses.Field[Any]") -> str:
    if field.default is dataclasses.MISSING:
        return f"``{field.name}`` (needed)"
    return f"``{field.name}``" + (f" ({field.default})" if field.default is not None else "")
