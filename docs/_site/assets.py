"""What the site serves beside its pages: MathJax, from the package that brings it, and the playground."""

import re
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from typing import Any

SCRIPT = "mathjax/tex-chtml.js"
FONTS = "mathjax/output/chtml/fonts/woff-v2"

NAMED = '<summary aria-label="Pages below">'
PARAMETERS = re.compile(r'<dl>\n(<dd><em class="sig-param.*?</dd>)\n</dl>', re.DOTALL)


def setup(app: Any) -> None:
    """Tell Sphinx where the script is, and put it there."""
    app.config.mathjax_path = SCRIPT
    app.connect("build-finished", _copy)
    app.connect("build-finished", _mend_pages)


def _copy(app: Any, error: Exception | None) -> None:
    spec = find_spec("sphinx-mathjax-offline")  # its name is no name of Python
    if error or app.builder.format != "html" or spec is None or spec.origin is None:
        return
    copytree(Path(app.srcdir) / "playground", Path(app.outdir) / "playground", dirs_exist_ok=True)
    origin, target = Path(spec.origin).parent / "static", Path(app.outdir) / "_static"
    (target / SCRIPT).parent.mkdir(parents=True, exist_ok=True)
    (target / SCRIPT).write_bytes((origin / SCRIPT).read_bytes())
    copytree(origin / FONTS, target / FONTS, dirs_exist_ok=True)


def _mend_pages(app: Any, error: Exception | None) -> None:
    """Say what the arrows in the sidebar do, and make parameters a list that screen readers understand."""
    for path in [] if error or app.builder.format != "html" else Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        mended = text.replace('<summary><span class="toctree-toggle"', f'{NAMED}<span class="toctree-toggle"')
        mended = PARAMETERS.sub(_listed, mended)
        if mended != text:
            path.write_text(mended, encoding="utf-8")


def _listed(found: re.Match[str]) -> str:
    """Return the parameters of a signature as a list: Sphinx gives descriptions of nothing."""
    return f'<ul class="sig-params">\n{found[1].replace("<dd>", "<li>").replace("</dd>", "</li>")}\n</ul>'
