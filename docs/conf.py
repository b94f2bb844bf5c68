"""Settings of the site: `make docs` builds it with Sphinx, from this folder into build/site."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from _site import api, assets, command_line, events, http, links, toml  # noqa: E402

from mfbandit import __version__  # noqa: E402

project = "mfbandit"
author = "The mfbandit authors"
project_copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "sg_execution_times.rst",
    "README.md",
    "search.md",  # shown as how-to/model_selection: the site has a search page of its own
    "playground",
    "gallery/*.py",
    "gallery/*.ipynb",
    "**/sg_execution_times.rst",
]
default_role = "code"  # docstrings write `x`
smartquotes = False  # "--help" is no dash
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!mfbandit).*"), (r"py:(class|data|obj|exc)", r".*")]  # annotations: best effort

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"FloatArray": "FloatArray", "IntArray": "IntArray"}
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Reference", "References")]
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "min_reported_time": 1000,
    "copyfile_regex": r"(?!)",
    "image_srcset": ["2x"],
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "mfbandit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_search_scorer = str(HERE / "_site" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
templates_path = ["_templates"]
html_sidebars = {"index": [], "[!i]**": ["sidebar-nav-bs"]}
html_theme_options = {
    "logo": {"text": "mfbandit", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg", "alt_text": ""},
    "navbar_align": "left",
    "navbar_end": ["playground-link", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["site-footer"],
    "footer_end": [],
    "search_as_you_type": True,
    "back_to_top_button": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app: Any) -> None:
    """Write the pages of the reference that are made from the package, and serve what the theme would fetch."""
    for part in (api, command_line, events, http, toml):
        app.connect("builder-inited", part.write)
    links.setup(app)
    assets.setup(app)
