"""A registry as people use it: served, logged in to, pushed to, searched, pulled from."""

import json
import shlex
import urllib.request

import pytest

from registries_made import package
from served_registry import Served
from typed_commands import typed

pytest.importorskip("fastapi", reason="needs isorun[server]")


OWN_STUDY = """
name = "own"
levels = ["fixed-seed"]
seeds = [1, 2, 3]
[approaches.toy]
command = "python train.py"
[approaches.other]
command = "python train.py other"
[metrics.test_acc]
direction = "higher"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    server = Served(tmp_path_factory.mktemp("server"), "--registry", "registry")
    server.folder = tmp_path_factory.getbasetemp()
    yield server
    server.close()


@pytest.fixture(scope="module")
def root(served, tmp_path_factory):
    """The folder of whoever administrates it."""
    folder = tmp_path_factory.mktemp("root")
    done = typed(
        *("login", served.url, "--set-up", "root"), cwd=folder, stdin=f"{served.one_time_token()}\n", env=own(folder)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{served.url}: you are root, and may admin, push, read, yank; the token is in ")
    return folder


def own(folder):
    return {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "100"}


@pytest.fixture
def say(root):
    """A command as root types it; the rest of the words are options of `typed`."""

    def said(*words, code=0, **options):
        done = typed(*words, cwd=root, env=own(root), **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code in {0, 3} else done.stderr

    return said


def kept_token(folder):
    kept = json.loads((folder / "config" / "isorun" / "registries.json").read_text())
    return kept["registries"][kept["default"]]["token"]


def test_a_wrong_one_time_token_is_told_as_one(served, root, tmp_path):
    words = ("login", served.url, "--set-up", "eve")
    done = typed(*words, cwd=tmp_path, stdin="isorun_setup_0\n", env=own(tmp_path))
    assert done.returncode == 1
    assert "does not take this as its one-time token" in done.stderr
    assert "while the registry has no user" in done.stderr


def test_in_ci_the_registry_is_a_variable_and_a_token_says_what_it_is_for(say, served, root, tmp_path):
    (root / "ci.isorun").write_bytes(package(9))
    env = {**own(tmp_path), "ISORUN_REGISTRY": served.url}

    def carl(*words, code=0, **options):
        done = typed(*words, cwd=tmp_path, env=env, **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    first = say("registry", "user", "carl").splitlines()[1].strip()
    say("registry", "join", "group", "carl")
    assert "you are carl" in carl("login", "--token-file", "-", stdin=f"{first}\n")
    limited = carl("registry", "token", "--scopes", "push", "--owners", "group").splitlines()[1].strip()
    said = carl("login", "--token-file", "-", stdin=f"{limited}\n")
    assert "and may push" in said
    assert "without the scope read it sees public packages alone" in said
    refused = carl("push", root / "ci.isorun", "carl/a/b", code=1)
    assert "this token is for packages of group alone" in refused
    assert "carl/…" not in refused


def test_a_package_of_a_registry_is_verified_by_its_name(say, root):
    (root / "seen.isorun").write_bytes(package(8))
    say("push", "seen.isorun", "root/a/seen")
    assert "registry:root/a/seen@1 is whole" in say("verify", "registry:root/a/seen@1")


def test_a_package_is_pushed_found_and_pulled(say, root):
    (root / "toy.isorun").write_bytes(package(1))
    assert "registry:root/toy/toy@1 is new" in say("push", "toy.isorun")
    assert "registry:root/toy/toy@1 was there already, with the same bytes" in say("push", "toy.isorun")
    assert "registry:root/a/net@1 is new" in say("push", "toy.isorun", "root/a/net", "--public")
    (root / "toy.isorun").write_bytes(package(2))
    assert "registry:root/toy/toy@2 is new" in say("push", "toy.isorun")
    error = say("push", "toy.isorun", "root/a/net@1", code=1)
    assert "root/a/net@1 is there already, with other bytes" in error
    assert "next:    isorun push PACKAGE root/a/net makes version 2" in error
    found = say("search", "toy", "net")
    assert found.startswith("1 package in http://127.0.0.1:")
    assert "registry:root/a/net@1  1 runs of toy, self-reported" in found
    nothing = say("search", "toy", "elsewhere")
    assert nothing.startswith("no package that you may see in http://127.0.0.1:")
    assert nothing.endswith(" has all of these words: toy elsewhere\n")
    say("pull", "registry:root/toy/toy")
    assert "a file toy-2.isorun already" in say("pull", "registry:root/toy/toy", code=1)
    assert (root / "toy-2.isorun").read_bytes() == package(2)
    assert "every one checked" in say("pull", "registry:root/toy/toy@1", "-o", "first.isorun")
    again = say("pull", "registry:root/toy/toy@1", "-o", "first.isorun", code=1)
    assert "'first.isorun' is there already: it is not overwritten" in " ".join(again.split())
    assert (root / "first.isorun").read_bytes() == package(1)
    assert (
        json.loads(say("verify", "first.isorun", "--json"))["address"]
        == json.loads(say("search", "net", "--json"))["packages"][0]["address"]
    )


@pytest.mark.long
def test_a_package_of_a_registry_stands_where_a_study_may(say, root):
    (root / "train.py").write_text("import isorun, random\nisorun.result(test_acc=0.5 + random.random() / 10)\n")
    say("run", "-n", "6", "--name", "base", "--", "python", "train.py")
    say("pack", "base", "-o", "base.isorun")
    say("push", "base.isorun", "root/base/base")
    assert "test_acc" in say("report", "registry:root/base/base@1")
    assert json.loads(say("summarize", "registry:root/base/base", "--json"))
    say("run", "-n", "6", "--name", "base", "--store", "new", "--", "python", "train.py")
    words = ("--baseline", "registry:root/base/base@1", "--store", "new", "--no-run", "--margin", "50")
    checked = say("check", "base", *words)
    assert "registry:root/base/base@1" in checked
    assert "no worse" in checked.lower() or "not worse" in checked.lower()


def test_a_version_is_yanked_and_told_of(say, root):
    (root / "y.isorun").write_bytes(package(3))
    say("push", "y.isorun", "root/y/y")
    assert "a yank needs a reason" in say("registry", "yank", "root/y/y@1", code=2)
    say("registry", "yank", "root/y/y@1", "--reason", "wrong data")
    assert "1. This version was yanked: wrong data" in say("pull", "registry:root/y/y@1", "-o", "y1.isorun")
    assert "all versions were yanked" in say("pull", "registry:root/y/y", "-o", "y2.isorun", code=1)
    assert "yanked: wrong data" in say("registry", "show", "root/y/y")
    say("registry", "unyank", "root/y/y@1")
    assert "yanked" not in say("pull", "registry:root/y/y", "-o", "y2.isorun")


def test_others_are_let_in_and_what_they_replicated_is_linked(say, root, served, tmp_path):
    (root / "r.isorun").write_bytes(package(4))
    say("push", "r.isorun", "root/r/r", "--public")
    made = json.loads(say("registry", "user", "bob", "--json"))
    (tmp_path / "token").write_text(made["token"])
    bob = lambda *words: typed(*words, cwd=tmp_path, env=own(tmp_path))  # noqa: E731
    assert "you are bob" in bob("login", served.url, "--token-file", "token").stdout
    (tmp_path / "mine.isorun").write_bytes(package(5))
    assert bob("push", "mine.isorun", "bob/r/again", "--replicates", "root/r/r@1", "--public").returncode == 0
    assert "replicated by bob (registry:bob/r/again@1)" in say("registry", "show", "root/r/r")
    assert "replicated by bob (registry:bob/r/again@1)" in say("search", "root/r/r")
    assert "only who administrates" in bob("registry", "audit").stderr
    say("registry", "join", "lab", "bob")
    assert bob("push", "mine.isorun", "lab/r/mine").returncode == 0
    say("registry", "close", "bob")
    assert "not known here, or has expired" in bob("search").stderr
    assert '"replicates":"sha256:' in say("registry", "audit")


@pytest.mark.long
def test_a_package_is_pulled_replicated_and_pushed_and_its_page_leads_to_the_replication(say, root, served, tmp_path):
    (root / "train.py").write_text("import isorun, random\nisorun.result(test_acc=0.5 + random.random() / 10)\n")
    (root / "own.toml").write_text(OWN_STUDY)
    say("run", "own.toml")
    say("pack", "own.toml", "-o", "own.isorun", "--snapshot")
    say("push", "own.isorun", "root/own/net", "--public")
    (tmp_path / "token").write_text(json.loads(say("registry", "user", "dora", "--json"))["token"])

    def dora(*words):
        done = typed(*words, cwd=tmp_path, env={**own(tmp_path), "COLUMNS": "1000"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    dora("login", served.url, "--token-file", "token")
    dora("pull", "registry:root/own/net@1")
    told = dora("replicate", "net-1.isorun", "-n", "2", "--yes")
    assert told.startswith("Repeated: ")
    packing, pushing = told.partition("once it is told: ")[2].partition(".\n")[0].split(", then ")
    dora(*shlex.split(packing)[1:])
    dora(*shlex.split(pushing)[1:], "--public")

    theirs = "dora/own/net-1-replication@1"
    linked = f"replicated by dora (registry:{theirs})"
    assert linked in say("registry", "show", "root/own/net")
    assert linked in say("search", "root/own/net")
    assert linked in say("pull", "registry:root/own/net@1", "-o", "again.isorun")
    (version,) = json.loads(say("registry", "show", "root/own/net", "--json"))["versions"]
    assert [(one["by"], one["package"]) for one in version["replications"]] == [("dora", theirs)]

    page = f"/shelves/registry/{theirs}/study"
    assert f'<a href="{page}">{theirs}</a>' in seen(served, "/shelves/registry/root/own/net@1/study")
    assert "<h1>dora/own/net-1-replication@1</h1>" in seen(served, page)
    assert f'<a href="{page}">dora ({theirs})</a>' in seen(served, "/")
    board = "/shelves/registry/root/own/net@1/leaderboard"
    assert f'<a href="{page}">dora ({theirs})</a>' in seen(served, board)
    assert f"dora,{theirs},sha256:" in seen(served, "/shelves/registry/root/own/net@1/study.csv?table=replications")
    assert f"dora ({theirs})" in seen(served, f"{board}.csv")
    assert f"dora ({theirs})" in seen(served, "/home.csv")
    study = json.loads(seen(served, "/shelves/registry/root/own/net@1/study.json"))
    ranked = json.loads(seen(served, f"{board}.json"))["replications"]
    assert set(ranked) == {"toy", "other"}
    (home,) = [one for one in json.loads(seen(served, "/home.json"))["studies"] if one["study"] == "root/own/net@1"]
    for replications in (study["replications"], home["replications"], *ranked.values()):
        assert [(one["by"], one["package"], one["page"]) for one in replications] == [("dora", theirs, page)]


def seen(served, address):
    """A page as anybody sees it."""
    with urllib.request.urlopen(f"{served.url}{address}", timeout=60) as answer:
        return answer.read().decode()


def test_no_token_is_shown_logged_or_kept_by_the_server(say, root, served):
    made = json.loads(say("registry", "token", "--scopes", "read,push", "--days", "2", "--purpose", "ci", "--json"))
    secrets = [kept_token(root), made["token"]]
    assert say("registry", "tokens").count("ci") == 1
    say("registry", "revoke", made["number"])
    shown = "".join(
        say(*words) for words in (("registry", "tokens"), ("registry", "audit"), ("search",), ("registry", "users"))
    )
    files = b"".join(path.read_bytes() for path in served_folder(served).rglob("*") if path.is_file())
    for secret in secrets:
        assert secret not in shown
        assert secret not in served.said
        assert secret.encode() not in files
    assert served.said.count("isorun_") == 1, "the one-time token, once"
    path = root / "config" / "isorun" / "registries.json"
    assert path.stat().st_mode & 0o777 == 0o600


def served_folder(served):
    return next(path for path in served.folder.rglob("registry") if (path / "blobs").is_dir())


def test_a_registry_is_looked_over_and_copied_where_its_files_are(say, root, served, tmp_path):
    folder = served_folder(served)
    found = say("registry", "verify", folder)
    assert found.startswith(f"{folder} is whole")
    head = json.loads(say("registry", "verify", folder, "--json"))["audit"]["head"]
    say("registry", "token", "--days", "1")
    assert "is whole" in say("registry", "verify", folder, "--head", head)
    assert "is damaged" in say("registry", "verify", folder, "--head", f"99999:{'0' * 64}", code=3)
    assert "this is no head" in say("registry", "verify", folder, "--head", "x", code=1)
    assert "a copy of the registry" in say("registry", "backup", folder, tmp_path / "copy")
    assert "is whole" in say("registry", "verify", tmp_path / "copy")
    assert "0 files were removed" in say("registry", "sweep", folder)
    assert "token " in say("registry", "renew", folder, "root")
    assert "there is no registry" in say("registry", "verify", tmp_path / "none", code=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("login", "lab.org"), "no address of a registry"),
        (("login", "http://lab.example"), "not encrypted"),
        (("push", "none.isorun", "a/b/c"), "cannot be read"),
        (("pull", "registry:a/b"), "no name of a package"),
        (("pull", "registry:nobody/b/c"), "there is no nobody/b/c here that you may see"),
        (("search", "x", "--registry", "http://127.0.0.1:9"), "cannot be reached"),
        (("registry", "show", "nobody/b/c"), "there is no nobody/b/c"),
        (("registry", "join", "../x", "bob"), "this is no name"),
        (("check", "study.toml", "--baseline", "registry:nobody/b/c@1"), "there is no nobody/b/c"),
    ],
)
def test_mistakes_are_told_without_a_trace(say, root, words, said):
    (root / "study.toml").write_text("[approaches.a]\ncommand = 'true'\n")
    error = say(*words, code=1, stdin="isorun_wrong\n")
    assert said in error
    assert "Traceback" not in error
    assert "isorun_wrong" not in error


def test_what_would_be_open_by_mistake_is_refused(tmp_path):
    for words, said in (
        (("--host", "0.0.0.0"), "shown to this machine alone"),
        (("--host", "0.0.0.0", "--registry", "r"), "how others reach the server is not said"),
        (("--index", "postgresql://lab/x"), "--index is for a registry"),
        (("--registry", "r", "--url", "lab.org"), "--url is no address"),
        (("--registry", "r", "--largest", "0"), "--largest is out of range"),
        (("--registry", "r", "--port", "65536"), "--port is out of range"),
    ):
        done = typed("serve", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("missing", "words"), [("starlette", ()), ("fastapi", ("--registry", "r"))])
def test_without_the_extra_it_is_named(missing, words, tmp_path):
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name='{missing}')")
    done = typed("serve", *words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, fresh=True)
    assert done.returncode == 1
    assert "pip install 'isorun[server]'" in done.stderr


def test_what_is_not_there_is_refused_before_anything_is_served(tmp_path):
    (tmp_path / "file").write_text("x")
    for words, said in (
        (("none.isorun",), "there is no package none.isorun"),
        (("none",), "there is no store none"),
        (("file",), "there is no store file"),
        (("--registry", "file"), "file is no folder"),
        (("--registry", "r", "--url", "http://x", "--host", "no host"), "--host 127.0.0.1, or an address"),
    ):
        done = typed("serve", *words, "--port", "0", cwd=tmp_path, timeout=60)
        assert (done.returncode, said in done.stderr, "--store" in done.stderr) == (1, True, False), done.stderr


@pytest.mark.parametrize("most", ["0", "101"])
def test_how_many_packages_are_listed_is_told_where_it_cannot_be(say, most):
    assert "allowed: 1 to 100" in say("search", "--most", most, code=2)


def test_a_taken_port_is_told(served, tmp_path):
    done = typed("serve", "--port", str(served.port), cwd=tmp_path)
    assert done.returncode == 1
    assert "cannot be listened on" in done.stderr
