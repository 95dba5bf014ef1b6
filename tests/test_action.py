"""The GitHub Action: its steps run for real, in a folder and with the variables that a runner gives them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
WORKFLOWS = [*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "examples").rglob("*.yml")]
GH = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "asked.jsonl").open("a").write(json.dumps(sys.argv[1:]) + "\\n")
if "--paginate" in sys.argv:
    print((here / "known").read_text(), end="")
sys.exit(int((here / "code").read_text()))
"""
TRAIN = "import random\nprint('test_acc', round({} + random.gauss(0, 0.004), 6))\n"
STUDY = 'name = "small"\nrepeats = 5\n[approaches.net]\ncommand = "python train.py"\n[metrics.test_acc]\n'


class Runner:
    """What GitHub gives a step: files for outputs and summaries, a folder for what is temporary."""

    def __init__(self, folder):
        self.folder = folder
        self.temp = folder / "temp"
        self.bin = folder / "bin"
        for place in (self.temp, self.bin):
            place.mkdir()
        (self.bin / "gh").write_text(GH)
        (self.bin / "gh").chmod(0o755)
        (self.bin / "isorun").write_text(f'#!/bin/sh\nexec {sys.executable} -m isorun "$@"\n')
        (self.bin / "isorun").chmod(0o755)
        (self.bin / "python").symlink_to(sys.executable)
        self.github({"known": "", "code": "0"})

    def github(self, answers):
        for name, text in answers.items():
            (self.bin / name).write_text(text)
        (self.bin / "asked.jsonl").write_text("")

    def step(self, name, inputs, outputs=None, event=None):
        """Run a step as the runner does: bash -eo pipefail on the script, `${{ … }}` filled in env alone."""
        step = STEPS[name]
        known = {f"inputs.{key}": item.get("default", "") for key, item in ACTION["inputs"].items()}
        known |= {f"inputs.{key}": value for key, value in inputs.items()}
        known |= {f"steps.check.outputs.{key}": value for key, value in (outputs or {}).items()}
        known |= {"github.event.pull_request.number": event or "", "github.action_path": str(ROOT)}
        filled = {key: re.sub(r"\$\{\{ (.+?) \}\}", lambda m: known[m[1]], value) for key, value in step["env"].items()}
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        files = {f"GITHUB_{name}": str(self.temp / name.lower()) for name in ("OUTPUT", "STEP_SUMMARY")}
        env = {
            **{key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ},
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_REPOSITORY": "lab/net",
            **files,
            **filled,
        }
        Path(files["GITHUB_OUTPUT"]).write_text("")
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        told = Path(files["GITHUB_OUTPUT"]).read_text().splitlines()
        return done, dict(line.split("=", 1) for line in told)


@pytest.fixture
def runner(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.format(0.9))
    (tmp_path / "study.toml").write_text(STUDY + 'direction = "higher"\n')
    return Runner(tmp_path)


@pytest.mark.parametrize(("asked", "installed"), [({}, str(ROOT)), ({"install": "isorun==1.0"}, "isorun==1.0")])
def test_the_isorun_of_the_actions_own_version_is_installed(runner, asked, installed):
    """A name alone would be that of an index, of whatever version, or of somebody else's."""
    (runner.bin / "python").unlink()
    (runner.bin / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (runner.bin / "python").chmod(0o755)
    done, _ = runner.step("Install isorun", {"study": "study.toml", **asked})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == installed


@pytest.mark.long
def test_a_regression_is_checked_summed_up_commented_and_fails_the_job(runner):
    inputs = {"study": "study.toml", "margin": "0.5", "token": "t", "where": "level=default\napproach=net\n"}
    done, _ = runner.step("Run the baseline", inputs)
    assert done.returncode == 0, done.stderr
    (runner.folder / "train.py").write_text(TRAIN.format(0.8))
    done, outputs = runner.step("Check", inputs)
    assert done.returncode == 0, done.stderr
    assert (outputs["verdict"], outputs["exit-code"]) == ("worse", "3"), done.stderr
    comment = Path(outputs["comment"]).read_text()
    assert comment.startswith("<!-- isorun check -->")
    assert (runner.temp / "step_summary").read_text() == comment
    done, _ = runner.step("Verdict", inputs, outputs)
    assert (done.returncode, "isorun check: worse (exit 3)" in done.stdout) == (3, True)


def test_a_mistake_is_no_verdict_and_fails_the_job_with_its_message(runner):
    done, outputs = runner.step("Check", {"study": "study.toml", "baseline": "$(touch owned); nothing", "margin": "1"})
    assert (done.returncode, outputs) == (0, {"exit-code": "1", "verdict": ""})
    assert "there is no baseline '$(touch owned); nothing'" in done.stderr
    assert not (runner.folder / "owned").exists()
    done, _ = runner.step("Verdict", {}, outputs)
    assert done.returncode == 1


def asked(runner):
    return [json.loads(line) for line in (runner.bin / "asked.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("known", "method", "where"),
    [("", "POST", "repos/lab/net/issues/7/comments"), ("42\n43\n", "PATCH", "repos/lab/net/issues/comments/42")],
)
def test_a_pull_request_has_one_comment_which_is_written_over(runner, known, method, where):
    runner.github({"known": known})
    comment = runner.temp / "c.md"
    comment.write_text("text")
    done, _ = runner.step("Comment", {"token": "t"}, {"comment": str(comment)}, event="7")
    assert done.returncode == 0, done.stderr
    assert asked(runner)[1] == ["api", "--method", method, where, "--field", f"body=@{comment}", "--silent"]


def test_a_token_that_may_not_write_is_told_and_does_not_fail_the_job(runner):
    runner.github({"code": "1"})
    done, _ = runner.step("Comment", {"token": "t"}, {"comment": "c.md"}, event="7")
    assert (done.returncode, "::warning::isorun" in done.stdout) == (0, True)


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if "run" in step])
def test_no_script_holds_anything_from_outside(name):
    assert "${{" not in STEPS[name]["run"]
    assert STEPS[name]["shell"] == "bash"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_input_that_a_workflow_gives_the_action_is_one_of_its(path):
    jobs = yaml.safe_load(path.read_text())["jobs"]
    used = [
        step for job in jobs.values() for step in job["steps"] if step.get("uses", "").startswith(("./", "isorun/"))
    ]
    for step in used:
        assert set(step["with"]) <= set(ACTION["inputs"]), path
        required = {name for name, item in ACTION["inputs"].items() if item.get("required")}
        assert required <= set(step["with"])


def test_the_action_is_used_by_the_example_and_by_this_repository():
    users = [path for path in WORKFLOWS if re.search(r"uses: (\./$|isorun/isorun@)", path.read_text(), re.MULTILINE)]
    assert {path.name for path in users} == {"check.yml", "training.yml"}
