"""Versions of the code as environments: refs become commits, and each is checked out once, in the cache."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isorun
from isorun.analysis.evidence.provenance import between_sides, provenance
from isorun.environments import code
from isorun.environments.code import CodeVersion, checkout_of
from isorun.errors import ExecutionError, StudyError
from isorun.execution.carrying import _lock_notes
from isorun.study import Environment
from isorun.study.cells import cells_of
from isorun.study.design import changed, document_of, study_from_document
from isorun.study.records import RunState
from isorun.testing.executor_contract import job_for

SCRIPT = "import pathlib, part; print('acc:', part.value + len(pathlib.Path('data/n').read_text()))"


def git(folder, *words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """Two commits of a training in a subfolder, the first tagged, and data that are in none of them."""
    top = tmp_path_factory.mktemp("committed")
    work = top / "deep" / "trained"
    work.mkdir(parents=True)
    git(top, "init")
    (top / ".gitignore").write_text("data/\n.isorun/\n")
    (work / "t.py").write_text(SCRIPT)
    (work / "part.py").write_text("value = 1\n")
    (work / "data").mkdir()
    (work / "data" / "n").write_text("xx")
    for number, name in ((1, "v1.0"), (2, "v2.0")):
        (work / "part.py").write_text(f"value = {number}0\n")
        git(top, "add", ".")
        git(top, "commit", "-m", name)
        git(top, "tag", name)
    return top


@pytest.fixture
def repository(committed, tmp_path, monkeypatch):
    """The folder of the training in a copy of that repository, and a cache of its own."""
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    shutil.copytree(committed, tmp_path / "top", symlinks=True)
    return tmp_path / "top" / "deep" / "trained"


def study(folder, command="python t.py", **environments):
    document = {"approaches": {"a": {"command": command}}, "environments": environments}
    return study_from_document(document, folder, "s")


def values(outcome):
    return {record.cell.environment: record.series["acc"].values[-1] for record in outcome.records if record.series}


def test_each_version_runs_as_it_was_and_the_working_copy_as_it_is(repository, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # bytecode is the training's own, and no trace of isorun's
    (repository / "part.py").write_text("value = 300\n")
    before = git(repository, "status", "--porcelain")
    links = {"links": ["data"]}
    versions = study(
        repository, old={"code": "v1.0", **links}, new={"code": "main", **links}, now={"code": "."}, plain={}
    )
    outcome = isorun.run(versions)
    assert values(outcome) == {"old": 12, "new": 22, "now": 302, "plain": 302}, [
        one.log_tail for one in outcome.records
    ]
    assert git(repository, "status", "--porcelain") == before, "nothing is left in the user's own folder"
    recorded = {record.cell.environment: record for record in outcome.records}
    commit = git(repository, "rev-parse", "v1.0")
    assert recorded["old"].environment["requested"]["code"] == {"ref": "v1.0", **links}
    assert recorded["old"].environment["made"]["code"] == {"commit": commit}
    assert recorded["old"].code["commit"] == commit
    assert recorded["now"].environment["made"]["code"]["diff"] == recorded["now"].code["diff_sha256"] != ""
    assert all("code" not in recorded["plain"].environment[part] for part in ("requested", "made"))
    old, new = (provenance([recorded[name]]) for name in ("old", "new"))
    assert between_sides(old, new, "environment") == (), "versions that the study names are what is compared"


def test_a_version_is_checked_out_once_and_killed_half_way_is_made_again(repository, tmp_path):
    wanted = study(repository, old={"code": "v1.0", "links": ["data"]})
    assert isorun.run(wanted, store=tmp_path / "first").count(RunState.FINISHED) == 1
    (made,) = (tmp_path / "cache" / "environments").glob("code-*.made")
    tree = made.with_suffix("") / "tree"
    (tree / "deep" / "trained" / "part.py").unlink()  # as when its process was killed in the middle
    made.unlink()
    assert values(isorun.run(wanted, store=tmp_path / "second")) == {"old": 12}
    assert len(git(repository, "worktree", "list").splitlines()) == 2


def test_every_run_begins_with_what_was_committed_and_what_it_did_to_that_is_told(repository):
    """The training keeps a count in a committed file, in one that is ignored, in a new folder, and moves on in git."""
    (repository / "t.py").write_text(
        "import os, subprocess, pathlib, part; os.mkdir('new'); own = pathlib.Path('.isorun/n'); own.parent.mkdir()\n"
        "own.touch(exist_ok=False); print('acc:', part.value)\n"
        "open('part.py', 'w').write(f'value = {part.value + 1}\\n')\n"
        "os.unlink('data'); subprocess.run(['git', 'rm', '-q', '--cached', 't.py'], check=True)"
    )
    git(repository, "commit", "-am", "it writes")
    wanted = changed(study(repository, new={"code": "main", "links": ["data"]}), repeats=2)
    outcome = isorun.run(wanted)
    later = isorun.run(wanted, store=repository / ".isorun" / "other").records
    made = [*outcome.records, *later]
    assert [record.series["acc"].values[-1] for record in made] == [20] * 4, [record.log_tail for record in made]
    assert all((record.code["dirty"], record.code["dirty_after"]) == (False, True) for record in made)
    told = {note.code: note.message for note in made[-1].notes}
    assert "deep/trained/part.py" in told["checkout-changed"]
    assert ".isorun" in told["checkout-written"]
    assert {"checkout-changed", "checkout-written"} <= {condition.code for condition in outcome.conditions}
    assert {"checkout-changed", "checkout-written"} <= {one.code for one in isorun.analyse(wanted).conditions}


def test_runs_side_by_side_have_a_checkout_each_and_a_broken_one_is_made_again(repository, monkeypatch):
    declared = study(repository, e={"code": "v1.0", "links": ["data"]}).environments["e"]
    environment = CodeVersion(checkout_of(declared, repository))
    environment.folder = repository.parents[2] / "made"
    environment.folder.mkdir()
    with environment.taken() as one, environment.taken() as other:
        assert one.working_folder != other.working_folder
        assert one.version == other.version == {"commit": declared.code["commit"], "dirty": False, "diff_sha256": ""}
        (one.working_folder / "part.py").write_text("value = 99\n")
        assert one.after_the_run()[0]["dirty_after"]
        assert other.after_the_run() == ({**other.version, "dirty_after": False}, [])
        git(one.working_folder, "checkout", "--force", "v2.0")
        assert [code for code, _ in one.after_the_run()[1]] == ["checkout-changed"]
    (one.working_folder.parents[1] / ".git").unlink()
    with environment.taken() as again:
        assert again.working_folder == one.working_folder
        assert (again.working_folder / "part.py").read_text() == "value = 10\n"
        assert again.after_the_run()[0]["dirty_after"] is False


def taken_tree(version):
    """The top of the tree that a run was given."""
    with version.taken() as one:
        return one.working_folder.parents[1]


@pytest.fixture
def version(repository):
    """A version of the code, of which no tree is there yet."""
    declared = study(repository, e={"code": "v1.0", "links": ["data"]}).environments["e"]
    opened = CodeVersion(checkout_of(declared, repository))
    opened.folder = repository.parents[2] / "made"
    opened.folder.mkdir()
    return opened


def test_a_lock_that_a_killed_git_left_does_not_keep_what_a_run_changed(repository, version):
    tree = taken_tree(version)
    part = tree / "deep" / "trained" / "part.py"
    part.write_text("value = 99\n")
    (Path(git(tree, "rev-parse", "--absolute-git-dir")) / "index.lock").touch()
    assert taken_tree(version) == tree
    assert part.read_text() == "value = 10\n"


def test_of_what_differs_in_a_new_checkout_nothing_else_is_let_pass(repository, version):
    """Line ends that a new checkout has already are told, and are not what a run may hide its own changes behind."""
    git(repository, "config", "filter.f.smudge", "sed s/10/11/")
    git(repository, "config", "filter.f.clean", "cat")
    (repository.parents[1] / ".git" / "info" / "attributes").write_text("part.py filter=f\n")
    with version.taken() as one:
        part = one.working_folder / "part.py"
        assert (part.read_text(), one.version["dirty"]) == ("value = 11\n", True)
    inode = part.parent.stat().st_ino
    with version.taken():
        assert part.parent.stat().st_ino == inode, "the same tree serves again"
    git(repository, "config", "filter.f.smudge", "sed s/10/12/")
    (part.parent / "t.py").write_text("")
    held = os.open(part.parent, os.O_RDONLY)  # as long as it is open its number is not given to another folder
    with version.taken() as again:
        assert (part.read_text(), (part.parent / "t.py").read_text()) == ("value = 12\n", SCRIPT)
        assert part.parent.stat().st_ino != inode, "one that cannot be made what it was is made anew"
        assert again.version["dirty"]
    os.close(held)


@pytest.mark.parametrize("instead", ["folder", "file", "other-link"])
def test_what_a_run_put_in_place_of_a_link_is_removed(repository, version, instead):
    with version.taken() as one:
        place = one.working_folder / "data"
        place.unlink()
        if instead == "folder":
            place.mkdir()
            (place / "n").write_text("x")
        elif instead == "file":
            place.write_text("x")
        else:
            place.symlink_to(repository.parent)
        assert "data" in dict(one.after_the_run()[1])["checkout-written"]
    with version.taken() as again:
        assert (again.working_folder / "data").readlink() == repository / "data"


def test_a_folder_around_a_link_may_become_a_file(repository):
    (repository / "in" / "deep").mkdir(parents=True)
    declared = study(repository, e={"code": "v1.0", "links": ["in/deep"]}).environments["e"]
    version = CodeVersion(checkout_of(declared, repository))
    version.folder = repository.parents[2] / "made"
    version.folder.mkdir()
    with version.taken() as one:
        shutil.rmtree(one.working_folder / "in")
        (one.working_folder / "in").write_text("")
        assert [code for code, _ in one.after_the_run()[1]] == ["checkout-written"]
    with version.taken() as again:
        assert (again.working_folder / "in" / "deep").is_symlink()


def test_a_full_disk_is_named_and_not_only_what_came_of_it(repository, version, monkeypatch):
    said = "error: unable to write file part.py: No space left on device\nfatal: Could not reset index file\nmore\n"
    real = code.git

    def full(folder, *words, **options):
        if words[:2] == ("worktree", "add"):
            return subprocess.CompletedProcess(words, 128, "", said)
        return real(folder, *words, **options)

    monkeypatch.setattr(code, "git", full)
    with pytest.raises(ExecutionError, match=r"No space left on device.*Could not reset") as told, version.taken():
        pass
    assert "ISORUN_CACHE" in str(told.value)
    assert "worktree prune" not in str(told.value)


def test_a_version_with_another_lock_than_the_study_is_told(repository):
    (repository / "req.txt").write_text("a==1")
    ours = hashlib.sha256(b"a==2").hexdigest()
    code = {"ref": "v1.0", "commit": "1" * 40}
    settings = {"lock": "req.txt", "sha256": ours}
    locked = Environment("e", kind="packages", code=code, settings=settings)
    job = job_for("", repository, environment=locked)
    (note,) = _lock_notes(job)
    assert (note.code, note.message) == (
        "lock-of-the-study",
        "v1.0 has another req.txt of its own, which was not installed",
    )
    (repository / "req.txt").write_text("a==2")
    assert _lock_notes(job) == []
    (repository / "req.txt").unlink()
    assert _lock_notes(job) == [], "there is no other"


def test_cells_are_known_by_the_commit_and_not_by_what_it_is_called(repository):
    ids = {name: cells_of(study(repository, e={"code": name}))[0].id for name in ("v2.0", "main", "HEAD", "v1.0")}
    assert ids["v2.0"] == ids["main"] == ids["HEAD"] != ids["v1.0"]
    clean = cells_of(study(repository, e={"code": "."}))[0].id
    (repository / "part.py").write_text("value = 4\n")
    assert cells_of(study(repository, e={"code": "."}))[0].id != clean


def test_a_kept_study_stays_at_its_commit_when_the_branch_moves(repository):
    then = study(repository, e={"code": "main", "links": ["data"]})
    kept = document_of(then)
    git(repository, "commit", "--allow-empty", "-m", "later")
    assert study_from_document(kept, repository, "s") == then
    assert study(repository, e={"code": "main", "links": ["data"]}) != then


def test_runs_of_a_version_are_not_called_old_when_the_working_copy_changes(repository):
    wanted = study(repository, old={"code": "v1.0", "links": ["data"]})
    isorun.run(wanted)
    (repository / "part.py").write_text("value = 5\n")
    assert "code-changed" not in {condition.code for condition in isorun.run(wanted).conditions}


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"code": "v1.1"}, r"no branch, tag or commit 'v1.1'[\s\S]*v1.0"),
        ({"code": "mian"}, r"names like it: main[\s\S]*write 'main'"),
        ({"code": "--all"}, "no branch, tag or commit '--all'"),
        ({"code": ""}, "no branch, tag or commit ''"),
        ({"code": "^main"}, r"no branch, tag or commit '\^main'"),
        ({"code": 3}, "it must be a table"),
        ({"code": {"reff": "v1.0"}}, "did you mean 'ref'"),
        *(
            ({"code": {"ref": "v1.0", "commit": name}}, "that is no id")
            for name in ("--lock", "HEAD", "a" * 39, "A" * 40)
        ),
        ({"code": {"ref": ".", "commit": "a" * 40, "diff": "--all"}}, "that is no id"),
        ({"code": "v1.0", "links": ["nowhere"]}, "nothing to link: nowhere"),
        ({"code": "v1.0", "links": ["../.."]}, "that cannot be linked"),
        ({"code": "v1.0", "links": ["/etc"]}, "that cannot be linked"),
        ({"code": ".", "links": ["data"]}, "the working copy has its files itself"),
        ({"links": ["data"]}, "they are for a checkout"),
    ],
)
def test_what_is_no_version_is_refused_with_names_that_are(environment, why, repository):
    with pytest.raises(StudyError, match=why):
        study(repository, e=environment)


def test_without_a_repository_there_is_no_version(tmp_path):
    with pytest.raises(StudyError, match="no repository around"):
        study(tmp_path, e={"code": "main"})


def test_a_folder_that_a_version_does_not_have_is_a_failed_run_and_others_go_on(repository):
    other = repository.parent / "later"
    other.mkdir()
    (other / "t.py").write_text("print('acc: 1')")
    git(repository, "add", "-A", str(other))
    git(repository, "commit", "-m", "later")
    outcome = isorun.run(study(other, old={"code": "v1.0"}, new={"code": "main"}))
    assert values(outcome) == {"new": 1}
    (failed,) = [record for record in outcome.records if record.state is RunState.FAILED]
    assert "the study's folder deep/later is not in the code v1.0" in failed.reason


def test_a_commit_that_is_not_there_is_a_failed_run_and_no_other_one_runs(repository):
    (record,) = isorun.run(study(repository, e={"code": {"ref": "v1.0", "commit": "a" * 40}})).records
    assert record.state is RunState.FAILED
    assert "the code v1.0 (aaaaaaaaaa) of the environment 'e' cannot be checked out" in record.reason


def test_what_the_version_has_itself_is_not_replaced_by_a_link(repository):
    outcome = isorun.run(study(repository, old={"code": "v1.0", "links": ["part.py"]}))
    assert "part.py cannot be linked, because the code v1.0" in outcome.records[0].reason


def test_a_version_is_no_kind(repository):
    with pytest.raises(StudyError, match="no kind of environment"):
        isorun.run(study(repository, e={"kind": "code"}))


@pytest.mark.slow
def test_a_study_file_in_a_subfolder_from_the_command_line(repository):
    (repository / "study.toml").write_text(
        '[approaches.a]\ncommand="python t.py"\n[environments.e]\ncode="v1.0"\nlinks=["data"]\n'
    )
    command = [sys.executable, "-m", "isorun", "run", "deep/trained/study.toml"]
    done = subprocess.run(command, cwd=repository.parents[1], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "checking out v1.0" in done.stderr
    assert Path(repository / ".isorun").is_dir()


def with_submodule(repository, tmp_path):
    """The repository with another one in it, which the first version has at an older commit than the second."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    for number in (5, 7):
        (other / "lib.py").write_text(f"more = {number}\n")
        git(other, "add", ".")
        git(other, "commit", "-m", f"lib {number}")
    top = Path(git(repository, "rev-parse", "--show-toplevel"))
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "lib")
    (repository / "t.py").write_text("import sys; sys.path.insert(0, '../../lib'); import lib; print('acc:', lib.more)")
    for commit, name in (("HEAD~1", "s1"), ("main", "s2")):
        git(top / "lib", "checkout", commit)
        git(top, "add", ".")
        git(top, "commit", "-m", name)
        git(top, "tag", name)
    return top


