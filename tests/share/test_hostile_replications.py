"""What somebody sees before a package of an enemy runs: all that would run, set and be installed."""

import shlex
from dataclasses import replace

import pytest
from forged_signatures import with_signature_of

from isorun.errors import InputError, PackageError
from isorun.session import open_store
from isorun.share import keys
from isorun.share.at_hand import pinned
from isorun.share.code import Code
from isorun.share.packing import Content, write_package
from isorun.share.replaying import replay
from isorun.share.replicating import replicate
from isorun.study.cells import fill_placeholders
from isorun.study.design import Approach, Environment, Study
from isorun.testing.made_records import make_cell, make_record


class Stopped(Exception):
    """Whoever looked at the plan says no."""


def seen(path, **options):
    """The lines of the plan; nothing is run."""
    plans = []

    def confirm(plan):
        plans.append(plan)
        raise Stopped

    with pytest.raises(Stopped):
        replicate(path, folder=path.with_name("new"), confirm=confirm, **options)
    assert not path.with_name("new").exists()
    return [f"{name}: {text}" for name, text in plans[0].lines()]


def packed(folder, records, *, name="evil", signing=None, approaches=("lenet",), **environment):
    study = Study(
        name="forged",
        approaches={one: Approach(one, ("sh", "-c", "true")) for one in approaches},
        metrics={"accuracy": "higher"},
        environments={"default": Environment("default", **environment)},
    )
    path = folder / f"{name}.isorun"
    write_package(Content(study, sorted(records, key=lambda one: one.cell.id), Code()), path, signing)
    return path


def test_contents_that_differ_under_one_name_are_all_shown(tmp_path):
    records = []
    for seed, word in enumerate(("nice", "evil", "worse"), start=1):
        cell = replace(
            make_cell(seed),
            command=("sh", "-c", "{config.script}"),
            config_values={"script": f"echo {word}"},
            environment_content={"python": f"./{word}", "env": {"PYTHONPATH": word}},
        )
        records.append(make_record(cell))
    lines = seen(packed(tmp_path, records, preload=("hidden",)), anyway=True)
    for word in ("nice", "evil", "worse"):
        assert f"command: sh -c 'echo {word}'" in lines
        assert f"variable: PYTHONPATH={word}" in lines
        assert f"environment: default: python ./{word}; imports hidden" in lines


def test_a_command_and_settings_that_no_run_had_together_are_shown_where_they_would_be_run_together(tmp_path):
    named = {"config": "one", "environment_content": {}}
    harmless = replace(make_cell(1), approach="a", command=("sh", "-c", "{config.script}"), **named)
    harmless = replace(harmless, config_values={"script": "echo accuracy=0.5"})
    words = replace(make_cell(1), approach="b", command=("echo", "{config.script}"), **named)
    words = replace(words, config_values={"script": "touch made; echo accuracy=0.5"})
    path = packed(tmp_path, [make_record(harmless), make_record(words)], approaches=("a", "b"))
    shown = {line.removeprefix("command: ") for line in seen(path, anyway=True) if line.startswith("command: ")}
    replicate(path, folder=tmp_path / "new", runs=1, anyway=True)
    with open_store(str(tmp_path / "new" / ".isorun")) as store:
        run = {
            shlex.join(fill_placeholders(one.command, {}, one.config_values, ""))
            for one in (record.cell for record in store.records())
        }
    assert len(run) == 2
    assert run <= shown


def test_a_line_that_ends_is_shown_as_such_where_a_shell_would_read_another_command_behind_it(tmp_path):
    script = "echo accuracy=0.5 # of\nrm -r x\u202e \\ '"
    cell = replace(make_cell(1), command=("sh", "-c", script), environment_content={"env": {"LD_PRELOAD": "a\nb"}})
    lines = seen(packed(tmp_path, [make_record(cell)]), anyway=True)
    assert r"command: sh -c $'echo accuracy=0.5 # of\nrm -r x\u202e \\ \''" in lines
    assert r"variable: LD_PRELOAD=$'a\nb'" in lines


