"""Environments with packages of their own: made by pip or uv from wheels that lie in a folder, with no network."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import isorun
from isorun.environments import made_for
from isorun.environments.packages import PackagesEnvironment, _told
from isorun.errors import ExecutionError, StudyError
from isorun.execution.carrying import Workshop
from isorun.scheduling import Observer
from isorun.study import Environment
from isorun.study.cells import cells_of
from isorun.study.design import Study, changed, document_of, study_from_document
from isorun.study.parts import lines_elsewhere
from isorun.study.records import RunState
from isorun.testing.environment_contract import EnvironmentContract
from isorun.testing.executor_contract import LOGS, job_for

SCRIPT = "import tinylib, sys; print('acc:', tinylib.value, flush=True); sys.exit('isorun' in sys.modules and 3)"
STUDY = """
[approaches.a]
command = "python t.py"
[environments.old]
packages = ["tinylib==1.0"]
[environments.new]
packages = ["tinylib==2.0"]
"""
UV = shutil.which("uv") or ""


def wheel(folder, version, value):
    """A distribution of one module, as an index would offer it."""
    info = f"tinylib-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tinylib-{version}-py3-none-any.whl", "w") as made:
        made.writestr("tinylib.py", f"value = {value}\n")
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinylib\nVersion: {version}\n")
        made.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        names = ("tinylib.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
        made.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for version, value in (("1.0", 0.25), ("2.0", 0.75)):
        wheel(folder, version, value)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One for the tests of this file, which make an environment only where that is what they are about."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def no_network(wheels, cache, monkeypatch):
    """An installer that knows nothing but a folder. There is no uv unless a test brings one."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for maker in ("PIP", "UV"):
        monkeypatch.setenv(f"{maker}_NO_INDEX", "1")
        monkeypatch.setenv(f"{maker}_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("ISORUN_CACHE", str(cache))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.py").write_text(SCRIPT)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


class Heard(Observer):
    def __init__(self):
        self.messages = []

    def environment_told(self, cell, message):
        self.messages.append((cell.environment, message.partition(" for ")[0]))


def study(folder=Path(), **environment):
    document = {"approaches": {"a": {"command": "python t.py"}}, "environments": {"e": environment}}
    return study_from_document(document, Path(folder), "s")


@pytest.mark.long
def test_one_script_under_two_versions_is_two_results_and_the_versions_are_recorded(folder):
    heard = Heard()
    outcome = isorun.run(folder / "study.toml", observer=heard, jobs=2)
    found = {record.cell.environment: record for record in outcome.records}
    assert {name: record.series["acc"].values[-1] for name, record in found.items()} == {"old": 0.25, "new": 0.75}
    assert sorted(heard.messages) == [("new", "installing tinylib==2.0"), ("old", "installing tinylib==1.0")]
    made = found["old"].environment["made"]
    assert made["packages"] == {"tinylib": "1.0"}, "nothing else lies in it, no isorun and no pip"
    assert made["packages_made_by"].startswith("pip ")
    assert found["old"].environment["effective"]["packages"] == {"tinylib": "1.0"}
    again, began = Heard(), time.monotonic()
    outcome = isorun.run(changed(isorun.Study.load(folder / "study.toml"), repeats=2), observer=again)
    assert (outcome.count(RunState.FINISHED), again.messages) == (2, [])
    assert time.monotonic() - began < 10, "on a machine that others use: the benchmark has the figure"


def test_a_build_that_fails_is_a_record_with_the_resolvers_message_and_the_others_go_on(folder):
    (folder / "study.toml").write_text(f'repeats = 2\n{STUDY}[environments.none]\npackages = ["tinylib==9.1"]\n')
    heard = Heard()
    outcome = isorun.run(folder / "study.toml", observer=heard)
    assert outcome.count(RunState.FINISHED) == 4
    failed = [record for record in outcome.records if record.state is not RunState.FINISHED]
    assert [(record.state, record.cell.environment) for record in failed] == [(RunState.FAILED, "none")] * 2
    for record in failed:
        assert "the packages of the environment 'none' (tinylib==9.1) cannot be installed" in record.reason
        assert "No matching distribution found for tinylib==9.1" in record.reason
        assert "from versions: 1.0, 2.0" in record.reason
        assert "next:" in record.log_tail
    assert [name for name, _ in heard.messages].count("none") == 1, "what failed is not tried again for each run"