def test_submodules_are_checked_out_at_their_commits_from_the_users_own_copies(repository, tmp_path):
    top = with_submodule(repository, tmp_path)
    versions = study(repository, old={"code": "s1"}, new={"code": "s2"})
    outcome = isorun.run(versions)
    assert values(outcome) == {"old": 5, "new": 7}, [one.log_tail for one in outcome.records]
    assert git(top, "status", "--porcelain") == ""
    assert not any(note.code == "checkout-changed" for record in outcome.records for note in record.notes)


def test_a_submodule_whose_commit_is_not_here_is_told_and_one_that_nobody_has_is_left_empty(repository, tmp_path):
    top = with_submodule(repository, tmp_path)
    tree = "f" * 40
    git(top, "update-index", "--cacheinfo", f"160000,{tree},lib")
    git(top, "commit", "-m", "of nowhere")
    failed = isorun.run(study(repository, e={"code": "HEAD"})).records[0]
    assert f"its submodule lib at {tree[:10]}" in failed.reason
    git(top, "clone", str(top), str(tmp_path / "clone"))
    clone = tmp_path / "clone" / "deep" / "trained"
    record = isorun.run(study(clone, "python -c 'print(\"acc: 3\")'", e={"code": "s1"})).records[0]
    assert record.state is RunState.FINISHED, record.reason


@pytest.mark.parametrize("design", ["one-at-a-time", "full"])
def test_versions_of_the_code_are_a_factor_beside_others(repository, design):
    command = f'{sys.executable} -c \'import os, part; print("acc:", part.value + int(os.environ["PLUS"]))\''
    (repository / "part.py").write_text("value = 300\n")
    factors = {
        "design": design,
        "code": ["v1.0", "main", "."],
        "plus": {"variable": "PLUS", "values": ["0", "1"]},
    }
    varied = isorun.Study("varied", approaches={"a": command}, factors=factors, folder=repository)
    assert len(varied.environments) == {"one-at-a-time": 4, "full": 6}[design]
    found = values(isorun.run(varied))
    assert found["baseline"] == 10
    assert {name: value for name, value in found.items() if name.count("=") == 1} == {
        "code=main": 20,
        "code=.": 300,
        "plus=1": 11,
    }
    told = isorun.factors(varied).to_json()["effects"]
    assert {(one["factor"], one["value"]) for one in told} == {("code", "main"), ("code", "."), ("plus", "1")}
    assert {one["difference"] for one in told} == {10, 290, 1}
