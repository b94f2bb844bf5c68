"""Write a page in reStructuredText, only if it has changed: Sphinx then reads it only if it must."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import indent


def heading(text: str, line: str = "=") -> str:
    """Return a heading: "=" of a page, "-" of a section, "~" of a part."""
    return f"{text}\n{line * max(len(text), 4)}\n"


def code(text: str, language: str) -> str:
    """Return a block of code."""
    return f".. code-block:: {language}\n\n{indent(text, '   ')}\n"


def terms(entries: Iterable[tuple[str, str]]) -> str:
    """Return a list of names, each with what it means."""
    return "".join(f"{name}\n   {plain(about) or '…'}\n\n" for name, about in entries)


def plain(text: str) -> str:
    """Return text that has no markup, as one paragraph."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|").replace("_ ", "\\_ ")


def save(folder: Path, name: str, parts: Iterable[str]) -> None:
    """Write a page."""
    path, text = folder / f"{name}.rst", "\n".join(parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