@pytest.mark.slow
def test_the_command_line_says_it_in_one_message_without_a_traceback(folder):
    (folder / "study.toml").write_text('[approaches.a]\ncommand="python t.py"\n[environments.e]\npackages=["nolib"]\n')
    command = [sys.executable, "-m", "isorun", "run", "study.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot be installed: Could not find a version that satisfies the requirement nolib" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_killed_build_leaves_nothing_that_counts(folder, monkeypatch, tmp_path_factory):
    cache = tmp_path_factory.mktemp("killed")
    monkeypatch.setenv("ISORUN_CACHE", str(cache))
    slow = tmp_path_factory.mktemp("bin") / "uv"
    slow.write_text('#!/bin/sh\n[ "$1" = pip ] && sleep 600\n[ "$1" = venv ] && mkdir -p "$5/bin"; echo uv 0\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    run = subprocess.Popen([sys.executable, "-m", "isorun", "run", "study.toml"], cwd=folder, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not list(cache.glob("environments/packages-*/venv")):
        assert time.monotonic() < until
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=20)
    assert not list(cache.glob("environments/*.made"))
    slow.unlink()
    outcome = isorun.run(folder / "study.toml")
    assert outcome.count(RunState.FINISHED) == 2, outcome.records


@pytest.mark.slow
def test_a_lock_is_known_by_its_content_and_not_by_its_name(folder):
    (folder / "a.txt").write_text("tinylib==1.0\n")
    (folder / "b.txt").write_text("tinylib==1.0\n")
    first, second = (study(folder, lock=name).environments["e"] for name in ("a.txt", "b.txt"))
    made = [made_for(one, folder).made_from() for one in (first, second)]
    assert made[0] == made[1]
    (folder / "a.txt").write_text("tinylib==2.0\n")
    other = study(folder, lock="a.txt").environments["e"]
    assert made_for(other, folder).made_from() != made[0]
    outcome = isorun.run(study(folder, lock="b.txt"))
    assert [record.environment["made"]["packages"] for record in outcome.records] == [{"tinylib": "1.0"}]


def test_a_lock_that_changes_after_the_study_was_read_is_refused(folder):
    (folder / "a.txt").write_text("tinylib==1.0 # this one\n")
    read = study(folder, lock="a.txt")
    (folder / "a.txt").write_text("tinylib==2.0 # changed\n")
    outcome = isorun.run(read)
    assert "is not the one that the study began with" in outcome.records[0].reason


def test_the_short_form_is_the_long_one_and_comes_back_from_a_kept_study(folder):
    (folder / "a.txt").write_text("tinylib==1.0\n")
    short = study(folder, packages=["b", "a"], lock="a.txt", python="3.11")
    long = study(folder, kind="packages", settings={"requirements": ["a", "b"], "lock": "a.txt"}, python="3.11")
    assert short == long
    assert study_from_document(document_of(short), folder, "s") == short
    content = cells_of(short)[0].environment_content
    assert content["kind"] == "packages"
    assert content["settings"]["requirements"] == ["a", "b"]
    assert len(content["settings"]["sha256"]) == 64


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"packages": []}, "there are no packages"),
        ({"packages": "numpy"}, "requirements: it must be a list"),
        ({"packages": ["-e ."]}, "that is no requirement"),
        ({"packages": ["--index-url=x"]}, "that is no requirement"),
        ({"packages": [""]}, "that is no requirement"),
        ({"packages": [3]}, "it must be a text"),
        *(
            ({"packages": [text]}, "leads to a folder, a file or a branch")
            for text in (
                *(
                    "./mypkg",
                    "../mypkg",
                    "/abs/mypkg",
                    "mypkg/",
                    "a @ ./b",
                    "file:b",
                    "a @ file:///b",
                    "~/b",
                    "a[x] @ /b",
                ),
                *("b-1.0-py3-none-any.whl", "b.tar.gz", "git+https://h/a@main", "a @ git+ssh://g@h/a.git", "./b ; x"),
            )
        ),
        *(
            ({"lock": lock}, "lock: that leads to")
            for lock in ("include.txt", "constraint.txt", "editable.txt", "path.txt", "glued.txt")
        ),
        ({"packages": ["x[/tmp/y]"]}, "that is no requirement"),
        ({"packages": ["two words"]}, "that is no requirement"),
        ({"lock": "/dev/zero"}, r"lock: it cannot be read[\s\S]*no plain file"),
        ({"lock": "/dev/../dev"}, r"lock: it cannot be read[\s\S]*no plain file"),
        ({"lock": "nowhere.txt"}, r"lock: it cannot be read[\s\S]*nowhere.txt"),
        ({"packages": ["a"], "kind": "interpreter"}, "packages are said twice, or for another kind"),
        ({"packages": ["a"], "settings": {"requirements": ["b"]}}, "packages are said twice"),
        ({"kind": "packages", "settings": {"requirement": ["b"]}}, "did you mean 'requirements'"),
    ],
)
def test_what_are_no_packages_is_refused(environment, why, tmp_path):
    (tmp_path / "include.txt").write_text("a==1\n-r base.txt\n")
    (tmp_path / "constraint.txt").write_text("a==1\n--constraint=base.txt\n")
    (tmp_path / "editable.txt").write_text("a==1 # fine\n-e .\n")
    (tmp_path / "path.txt").write_text("a==1 \\\n  --hash=sha256:aa/bb\n./b\n")
    (tmp_path / "glued.txt").write_text("-rbase.txt\n")
    with pytest.raises(StudyError, match=why):
        study(tmp_path, **environment)


