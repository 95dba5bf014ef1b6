"""Pictures of every page: `python docs/screenshots.py FOLDER` (needs chromium, playwright and isorun[server]).

A small study is made without training anything, served on a free port, and looked at light and dark, at 1400 and 390
pixels.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "serving"))

from shown_studies import packed, shown_store  # noqa: E402 - the tests' own study


def main(target: Path) -> None:
    """Make the study, serve it, and take the pictures."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lab"
        folder.mkdir()
        place = shown_store(folder, seeds=6, repeats=3)
        words = [
            sys.executable,
            "-m",
            "isorun",
            "serve",
            str(place),
            str(packed(folder, place)),
            "--port",
            "0",
            "--json",
        ]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                take(told(server.stdout), target)
            finally:
                server.terminate()


def told(output: object) -> str:
    """The address that the server says, once it has said all of it."""
    text = ""
    for line in output:  # type: ignore[attr-defined]
        text += line
        if line.startswith("}"):
            break
    return str(json.loads(text)["url"])


def take(address: str, target: Path) -> None:
    """Every page in four ways."""
    study = "/shelves/lab/optimizers"
    with urlopen(f"{address}{study}/runs.json") as answer:  # noqa: S310 - this machine
        run = json.load(answer)["runs"][0]["run"]
    sides = "a=adam,default,default,fixed-seed&b=sgd,default,default,fixed-seed&pair=seed"
    pages = {
        "home": "/",
        "study": f"{study}/study",
        "runs": f"{study}/runs",
        "run": f"{study}/runs/{run}",
        "compare": f"{study}/compare?{sides}",
        "leaderboard": "/shelves/lab/board/leaderboard",
        "environments": f"{study}/environments",
        "search": "/shelves/lab/tuned/searches",
    }
    with sync_playwright() as drive:
        browser = drive.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for width in (1400, 390):
            for scheme in ("light", "dark"):
                view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                for page, path in pages.items():
                    view.goto(address + path)
                    view.screenshot(path=target / f"{page}-{width}-{scheme}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
