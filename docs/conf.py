"""Sphinx: MyST pages, furo, and tables that are generated from the code at each build."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import stabilitykit  # noqa: E402
from docs import generate  # noqa: E402

generate.write(DOCS / "reference" / "generated")

project = "stabilitykit"
author = "the stabilitykit authors"
copyright = author
version = release = stabilitykit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"stabilitykit {release}"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
napoleon_google_docstring = False
# Type hints become references to numpy, attrs and private names; written references stay strict.
nitpick_ignore_regex = [(r"py:(class|obj|data|exc)", r".*")]