def test_what_says_all_it_asks_for_is_taken(tmp_path):
    wanted = [
        "a[x]>=1,<2;sys_platform=='a/b'",
        "b @ https://h/b-1.zip",
        f"c @ git+https://h/c@{'0' * 40}#egg=c",
        "d.e-f",
    ]
    assert study(tmp_path, packages=wanted).environments["e"].settings["requirements"] == sorted(wanted)
    (tmp_path / "lock.txt").write_text(
        "# -r other.txt, ./b\n--find-links https://h/wheels\na==1 --hash=sha256:a/b  # via -r in.txt\n"
        + "\n".join(wanted)
    )
    assert study(tmp_path, lock="lock.txt").environments["e"].settings["sha256"]


@pytest.mark.parametrize(
    "text",
    [
        "-\\\nr base.txt",  # pip takes lines together without a space
        "-\\\r\nr base.txt",
        "a==1\n--requ base.txt",  # and knows options by their beginning
        "  -r base.txt",
        "--find-links ./wheels\na==1",
        "-f wheels\na==1",
        "-fwheels\na==1",
        "--no-index --find-links=/w\na==1",
        "--trusted-host h --find-links /w\na==1",
        "--index-url file:///w\na==1",
        "a==${VERSION}",  # and fills in variables
        "a @ https://h/${NAME}.whl",
        "a==1 -r base.txt",
        "b.tbz",
        "b.zip[x]",
        "a==1.tar.gz",
        "x[/tmp/y]",
        "root:*:20228:0",
        "+AC0-r base.txt",
        "a==1\n-r base.txt".encode("utf-16").decode("utf-8", "replace"),
    ],
)
def test_lines_of_a_lock_that_do_not_stand_for_themselves(text):
    assert lines_elsewhere(text)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffa==1 \\\n    --hash=sha256:aa \\\n    --hash sha256:bb\n# -r base.txt \\\nb==2\n\n",
        "--no-index\n--pre\n--only-binary=:all:\n--no-binary a,b\n--index-url 'https://u:${TOKEN}@h/simple'\n",
        "-i https://h/simple --trusted-host h\n--extra-index-url=https://h/cpu\n--find-links https://h/stable.html",
        f"a @ git+https://${{TOKEN}}@h/a.git@{'0' * 40}\nhttps://h/b-1.zip ; python_version<'3.9'",
        "a (>=1.0)\na>=1.0 , <2\na==1.0.*,\na[x, y]~=1.0; python_version < '3.9' and sys_platform == 'linux'",
        "A_b.c==1!2.0+cu118\na===1\na",
    ],
)
def test_lines_of_a_lock_that_do(text):
    assert lines_elsewhere(text) == []


