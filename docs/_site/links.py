"""Links that work in the repository lead to pages of the site, and references to names lead to where they are shown."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes

HOMES = {
    "CONTRIBUTING.md": "/project/contributing.md",
    "CHANGELOG.md": "/project/changelog.md",
    "SECURITY.md": "/project/security.md",
    "README.md": "/start/index.md",
}
SHOWN = (  # sources, and the pages that show them
    (r"examples/gallery/(plot_\w+)\.py", r"/gallery/\1"),
    (r"examples/gallery/?", "/gallery/index"),
    (r"src/mfbandit/(\w+)(?:/__init__)?\.py", r"/reference/api/\1"),
)


def setup(app: Any) -> None:
    """Register them."""
    app.connect("source-read", _rewrite)
    app.connect("autodoc-process-docstring", _spare_bars)
    app.connect("doctree-read", _draw_dashes)
    app.connect("doctree-read", _trim_code)
    app.connect("missing-reference", _resolve)


def _rewrite(app: Any, document: str, source: list[str]) -> None:
    """Turn links that leave this folder to the pages that include those files; name the gallery's pictures."""
    if title := document.startswith("gallery/plot_") and re.search(r"^(.+)\n===+$", source[0], re.MULTILINE):
        source[0] = re.sub(r":alt: .*", f":alt: {title[1]}", source[0])
    if document == "how-to/model_selection":  # search.md would be the page of the site's own search
        text = (Path(app.srcdir) / "search.md").read_text(encoding="utf-8")
        source[0] = re.sub(r"\]\((?=[\w-]+\.md|figures/)", "](../", text)
    source[0] = re.sub(r"\]\((?:\.\./)*search\.md", "](/how-to/model_selection.md", source[0])
    for name, page in HOMES.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(name)}", f"]({page}", source[0])
    for path, page in SHOWN:
        source[0] = re.sub(rf"\]\((?:\.\./)+{path}\)", f"]({page})", source[0])


def _spare_bars(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Let |x| be an absolute value and no substitution, outside examples."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example and "``" not in line:
            lines[i] = line.replace("|", "\\|")


def _draw_dashes(_app: Any, doctree: nodes.document) -> None:
    """Draw the dash between a parameter and what it is; "--help" in a text stays as it is."""
    for text in list(doctree.findall(nodes.Text)):
        if " -- " in text and not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.doctest_block):
            text.parent.replace(text, nodes.Text(text.replace(" -- ", " – ")))


def _trim_code(_app: Any, doctree: nodes.document) -> None:
    """Leave out the empty line that doctests in Markdown need at the end of a block."""
    for block in doctree.findall(nodes.literal_block):
        if (text := block.astext()) != (trimmed := text.rstrip("\n")):
            block.rawsource = trimmed
            block[:] = [nodes.Text(trimmed)]


def _resolve(app: Any, env: Any, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Find a name of the package that is shown under another one: mfbandit.core.Play is mfbandit.Play."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target:
        return None
    domain = env.domains["py"]
    parts = target.split(".")
    for begin in range(len(parts)):
        for prefix in ("mfbandit.", "mfbandit.theory.", "mfbandit.plotting.", "mfbandit.errors."):
            name = prefix + ".".join(parts[begin:])
            if name in domain.objects:
                place = domain.objects[name]
                uri = app.builder.get_relative_uri(node["refdoc"], place.docname)
                return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{place.node_id}")
    return content if _is_there(parts) else None


def _is_there(parts: list[str]) -> bool:
    """Tell whether a name that no page shows is one of the package's own parts; else it is a mistake."""
    for cut in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:cut]))
            for name in parts[cut:]:
                thing = getattr(thing, name)
        except (ImportError, AttributeError):
            continue
        return True
    return False
