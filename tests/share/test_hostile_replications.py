"""What somebody sees before a package of an enemy runs: all that would run, set and be installed."""

from dataclasses import replace

import pytest

from isorun.errors import PackageError
from isorun.share.at_hand import pinned
from isorun.share.code import Code
from isorun.share.packing import Content, write_package
from isorun.share.replicating import replicate
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


def packed(folder, records, **environment):
    study = Study(
        name="forged",
        approaches={"lenet": Approach("lenet", ("sh", "-c", "true"))},
        metrics={"accuracy": "higher"},
        environments={"default": Environment("default", **environment)},
    )
    write_package(Content(study, sorted(records, key=lambda one: one.cell.id), Code()), folder / "evil.isorun")
    return folder / "evil.isorun"


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