@pytest.mark.parametrize(
    ("package", "is_told"),
    [
        ("wheels=[{url='https://h/a.whl'}]", False),
        (f"vcs={{type='git', url='https://h/a', commit-id='{'0' * 40}'}}", False),
        ("vcs={type='git', url='https://h/a', commit-id='main'}", True),
        ("wheels=[{path='a.whl'}]", True),
        ("sdist={url='file:///a.zip'}", True),
        ("directory={path='.'}", True),
        ("wheels=3", True),
        ("wheels", True),
    ],
)
def test_packages_of_a_pylock(package, is_told):
    assert bool(lines_elsewhere(f"[[packages]]\nname='a'\n{package}\n", "pylock.toml")) is is_told


def test_a_lock_that_has_no_end_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StudyError, match="no plain file"):
        study(tmp_path, lock="pipe")
    with (tmp_path / "large.txt").open("wb") as large:
        large.truncate(1 << 30)
    with pytest.raises(StudyError, match="MiB are no lock"):
        study(tmp_path, lock="large.txt")


def test_variables_of_the_study_that_installers_hear_tell_one_environment_from_another(tmp_path, monkeypatch):
    monkeypatch.setattr(PackagesEnvironment, "_python_below", lambda _self: ("python", "CPython", "3.11.7", "linux"))

    def made(**variables):
        return made_for(study(tmp_path, packages=["a==1"], env=variables).environments["e"], tmp_path).made_from()

    plain = made()
    assert made(SEED="1") == plain, "others leave it the same"
    monkeypatch.setenv("PIP_INDEX_URL", "https://caller")
    assert made() == plain, "and so do the caller's"
    found = [plain, made(PIP_FIND_LINKS="A"), made(PIP_FIND_LINKS="B"), made(UV_INDEX_URL="A"), made(CFLAGS="-O3")]
    assert len({json.dumps(one) for one in found}) == len(found)
    assert made(PIP_FIND_LINKS="A") == found[1]
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "a.whl").write_text("1")
    one = made(PIP_FIND_LINKS="A")
    (tmp_path / "A" / "a.whl").write_text("22")
    assert made(PIP_FIND_LINKS="A") not in (one, found[1]), "a wheel that was replaced"


def test_a_python_that_is_not_there_is_a_record_that_says_what_to_do(folder):
    outcome = isorun.run(study(folder, packages=["tinylib"], python="3.99"))
    assert "there is no Python 3.99 for the environment 'e'" in outcome.records[0].reason


def test_other_programs_are_found_inside_first_and_other_pythons_are_not_taken(folder, cache):
    declared = Environment("e", kind="packages", settings={"requirements": ["tinylib==1.0"]})
    with closing(Workshop(launch="fresh")) as workshop:
        made = workshop.environment(job_for(LOGS, folder, environment=declared), lambda _: None)
    assert isinstance(made, PackagesEnvironment)
    tool = made.folder / "venv" / "bin" / "only-inside"
    tool.symlink_to("/bin/true")
    prepared = made.prepare(["only-inside"], folder)
    assert (prepared.program, prepared.interpreter) == (str(tool), "")
    assert prepared.variables["VIRTUAL_ENV"] == str(made.folder / "venv")
    with pytest.raises(ExecutionError, match=r"has no python3\.2"):
        made.prepare(["python3.2", "t.py"], folder)


