# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the pages of this folder, and those of modules and roles, as one site: ``make docs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

project = "mlhost.limits"
author = "The mlhost.limits founders"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "sphinx_rtd_theme"
html_title = "mlhost.limits"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "search.js")
html_show_copyright = False
smartquotes = False  # What is in quotes is often typed as it stands.
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
# Links to files of the repository, and to pages of Ansible, lead out of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.ref"]
html_theme_options = {"navigation_depth": 2, "titles_only": True}
_MARKS = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<footer>": '<footer role="contentinfo">',
    '<nav data-toggle="wy-nav-shift" class="wy-nav-side">': (
        '<nav data-toggle="wy-nav-shift" class="wy-nav-side" aria-label="Contents">'
    ),
    '<div role="contentinfo">': "<div>",
    ' aria-role="button"': "",
    "<pre>": '<pre tabindex="0">',  # What is wider than a phone is scrolled with keys.
}
"""What the theme leaves out, and programs that read pages aloud need."""


def setup(app: Any) -> None:
    """Complete the marks of every page once all are written."""
    app.connect("build-finished", _mark)


def _mark(app: Any, trouble: Exception | None) -> None:
    for path in Path(app.outdir).rglob("*.html") if trouble is None else ():
        text = path.read_text(encoding="utf-8")
        for plain, whole in _MARKS.items():
            text = text.replace(plain, whole)
        path.write_text(text, encoding="utf-8")
