"""How the site is built: `make docs`, offline, with warnings as errors.

The sources are the repository as it is (`-c docs .`), so that a relative link means the
same on the site and in a viewer of the repository.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "src")]

import gallery  # noqa: E402

import caveat  # noqa: E402

project = "Caveat"
author = "the authors of Caveat"
release = version = caveat.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "docstrings",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/api/*.rst",
    "docs/auto_examples/*.rst",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [
    ".*",
    "docs/_*",
    "docs/auto_examples/sg_execution_times.rst",
    "src",
    "tests",
    "outputs",
    "dist",
]
suppress_warnings = ["config.cache"]  # functions in the settings of the gallery

# Markdown
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3

# Docstrings
autodoc_typehints = "none"  # the sections Parameters and Returns have them
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
# As text: what is an attribute is also a member, and its type is words, no name.
napoleon_custom_sections = [("Attributes", "params_style")]

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "Caveat"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False  # the overview of the API is the index of modules
html_extra_path = ["_site/extra"]
html_context = {"default_mode": "auto"}
html_sidebars = {  # pages without others below them
    page: [] for page in ("docs/index", "docs/methods", "docs/peers", "CHANGELOG")
}
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "logo": {"text": "Caveat"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 10,
    "header_dropdown_text": "More",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"

# Examples
sphinx_gallery_conf = gallery.SETTINGS
