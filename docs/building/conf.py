"""How Sphinx makes a site of the pages in docs/: `make site`. They are plain Markdown, as GitHub shows it."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
PROJECT = "https://github.com/isorun/isorun/blob/main"

project = "isorun"
author = project_copyright = "The isorun authors"
version = release = re.findall(r'__version__ = "(.+)"', (DOCS.parent / "src/isorun/__init__.py").read_text())[0]
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["building"]
nitpicky = True
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
# An example may leave something out with an ellipsis, which is no Python.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "isorun"
html_show_sphinx = html_show_copyright = html_copy_source = html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}

_LINK = re.compile(r"(\]\()((?!https?:|#)[^)#\s]+)([^)]*\))")


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("source-read", _lead_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lead_out(_app: Any, page: str, source: list[str]) -> None:
    """Links to what is no page here, such as a script, lead to the project's repository."""
    folder = (DOCS / page).parent

    def led(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if DOCS in target.parents and target.is_file():
            return link[0]
        return f"{link[1]}{PROJECT}/{target.relative_to(DOCS.parent)}{link[3]}"

    source[0] = _LINK.sub(led, source[0])