PIP_SAID = """
Looking in links: /w
ERROR: Ignored the following versions that require a different python version: 1
ERROR: Could not find a version that satisfies the requirement n==9 (from versions: 1, 2, 3, 4, 5, 6, 7, 8, 9)
ERROR: No matching distribution found for n==9
"""
UV_SAID = """Using Python 3.11
  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of
      n==9, your requirements are unsatisfiable.
"""
SAID = {
    PIP_SAID: "Could not find a version that satisfies the requirement n==9 (from versions: …, 2, 3, 4, 5, 6, 7, 8, 9)"
    " No matching distribution found for n==9",
    UV_SAID: "No solution found when resolving dependencies: Because there is no version of n==9, your requirements"
    " are unsatisfiable.",
    "error: Failed to parse: `a b`\n": "Failed to parse: `a b`",
    "": "",
    "ERROR: Exception:\nTraceback (most recent call last):\n  File x\nValueError: a[/b]\n": "ValueError: a[/b]",
}


@pytest.mark.parametrize(("printed", "told"), SAID.items(), ids=["pip", "uv", "uv-error", "nothing", "pip-fails"])
def test_the_resolvers_message_is_told_without_what_it_printed_before(printed, told):
    assert _told(printed) == told


@pytest.mark.slow
class TestPackages(EnvironmentContract):
    kind = "packages"
    settings = {"requirements": ["tinylib==1.0"]}  # noqa: RUF012 - as a subclass of others writes it


@pytest.mark.slow
@pytest.mark.skipif(not UV, reason="there is no uv in PATH")
class TestPackagesByUv(TestPackages):
    @pytest.fixture(autouse=True)
    def _with_uv(self, no_network, tmp_path_factory, monkeypatch):
        place = tmp_path_factory.mktemp("uv")
        (place / "uv").symlink_to(UV)
        monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def test_uv_made_it(self, tmp_path):
        made = json.loads((self.ready(tmp_path).folder / "resolved.json").read_text())
        assert made["made_by"].startswith("uv ")
        assert made["packages"] == {"tinylib": "1.0"}


@pytest.mark.slow
def test_a_study_of_two_real_versions(tmp_path, monkeypatch):
    """The example, with whatever registry there is; said clearly where there is none."""
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name)
    example = Path(__file__).parents[2] / "examples" / "versions"
    shutil.copytree(example, tmp_path / "versions")
    outcome = isorun.run(Study.load(tmp_path / "versions" / "versions.toml"), jobs=2)
    reasons = {record.reason for record in outcome.records} - {""}
    if any("No matching distribution" in reason or "Connection" in reason for reason in reasons):
        pytest.skip(f"the registry cannot be had: {reasons}")
    assert outcome.count(RunState.FINISHED) == len(outcome.records), reasons
    seen = {record.cell.environment: record.environment["effective"]["packages"]["numpy"] for record in outcome.records}
    assert len(set(seen.values())) == 2


def test_what_to_do_about_a_failed_install_is_about_its_cause(monkeypatch, tmp_path):
    said = {"err": "ERROR: No matching distribution found for nolib==1"}

    def run(command, **_options):
        return subprocess.CompletedProcess(command, 1 if "install" in command else 0, "", said["err"])

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(PackagesEnvironment, "_python_below", lambda _self: ("python", "", "3.11.7", ""))
    made = PackagesEnvironment(Environment("baseline", kind="packages", settings={"requirements": ["nolib==1"]}))
    with pytest.raises(ExecutionError) as unknown:
        made.make(tmp_path, lambda _text: None)
    assert "change nolib==1 in the study" in unknown.value.message()
    said["err"] = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    with pytest.raises(ExecutionError) as full:
        made.make(tmp_path, lambda _text: None)
    assert "make room" in full.value.message()