def test_the_version_of_the_code_that_would_be_checked_out_is_shown(tmp_path):
    code = {"commit": "ab" * 20, "links": ["data"]}
    cell = replace(make_cell(1), environment_content={"code": code})
    lines = seen(packed(tmp_path, [make_record(cell)]), anyway=True)
    assert f"environment: default: code {'ab' * 20} with data" in lines


def test_what_would_be_installed_is_shown_before_it_is(tmp_path):
    surroundings = {"effective": {"python": {"version": "3.11.2"}, "packages": {"Iso_Squatted": "1.0+cpu"}}}
    lines = seen(packed(tmp_path, [make_record(make_cell(1), environment=surroundings)]))
    assert "installs: iso-squatted==1.0" in lines


@pytest.mark.parametrize(
    ("name", "version", "python"),
    [
        ("evil @ http://2130706433/x", "1", "3.11.2"),
        ("http://[::1]/x", "1", "3.11.2"),
        ("--index-url", "1", "3.11.2"),
        ("numpy", "1.0 --index-url http://evil", "3.11.2"),
        ("numpy", "1.0 ; python_version > '3'", "3.11.2"),
        ("numpy", "*", "3.11.2"),
        ("numpy", "1.0", "./evil"),
        ("numpy", "1.0", "/tmp/evil"),
    ],
)
def test_an_installer_is_told_names_and_versions_alone(name, version, python):
    inside = {"python": {"version": python}, "packages": {name: version}}
    with pytest.raises(PackageError):
        pinned(make_record(make_cell(1), environment={"effective": inside}))


def test_what_a_replay_runs_sets_and_imports_is_shown_before_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = replace(
        make_cell(1), command=("sh", "-c", "true"), environment_content={"python": "./evil", "env": {"PYTHONPATH": "x"}}
    )
    record = make_record(cell)
    shown = []

    def confirm(lines):
        shown.extend(f"{name}: {text}" for name, text in lines)
        raise Stopped

    path = packed(tmp_path, [record], preload=("hidden",))
    with pytest.raises(Stopped):
        replay(record.run_id, store=str(path), confirm=confirm)
    assert shown[0].endswith(f"signature: unsigned), run {record.run_id}")
    assert shown[1:] == [
        "command: sh -c true",
        "variable: PYTHONPATH=x",
        "environment: default: python ./evil; imports hidden",
    ]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["evil.isorun"], "nothing was put anywhere"


@pytest.mark.parametrize("anyway", [False, True])
def test_a_package_whose_signature_does_not_fit_is_neither_replayed_nor_replicated(tmp_path, monkeypatch, anyway):
    pytest.importorskip("cryptography")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    signing = keys.signer(keys.new_key()[0])
    records = [make_record(make_cell(seed)) for seed in (1, 2)]
    packed(tmp_path, records, name="whole", signing=signing)
    packed(tmp_path, records[:1], name="other", signing=signing)
    path = tmp_path / "forged.isorun"
    path.write_bytes(with_signature_of(tmp_path / "whole.isorun", tmp_path / "other.isorun"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="the signature of the package does not fit"):
        replay(records[0].run_id, store=str(path), anyway=anyway)
    with pytest.raises(InputError, match="the signature of the package does not fit"):
        replicate(path, anyway=anyway)
    assert sorted(tmp_path.iterdir()) == before, "nothing was made"


def test_a_run_of_a_package_in_a_registry_is_replayed_from_the_file_that_is_fetched(tmp_path, monkeypatch):
    record = make_record(make_cell(1))
    path, asked = packed(tmp_path, [record]), []
    monkeypatch.setattr("isorun.registries.fetched", lambda text: asked.append(text) or path)

    def confirm(lines):
        raise Stopped(lines[0][1])

    with pytest.raises(Stopped, match=r"evil\.isorun"):
        replay(record.run_id, store="registry:lab/a/b@1", confirm=confirm)
    assert asked == ["registry:lab/a/b@1"]
