"""Pictures of pages, by a real browser (Debian's chromium): `python docs/building/screenshots.py docs/figures`.

The pages are made here, from the study of examples/moons, so that a picture shows what a reader gets. With
`--site build/site FOLDER` pages of the built site are pictured to be looked at, phone and desk, light and dark.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["picture"]

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "moons"
_NARROWEST = 500
_LOOKED_AT = (
    "index",
    "tutorial",
    "how-to/is-this-gain-real",
    "statistics-explained",
    "command-line",
    "reference/python",
)


def picture(page: Path, image: Path, *, width: int, height: int, dark: bool = False) -> None:
    """A picture of a page as a window of this size shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no browser is here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        frame = Path(name) / "frame.html"  # a window of a browser has at least 500 px, a frame in it has any
        style = f"border:0;width:{width}px;height:{height}px"
        frame.write_text(f'<body style="margin:0"><iframe src="{page.resolve().as_uri()}" style="{style}"></iframe>')
        shown = page if width >= _NARROWEST else frame
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={name}/profile", f"--window-size={max(width, _NARROWEST)},{height}"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else []
        command += [f"--screenshot={image.resolve()}", shown.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def of_reports(folder: Path) -> None:
    """The report page that the tutorial shows."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        for file in EXAMPLE.iterdir():
            shutil.copy(file, made)
        for words in (["run", "study.toml"], ["report", "study.toml", "--html", "report.html"]):
            subprocess.run([sys.executable, "-m", "isorun", *words], cwd=made, check=True, capture_output=True)
        picture(made / "report.html", folder / "report-page.png", width=1000, height=820)


def of_the_site(site: Path, folder: Path) -> None:
    """Some pages of the site, each in three windows."""
    for name in _LOOKED_AT:
        page, called = site / f"{name}.html", name.replace("/", "-")
        picture(page, folder / f"{called}-390.png", width=390, height=1400)
        picture(page, folder / f"{called}-1400.png", width=1400, height=1200)
        picture(page, folder / f"{called}-1400-dark.png", width=1400, height=1200, dark=True)


def main() -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--site", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.site:
        of_the_site(options.site, options.folder)
    else:
        of_reports(options.folder)


if __name__ == "__main__":
    main()
