"""Every page in a real browser: both themes, a telephone and a window, by keyboard; axe finds nothing wrong.

Needs chromium, playwright and axe-core (`make test-browser`): skipped without them.
"""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from shown_studies import kept, optimizers, packed, shown_store, trained

import isorun
from isorun.testing.instant_executor import InstantExecutor

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
AXE = [
    Path(os.environ.get("ISORUN_TEST_AXE", "axe.min.js")),
    ROOT / ".browser" / "node_modules" / "axe-core" / "axe.min.js",
]
LARGEST = 300_000
STUDY = "/shelves/lab/optimizers"
SIDES = "a=adam,default,default,fixed-seed&b=sgd,default,default,fixed-seed&pair=seed"
PAGES = {
    "home": "/",
    "search-found": "/home?q=adam",
    "study": f"{STUDY}/study",
    "study-asked": f"{STUDY}/study?metric=test_loss&level=default&difference=0.5",
    "runs": f"{STUDY}/runs",
    "run": f"{STUDY}/runs/RUN",
    "compare": f"{STUDY}/compare?{SIDES}",
    "compare-studies": f"{STUDY}/compare?with=lab/board",
    "leaderboard": "/shelves/lab/board/leaderboard",
    "environments": f"{STUDY}/environments",
    "searches": "/shelves/lab/tuned/searches",
    "package": "/shelves/packages/optimizers/study",
    "not-there": f"{STUDY}/runs/0123456789abcdef-1",
}
LOOKS = {f"{width}-{scheme}": (width, scheme) for width in (390, 1400) for scheme in ("light", "dark")}


@pytest.fixture(scope="module")
def served_places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "lab"
    folder.mkdir()
    place = shown_store(folder)
    return folder, [str(place), str(packed(folder, place))]


@pytest.fixture(scope="module")
def server(served_places):
    """`isorun serve` as typed, on a free port: its address."""
    words = [sys.executable, "-m", "isorun", "serve", *served_places[1], "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().split()[0].rstrip(":")
        process.terminate()


@pytest.fixture(scope="module")  # while it drives, no other file's tests could have an event loop
def browser():
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: apt install chromium")
    with sync_api.sync_playwright() as drive:
        started = drive.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def axe():
    found = next((path for path in AXE if path.is_file()), None)
    if found is None:
        pytest.skip("axe-core is not there: npm install --prefix .browser axe-core")
    return found.read_text()


@pytest.fixture(scope="module")
def run(server, browser):
    page = browser.new_page()
    page.goto(f"{server}{STUDY}/runs.json")
    told = json.loads(page.inner_text("body"))
    page.close()
    return next(one["run"] for one in told["runs"] if one["state"] == "finished")


@pytest.fixture
def looking(browser, server):
    return partial(Looked, browser, server)


class Looked:
    """A page that is looked at, with all that it asked for and complained of."""

    def __init__(self, browser, server, width, scheme, **options):
        height = 844 if width < 500 else 900
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        self.page = self.context.new_page()
        self.server, self.asked, self.complaints = server, [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path):
        self.answer = self.page.goto(f"{self.server}{path}")
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_sound_for_all_who_read_it(looking, run, axe, name, look):
    # axe is put into the page from outside: the page's own policy would refuse it, as it should.
    with looking(*LOOKS[look], bypass_csp=True) as looked:
        page = looked.go(PAGES[name].replace("RUN", run))
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        told = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]
        assert told == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_keeps_to_its_server_its_policy_and_its_width(looking, run, name, look):
    with looking(*LOOKS[look]) as looked:
        page = looked.go(PAGES[name].replace("RUN", run))
        assert all(url.startswith(looked.server) for url in looked.asked), looked.asked
        refused = [text for text in looked.complaints if "404" not in text]
        assert refused == []
        assert "script-src 'self'" in looked.answer.headers["content-security-policy"]
        assert len(looked.answer.body()) <= LARGEST
        wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner, "it scrolls sideways"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 24, 31)" if look.endswith("dark") else "rgb(255, 255, 255)")


