"""Code of a package in a folder: what fits is put there, and nothing is ever written anywhere else."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from isorun.errors import InputError, PackageError
from isorun.share.at_hand import bring_data, checked_files
from isorun.share.rebuilding import KeptCode, checked_path, put_code

TRAIN = b"print('train')\n"


def sha(content):
    return hashlib.sha256(content).hexdigest()


def kept(*paths, content=TRAIN, **version):
    files = [{"path": path, "sha256": sha(content), "member": "code/file-00000"} for path in paths]
    return KeptCode({"files": files, **({"versions": [{**version, "runs": 3}]} if version else {})}, lambda _: content)


def git(folder, *words):
    command = ["git", "-c", "user.name=ann", "-c", "user.email=ann@lab", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "theirs"
    (folder / "exp").mkdir(parents=True)
    (folder / "exp" / "train.py").write_bytes(TRAIN)
    (folder / "train.py").write_text("another one\n")
    (folder / "out").symlink_to("/tmp")
    git(folder.parent, "init", "-q", str(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def around(tmp_path):
    """A folder with the one that code is put into, and what must not be touched beside it."""
    (tmp_path / "around" / "beside").mkdir(parents=True)
    (tmp_path / "around" / "beside" / "precious.py").write_text("mine\n")
    return tmp_path / "around"


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() or path.is_symlink())


def test_files_of_a_package_are_put_below_the_folder(around):
    put = put_code(
        kept("train.py", "lib/net.py"), around / "new", None, {"train.py": sha(TRAIN), "gone.py": sha(TRAIN)}
    )
    assert (around / "new" / "lib" / "net.py").read_bytes() == TRAIN
    assert (put.commit, put.differs, put.missing) == ("", (), ("gone.py",))


HOSTILE = [
    "../beside/precious.py", "/etc/cron.d/x.py", "a/../../beside/precious.py", "./x.py", "a//x.py", "", ".", "..", "a/",
    "~/x.py" + "\0", "a\\..\\x.py", "C:\\x.py", "c:x.py", "x.py:stream", ".git/hooks/post-checkout", "lib/.GIT/config",
    ".git", "git~1/config", ".g\u200cit/config", ".git./config", ".git /config", ".gitmodules", "con", "nul.py",
    "lib/COM1.py", "lpt9/x.py", "aux.", "x.py.", "x.py ", "a\nb.py", "\u202ex.py", "x" * 500, "/".join("a" * 60), 7,
    None, ["a"],
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: repr(path)[:30])
def test_a_hostile_path_is_refused_and_nothing_is_written(path, around):
    before = everything(around)
    with pytest.raises(PackageError):
        put_code(kept(path), around / "new", None, {})
    assert everything(around) == before
    with pytest.raises(PackageError):
        checked_path(path)


@pytest.mark.parametrize(
    "path", ["train.py", "a-b/c_d/e.f.py", "ünï/çode.py", ".hidden/x.toml", "console.py", "nullable/x"]
)
def test_paths_as_people_have_them_are_taken(path):
    assert str(checked_path(path)) == path


def test_no_file_is_written_through_a_link_of_the_repository(repository, around):
    commit = git(repository, "rev-parse", "HEAD")
    for path in ("out/evil.py", "out"):
        with pytest.raises(PackageError, match="link"):
            put_code(kept(path, commit=commit), around / f"new-{len(path)}", repository, {})
    assert not Path("/tmp/evil.py").exists()


def test_a_member_that_is_not_the_file_of_the_runs_is_refused(around):
    code = KeptCode({"files": [{"path": "x.py", "sha256": "0" * 64, "member": "code/file-00000"}]}, lambda _: TRAIN)
    with pytest.raises(PackageError, match="not the file"):
        put_code(code, around / "new", None, {})


def test_a_commit_is_put_there_with_its_study_folder_found_by_digests(repository, around):
    commit = git(repository, "rev-parse", "HEAD")
    put = put_code(kept(commit=commit), around / "new", repository / "exp", {"train.py": sha(TRAIN)})
    assert put.working == around / "new" / "exp"
    assert (put.commit, put.missing, put.differs) == (commit, (), ())
    assert git(repository, "worktree", "list").count("\n") == 0, "the user's repository is left as it is"


def test_a_difference_is_applied_and_what_differs_after_it_is_said(repository, around):
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "exp" / "train.py").write_text("changed\n")
    diff = git(repository, "diff", "HEAD", "--binary").encode() + b"\n"
    code = KeptCode({"versions": [{"commit": commit, "difference": "d", "runs": 1}]}, lambda _: diff)
    put = put_code(code, around / "new", repository, {"train.py": sha(b"changed\n")})
    assert put.differs == ()
    assert (put.working / "train.py").read_text() == "changed\n"
    assert put_code(code, around / "new", repository, {"train.py": sha(b"changed\n")}) == put, "stopped and typed again"


HEAD = "diff --git a/{0} b/{0}\nnew file mode {1}\nindex 0000000..1111111\n"
NEW = HEAD + "--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+/etc\n"


@pytest.mark.parametrize(
    "diff",
    [
        NEW.format("../evil.py", "100644"),
        NEW.format("/evil.py", "100644"),
        NEW.format(".git/hooks/post-checkout", "100755"),
        NEW.format("out/evil.py", "100644"),
        NEW.format("link", "120000"),
        NEW.format("link", " 120000"),
        NEW.format("link", "0120000"),
        NEW.format("link", "120000 "),
        NEW.format("sub", "160000"),
        NEW.format("con", "100644"),
        "diff --git a/train.py b/../evil.py\nsimilarity index 100%\nrename from train.py\nrename to ../evil.py\n",
        "no difference at all\n",
        "",
    ],
    ids=[
        "up",
        "absolute",
        "hook",
        "through a link",
        "link",
        "spaced link",
        "long link",
        "link and space",
        "submodule",
        "device",
        "rename",
        "text",
        "empty",
    ],
)
def test_a_hostile_difference_is_refused_and_nothing_is_written_elsewhere(diff, repository, around):
    commit = git(repository, "rev-parse", "HEAD")
    code = KeptCode({"versions": [{"commit": commit, "difference": "d", "runs": 1}]}, lambda _: diff.encode())
    with pytest.raises(PackageError):
        put_code(code, around / "new", repository, {})
    assert everything(around / "beside") == ["precious.py"]
    assert [path.name for path in around.iterdir() if path.name not in {"beside", "new"}] == []
    assert not (around / "new" / ".git" / "hooks" / "post-checkout").exists()


@pytest.mark.parametrize("commit", ["--upload-pack=x", "HEAD", "ab" * 19, "AB" * 20, "$(id)"])
def test_a_commit_that_is_none_is_refused(commit, repository, around):
    with pytest.raises(PackageError, match="commit"):
        put_code(kept(commit=commit), around / "new", repository, {})


def test_a_commit_that_no_repository_at_hand_has_says_how_to_get_it(repository, around, monkeypatch):
    monkeypatch.chdir(around)
    files = {"train.py": sha(TRAIN)}
    with pytest.raises(InputError, match="no repository with it is at hand") as error:
        put_code(kept(commit="ab" * 20, remote="https://lab/net.git"), around / "new", None, files)
    assert "git clone https://lab/net.git code, then --code code" in error.value.hint
    with pytest.raises(InputError, match="the commit abababababab"):
        put_code(kept(commit="ab" * 20), around / "other", repository, files)
    snapshot = put_code(kept("train.py", commit="ab" * 20), around / "third", None, files)
    assert (snapshot.missing, snapshot.commit) == ((), "")


def test_data_are_brought_by_digest_and_never_from_or_to_elsewhere(around):
    place, working = around / "data-place", around / "new"
    (place / "data").mkdir(parents=True)
    working.mkdir()
    (place / "data" / "x.csv").write_bytes(b"1")
    (place / "y.csv").write_bytes(b"2")
    files = {"data/x.csv": sha(b"1"), "data/y.csv": sha(b"2"), "data/z.csv": sha(b"3")}
    lacks = list(bring_data(files, working, [place]))
    assert [(lack.what, lack.found) for lack in lacks] == [("data/z.csv", None)]
    assert (working / "data" / "y.csv").read_bytes() == b"2"
    (working / "data" / "x.csv").write_bytes(b"edited")
    assert [lack.what for lack in bring_data(files, working, [place])] == ["data/x.csv", "data/z.csv"]
    assert [lack.what for lack in bring_data({"../beside/x.csv": sha(b"1")}, working, [place])] == ["../beside/x.csv"]
    assert everything(around / "beside") == ["precious.py"]
    with pytest.raises(PackageError):
        checked_files([{"path": ".git/config", "sha256": sha(b"1")}])
    with pytest.raises(PackageError):
        checked_files([{"path": "x", "sha256": "short"}])


@pytest.mark.parametrize("runs", ["many", [1], {}, None, True, 1.5])
def test_a_count_of_runs_that_is_none_stops_nobody(around, runs):
    code = KeptCode({"versions": [{"runs": runs}]}, lambda _: b"")
    assert put_code(code, around / "new", None, {}).commit == ""


def test_data_of_the_commit_give_way_to_the_recorded_ones_in_a_copy_alone(tmp_path):
    working, elsewhere, files = tmp_path / "code", tmp_path / "data", {"big.bin": sha(b"recorded")}
    for folder in (working, elsewhere):
        folder.mkdir()
    (working / "big.bin").write_bytes(b"a pointer to a large file")
    (elsewhere / "big.bin").write_bytes(b"recorded")
    assert [lack.what for lack in bring_data(files, working, [elsewhere])] == ["big.bin"]
    assert (working / "big.bin").read_bytes() == b"a pointer to a large file", "a user's own folder stays as it is"
    assert list(bring_data(files, working, [elsewhere], is_ours=True)) == []
    assert (working / "big.bin").read_bytes() == b"recorded"
    (working / "big.bin").write_bytes(b"other")
    (elsewhere / "big.bin").write_bytes(b"another one")
    assert [lack.what for lack in bring_data(files, working, [elsewhere], is_ours=True)] == ["big.bin"]
    assert (working / "big.bin").read_bytes() == b"other", "only the recorded ones are worth it"
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "x").write_bytes(b"other")
    (working / "linked").symlink_to(tmp_path / "users")
    (elsewhere / "x").write_bytes(b"recorded")
    linked = {"linked/x": sha(b"recorded")}
    assert [lack.what for lack in bring_data(linked, working, [elsewhere], is_ours=True)] == ["linked/x"]
    assert (tmp_path / "users" / "x").read_bytes() == b"other", "nothing of the user's own is touched through a link"
