# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the pages of this folder, and those of modules and roles, as one site: ``make docs``."""

project = "mlhost.limits"
author = "The mlhost.limits founders"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "sphinx_rtd_theme"
html_title = "mlhost.limits"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_copyright = False
smartquotes = False  # What is in quotes is often typed as it stands.
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
# Links to files of the repository, and to pages of Ansible, lead out of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.ref"]