@pytest.mark.parametrize("width", [390, 1400])
def test_no_command_is_cut_at_the_edge(browser, server, run, width):
    with Looked(browser, server, width, "light") as looked:
        for name in ("run", "compare", "environments"):
            page = looked.go(PAGES[name].replace("RUN", run))
            cut = "[...document.querySelectorAll('.commands code')].map(one => one.scrollWidth - one.clientWidth)"
            found = page.evaluate(cut)
            assert found
            assert max(found) <= 0, name


def test_a_page_is_whole_without_scripts(browser, server):
    with Looked(browser, server, 1400, "light", java_script_enabled=False) as looked:
        page = looked.go(f"{STUDY}/study")
        assert page.locator("h1").inner_text() == "optimizers"
        assert page.locator("svg").count() > 2
        page.locator("#choice-level").select_option("default")
        page.locator(".choices button").click()
        assert "level=default" in page.url


def test_a_reader_gets_from_the_first_page_to_a_verdict_by_keyboard_alone(browser, server):
    with Looked(browser, server, 1400, "light") as looked:
        page = looked.go("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["y"] >= 0, "the skip link is seen when it is reached"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        _tab_to(page, "optimizers")
        page.keyboard.press("Enter")
        page.wait_for_url("**/study")
        _tab_to(page, "compare")
        page.keyboard.press("Enter")
        page.wait_for_url("**/compare")
        assert page.locator(".banner").is_visible()
        seen = page.evaluate(
            "(() => { const one = document.querySelector('.choices select'); one.focus();"
            " return getComputedStyle(one).outlineStyle + getComputedStyle(one).outlineWidth })()"
        )
        assert seen != "none0px"


def _tab_to(page, text):
    """Press Tab until the link of this text has the focus, which must be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    pytest.fail(f"no Tab leads to {text!r}")


def test_every_control_is_reached_and_left_by_tab(browser, server):
    with Looked(browser, server, 1400, "light") as looked:
        page = looked.go(f"{STUDY}/compare?{SIDES}")
        controls = page.locator("a[href], input, select, button, summary, [tabindex='0']").locator("visible=true")
        controls.evaluate_all("all => all.forEach((one, place) => { one.dataset.place = place })")
        wanted = {str(place) for place in range(controls.count())}
        reached = set()
        for _ in range(len(wanted) + 5):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.dataset.place"))
        assert wanted <= reached


def test_the_page_of_a_study_that_runs_follows_it(browser, tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    small = {"approaches": {"adam": "python train.py"}, "levels": ["default"], "seeds": [1]}
    place = str(tmp_path / ".isorun")
    kept(optimizers(tmp_path, repeats=3, **small), place)
    larger = optimizers(tmp_path, repeats=5, **small)
    isorun.workflow.remember(larger, store=place)
    words = [sys.executable, "-m", "isorun", "serve", place, "--port", "0"]
    with (
        isorun.session.open_store(place) as store,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as own,
        Looked(browser, own.stdout.readline().split()[0].rstrip(":"), 1400, "light") as looked,
    ):
        first, second = (store.claim(cell.id) for cell in isorun.workflow.missing(larger, store=store))
        page = looked.go("/")
        page.get_by_role("link", name="optimizers").click()
        assert "3 of 5 finished, 2 running" in page.locator("#standing").inner_text()
        assert "3 runs finished" in page.locator(".facts").inner_text()
        first.release()
        executor = InstantExecutor(trained)
        isorun.run(larger, store=store, executor=executor, only=lambda cell: cell.id == first.cell_id)
        page.locator(".facts", has_text="4 runs finished").wait_for(timeout=30_000)
        second.release()
        page.locator("#standing").wait_for(state="detached", timeout=30_000)
        assert looked.complaints == []
        own.terminate()
