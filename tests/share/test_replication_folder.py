"""What a replication is held to once it was declared in its folder."""

import json

import pytest
from test_hostile_replications import Stopped, packed

from isorun.errors import InputError
from isorun.share.replicating import replicate
from isorun.share.replication_folder import ReplicationFolder
from isorun.testing.made_records import make_cell, make_record

RULE = {"package": "sha256:ab", "runs": 5, "where": {"level": "default"}, "selection": "final"}


def declared(folder, rule):
    (folder / "replication.json").write_text(json.dumps({**rule, "working": "."}))


def test_the_same_rule_goes_on_and_another_one_is_refused(tmp_path):
    declared(tmp_path, RULE)
    ReplicationFolder(tmp_path, RULE).refuse_other()
    for name, other in (("runs", 6), ("where", {}), ("selection", "best-loss")):
        with pytest.raises(InputError, match="declared otherwise") as refused:
            ReplicationFolder(tmp_path, {**RULE, name: other}).refuse_other()
        assert refused.value.found == f"{name} {RULE[name]}"


def test_a_rule_that_an_older_version_kept_goes_on(tmp_path):
    declared(tmp_path, {name: said for name, said in RULE.items() if name != "selection"})
    ReplicationFolder(tmp_path, RULE).refuse_other()


def test_at_which_epoch_runs_are_judged_is_part_of_the_rule(tmp_path, monkeypatch):
    path = packed(tmp_path, [make_record(make_cell(seed), points=3) for seed in (1, 2)])
    rules = []

    def refuse(self):
        rules.append(self.declared)
        raise Stopped

    monkeypatch.setattr(ReplicationFolder, "refuse_other", refuse)
    for selection in (None, "final"):
        with pytest.raises(Stopped):
            replicate(path, folder=tmp_path / "new", selection=selection)
    assert rules[1]["selection"] == "final"
    assert rules[0]["selection"], "the first one of the study, by its name"
