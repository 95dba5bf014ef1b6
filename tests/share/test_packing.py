"""A study becomes a package: the same bytes for the same study, nothing half, and no secret."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from recorded_study import STUDY, TRAIN, recorded_study

from isorun import questions, workflow
from isorun.comparing import compare_with
from isorun.errors import InputError, NothingRecorded, StoreError
from isorun.packages.opened import PackageStore
from isorun.packages.reading import open_package
from isorun.session import open_store
from isorun.share import packing
from isorun.share.looking import NONE, verify
from isorun.share.packing import pack
from isorun.share.plain import packed_from, write_plain
from isorun.share.replicating import replicate
from isorun.store.copying import copy
from isorun.study.records import record_digest


@pytest.fixture
def study(tmp_path):
    return recorded_study(tmp_path)


def test_what_was_packed_is_whole_and_holds_the_study(study, tmp_path):
    packed = pack(study, tmp_path / "digits.isorun")
    found = verify(tmp_path / "digits.isorun", keys=())
    assert found.address == packed.manifest.address
    assert found.states == {"finished": 16}
    assert found.groups == 4
    assert found.metrics == ("accuracy",)
    assert found.signature == NONE
    assert found.data["files"] == [{"path": "data/train.csv", "runs": 16, "sha256": "ab" * 32}]
    with open_package(tmp_path / "digits.isorun") as package:
        assert package.study().name == "digits"
        kept = workflow.records(study)
        assert {record_digest(record) for record in package.records()} == set(map(record_digest, kept))


def test_the_same_study_gives_the_same_bytes_also_from_another_store(study, tmp_path):
    pack(study, tmp_path / "a.isorun")
    with open_store(str(tmp_path / ".isorun")) as source, open_store(str(tmp_path / "copy")) as target:
        copy(source, target, ("a", "b"))
    pack(study, tmp_path / "b.isorun", store=tmp_path / "copy")
    assert (tmp_path / "a.isorun").read_bytes() == (tmp_path / "b.isorun").read_bytes()


def test_one_more_run_gives_another_address(study, tmp_path):
    first = pack(study, tmp_path / "a.isorun")
    other = tmp_path / "other"
    other.mkdir()
    second = pack(recorded_study(other, STUDY.replace("repeats = 4", "repeats = 5")), tmp_path / "b.isorun")
    assert first.manifest.address != second.manifest.address


def test_a_package_answers_as_its_study_does(study, tmp_path, monkeypatch):
    pack(study, tmp_path / "digits.isorun")
    fresh = tmp_path / "elsewhere"
    fresh.mkdir()
    monkeypatch.chdir(fresh)
    where = {"level": "default"}
    of_package = questions.compare(str(tmp_path / "digits.isorun"), by="approach", where=where).to_json()
    assert of_package == questions.compare(str(study), by="approach", where=where).to_json()
    assert of_package["verdict"] == questions.compare(tmp_path / "digits.isorun", by="approach", where=where).verdict
    told = workflow.analyse(str(tmp_path / "digits.isorun"))
    assert told.study == "digits"
    assert not list(fresh.iterdir())


def test_a_package_can_be_copied_into_a_store_and_is_never_changed(study, tmp_path):
    pack(study, tmp_path / "digits.isorun")
    with PackageStore(tmp_path / "digits.isorun") as source, open_store(str(tmp_path / "new")) as target:
        assert copy(source, target, ("a", "b")).records == 16
        with pytest.raises(StoreError, match="not changed"):
            source.claim("0" * 16)
        with pytest.raises(StoreError, match="not changed"):
            source.finish(source.records()[0])
    assert workflow.analyse("digits", store=tmp_path / "new").study == "digits"


def test_a_study_with_secrets_is_packed_without_them_and_found_again(tmp_path):
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    text = STUDY.replace("--width 8", f"--width 8 --token {secret}")
    packed = pack(recorded_study(tmp_path, text), tmp_path / "p.isorun")
    assert packed.manifest.runs == 16
    with open_package(tmp_path / "p.isorun") as package:
        whole = b"".join(package.content(name) for name in package.names())
    assert secret.encode() not in (tmp_path / "p.isorun").read_bytes() + whole
    assert len(workflow.records(str(tmp_path / "p.isorun"))) == 16


def test_code_that_git_has_not_goes_in_and_what_looks_secret_stays_out(tmp_path):
    packed = pack(recorded_study(tmp_path), tmp_path / "p.isorun")
    [told] = packed.code.files
    assert told["path"] == "train.py"
    with open_package(tmp_path / "p.isorun") as package:
        assert package.content(told["member"]) == TRAIN.encode()
    other = tmp_path / "other"
    other.mkdir()
    line = 'api_key = "sk-proj-0123456789abcdefghijklmnop"\n'
    study = recorded_study(other, train=TRAIN + line)
    packed = pack(study, tmp_path / "q.isorun")
    assert packed.code.files == []
    assert "line 3" in packed.code.left_out[0]["why"]
    assert b"sk-proj" not in (tmp_path / "q.isorun").read_bytes()
    assert len(pack(study, tmp_path / "r.isorun", allowed=["./train.py"]).code.files) == 1
    with pytest.raises(InputError, match=r"called trian.py, so that it could be let in(?s:.*)did you mean 'train.py'"):
        pack(study, tmp_path / "never.isorun", allowed=["trian.py"])
    assert not (tmp_path / "never.isorun").exists()
    (other / "train.py").write_text("changed\n")
    assert "another one by now" in pack(study, tmp_path / "s.isorun").code.left_out[0]["why"]
    assert pack(study, tmp_path / "t.isorun", with_code=False).code.to_json()["left_out"] == []


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_commit_with_changes_goes_in_as_reference_and_difference(tmp_path):
    from isorun.worker.usercode import code_version

    recorded_study(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "https://user:hunter2@example.org/x.git")
    (tmp_path / "secrets.py").write_text("a = 1\n")
    git(tmp_path, "add", "train.py", "secrets.py", "study.toml")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "train.py").write_text(TRAIN + "# more\n")
    (tmp_path / "secrets.py").write_text("token = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'\n")
    for item in (tmp_path / ".isorun").rglob("*"):
        if item.is_file():
            item.unlink()
    (tmp_path / ".gitignore").write_text(".isorun\n")
    now = code_version(tmp_path)
    assert now["dirty"]
    packed = pack(recorded_study(tmp_path, train=TRAIN + "# more\n", code=now), tmp_path / "p.isorun")
    [version] = packed.code.versions
    assert version["commit"] == git(tmp_path, "rev-parse", "HEAD").strip()
    assert "hunter2" not in version["remote"]
    with open_package(tmp_path / "p.isorun") as package:
        difference = package.content(version["difference"]).decode()
    assert "+# more" in difference
    assert "ghp_" not in difference
    assert "secrets.py" in packed.code.left_out[0]["path"]


def test_nothing_half_is_ever_under_the_name(study, tmp_path, monkeypatch):
    """Whatever is called while packing fails once: no package, or the one that was there."""
    target = tmp_path / "p.isorun"
    pack(study, target, license_id="MIT")
    before = target.read_bytes()
    for name in ("add_json", "add_documents", "add_records", "finish"):
        with monkeypatch.context() as patched:
            patched.setattr(packing.PackageWriter, name, _interrupted)
            with pytest.raises(KeyboardInterrupt):
                pack(study, target)
        assert target.read_bytes() == before
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, _no_space)
            with pytest.raises(InputError, match="No space"):
                pack(study, target)
        assert target.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".*.part")] == []
    pack(study, target)
    assert target.read_bytes() != before
    assert verify(target, keys=()).manifest.runs == 16


def _interrupted(*_, **__):
    raise KeyboardInterrupt


def _no_space(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.long
def test_killed_while_packing_there_is_no_package_or_a_whole_one(study, tmp_path):
    """A child writes slowly, and is killed after every so many writes."""
    child = (
        "import sys, time; from isorun.packages import container; write = container.Writer.add\n"
        "def slow(self, name, content):\n"
        "    print(name, flush=True); time.sleep(0.05); return write(self, name, content)\n"
        "container.Writer.add = slow\n"
        "from isorun.share.packing import pack; pack(sys.argv[1], sys.argv[2])"
    )
    for lines in (5, 10):
        target = tmp_path / f"killed-{lines}.isorun"
        process = subprocess.Popen([sys.executable, "-c", child, study, target], stdout=subprocess.PIPE)
        for _ in range(lines):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert not target.exists()
    process = subprocess.Popen([sys.executable, "-c", child, study, target], stdout=subprocess.PIPE)
    while not target.exists():
        time.sleep(0.001)
        assert process.poll() in (None, 0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert verify(target, keys=()).manifest.runs == 16


def test_what_cannot_be_packed_is_said(tmp_path, study):
    for name in ("x.zip", "x"):
        with pytest.raises(InputError, match="packages are called"):
            pack(study, tmp_path / name)
    with pytest.raises(InputError, match="SPDX"):
        pack(study, tmp_path / "p.isorun", license_id="do what you like")
    pack(study, tmp_path / "p.isorun")
    with pytest.raises(InputError, match="a package already"):
        pack(tmp_path / "p.isorun", tmp_path / "q.isorun")
    with pytest.raises(NothingRecorded):
        pack(study, tmp_path / "q.isorun", store=tmp_path / "nowhere")
    packed = pack(study, tmp_path / "never.isorun", dry_run=True)
    assert packed.manifest.runs == 16
    assert not (tmp_path / "never.isorun").exists()


@pytest.mark.parametrize("parquet", [False, True])
def test_plain_tables_say_the_same_and_become_a_package_again(study, tmp_path, parquet):
    if parquet:
        pytest.importorskip("pyarrow")
    done = write_plain(study, tmp_path / "plain", parquet=parquet)
    assert (done.runs, done.points) == (16, 16 * 15)
    packed_from(tmp_path / "plain", tmp_path / "back.isorun")
    kept = {record.run_id: record for record in workflow.records(study)}
    with open_package(tmp_path / "back.isorun") as package:
        for record in package.records():
            before = kept[record.run_id]
            assert (record.cell, record.results, record.series) == (before.cell, before.results, before.series)
    with pytest.raises(InputError, match="not empty"):
        write_plain(study, tmp_path / "plain")


def test_a_table_that_nobody_of_us_wrote_becomes_a_package(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    rows = [f"{name},{seed},{0.5 + seed / 100}\n" for name in ("base", "new") for seed in range(1, 6)]
    (folder / "runs.csv").write_text("approach,seed,result.acc\n" + "".join(rows))
    packed_from(folder, tmp_path / "t.isorun")
    found = questions.summarize(tmp_path / "t.isorun", by="approach").to_json()
    assert json.dumps(found).count('"base"') >= 1
    (folder / "runs.csv").write_text("approach,seed,result.acc\na,x,1\n")
    with pytest.raises(InputError, match="cannot be read"):
        packed_from(folder, tmp_path / "t.isorun")


def _packed_table(folder, runs, points=""):
    folder.mkdir(exist_ok=True)
    (folder / "runs.csv").write_text(runs)
    (folder / "points.csv").write_text(points or "run,metric,step,seconds,value\n")
    with open_package(packed_from(folder, folder.with_suffix(".isorun")).path) as package:
        return list(package.records())


def test_settings_in_a_table_of_somebody_else_are_its_configs(tmp_path):
    rows = [f"{name},{seed},{lr},0.9\n" for name in ("sgd", "adam") for lr in (0.1, 0.01) for seed in (1, 2)]
    found = _packed_table(tmp_path / "theirs", "approach,seed,config.lr,result.acc\n" + "".join(rows))
    assert sorted(
        (one.cell.approach, one.cell.config, one.cell.config_values["lr"], one.cell.seed) for one in found
    ) == [(name, f"lr={lr}", lr, seed) for name in ("adam", "sgd") for lr in (0.01, 0.1) for seed in (1, 2)]
    named = _packed_table(tmp_path / "named", "approach,config,seed,config.lr,result.acc\na,x,1,0.1,1\na,y,1,0.2,1\n")
    assert sorted((one.cell.config, one.cell.config_values["lr"]) for one in named) == [("x", 0.1), ("y", 0.2)]
    apart = _packed_table(
        tmp_path / "apart", "approach,seed,config.lr,config.beta,result.acc\na,1,0.1,,1\nb,1,,0.9,1\n"
    )
    assert sorted((one.cell.approach, one.cell.config) for one in apart) == [("a", "lr=0.1"), ("b", "beta=0.9")]


@pytest.mark.parametrize(
    ("runs", "points", "said"),
    [
        ("config,seed,config.lr,result.acc\nx,1,0.1,1\nx,2,0.2,1\n", "", "'x' does not set the same in all rows"),
        ("config,seed,config.lr,result.acc\nx,1,0.1,1\ny,2,,1\n", "", "'y' has no lr"),
        ("run,seed,result.acc\nr1,1,1\n", "run,metric,step,seconds,value\nr2,acc,1,1,1\n", "not among the runs"),
    ],
)
def test_what_of_a_table_would_be_lost_is_refused(tmp_path, runs, points, said):
    rows = [f"{'approach' if not number else 'net'},{line}" for number, line in enumerate(runs.splitlines())]
    with pytest.raises(InputError, match=said):
        _packed_table(tmp_path / "theirs", "\n".join(rows) + "\n", points)


def test_a_setting_that_python_alone_reads_as_a_number_keeps_its_name(tmp_path):
    rows = "".join(f"a,{seed},{width},1\n" for width in ("1_2", "12") for seed in (1, 2))
    as_excel_begins = "\ufeffapproach,seed,config.width,result.acc\n"
    found = _packed_table(tmp_path / "theirs", as_excel_begins + rows)
    assert {(one.cell.config, one.cell.config_values["width"]) for one in found} == {
        ("width=1_2", "1_2"),
        ("width=12", 12),
    }
    with pytest.raises(InputError, match="cannot be read"):
        _packed_table(tmp_path / "odd", "approach,seed,result.acc\na,1,1_2\n")


def _table(folder, values, repeat=1):
    folder.mkdir()
    rows = [f"base,{seed},{repeat},{value}\n" for seed, value in enumerate(values, 1)]
    (folder / "runs.csv").write_text("approach,seed,repeat,result.acc\n" + "".join(rows))
    return packed_from(folder, folder.with_suffix(".isorun")).path


def test_a_table_whose_repeats_count_from_1_is_whole_and_nobody_is_told_to_run_more_of_it(tmp_path):
    package = _table(tmp_path / "theirs", (0.91, 0.92, 0.9))
    result = workflow.analyse(package)
    assert [group.planned for group in result.groups] == [3]
    assert result.conditions
    assert not [one for one in result.conditions if "isorun run" in one.next_step or "run again" in one.next_step]
    with pytest.raises(InputError, match="imported: isorun did not make them"):
        replicate(package, folder=tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_two_tables_with_the_same_seeds_and_other_values_are_compared_and_one_with_itself_is_not(tmp_path):
    mine = _table(tmp_path / "mine", (0.91, 0.92, 0.9, 0.93, 0.94))
    theirs = _table(tmp_path / "theirs", (0.81, 0.82, 0.8, 0.83, 0.84))
    assert compare_with(mine, theirs).to_json()["n_a"] == 5
    with pytest.raises(InputError, match="the baseline's own"):
        compare_with(mine, mine)
