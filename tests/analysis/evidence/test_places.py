"""Where runs were made: what is told of it, when a comparison is void by it, and that this is right."""

import math
from dataclasses import replace

import numpy as np
import pytest

from isorun.analysis.evidence import voided
from isorun.analysis.evidence.places import between_places, places, several_places
from isorun.analysis.studies.study_result import analyse_study, study_sides
from isorun.study.cells import cells_of
from isorun.study.design import Approach, Metric
from record_builder import ENVIRONMENT, make_record, make_study

OTHER = {"effective": ENVIRONMENT["effective"] | {"cpu": {"affinity": 2, "model": "Xeon"}}}
STUDY = make_study(
    approaches={name: Approach(name, ("python", f"{name}.py")) for name in "AB"},
    metrics={"acc": Metric("acc", "higher")},
    levels=("default",),
    repeats=6,
)


def run(host="n1", *, executor="", device="", **changes):
    where = {"host": host, **({"executor": executor} if executor else {})}
    return make_record(where=where, devices=(device,) if device else (), **changes)


def made(place_of):
    """A finished record of each cell; place_of: what a run of an approach and a repeat is changed by."""
    cells = enumerate(cells_of(STUDY))
    records = [make_record(cell, results={"acc": 0.5 + number / 100}) for number, cell in cells]
    return [replace(record, **place_of(record.cell.approach, record.cell.repeat)) for record in records]


def sides(place_of):
    found = study_sides(analyse_study(STUDY, made(place_of)), "approach").conditions()
    return {condition.code: condition for condition in found}


def test_one_place_is_not_told():
    for several in ([run(), run()], [run(), run(executor="worker")], [run(device="0"), run(device="1")], [], [run("")]):
        assert list(several_places({"g": places(several)})) == []


def test_several_hosts_or_executors_of_a_group_are_one_sentence_for_all_groups():
    groups = {
        "a": places([run("n1"), run("n2"), run("n1", executor="ray")]),
        "b": places([run("n3"), run("n2")]),
        "c": places([run("n9"), run("n9")]),
    }
    [told] = several_places(groups)
    assert told.code == "made-in-several-places"
    assert told.message == (
        "runs of one group were made on 3 hosts (n1, n2, n3) and by 2 executors (local, ray): what these differ in is "
        "part of the spread"
    )
    assert (told.groups, told.voids) == (("a", "b"), False)
    [told] = several_places({"a": places([run(executor="slurm"), run(executor="worker")])})
    assert "made by 2 executors (local, slurm): " in told.message


def test_a_host_that_belongs_to_a_side_is_named():
    found = sides(lambda approach, _: {"where": {"host": {"A": "n1", "B": "n2"}[approach]}})
    told = found["sides-differ-in-host"]
    assert told.message == (
        "all runs of one side were made on n1, and all of the other on n2: what the hosts do to the result cannot be "
        "told from what is compared"
    )
    assert "isorun worker NEW" in told.next_step
    assert not told.voids
    assert "made-in-several-places" not in found


def test_a_side_with_a_machine_of_another_kind_is_no_evidence():
    def place(approach, _):
        environment = {"A": ENVIRONMENT, "B": OTHER}[approach]
        return {"where": {"host": {"A": "n1", "B": "n2"}[approach]}, "environment": environment}

    found = sides(place)
    assert voided(found.values()).code == "sides-differ-in-host"
    assert "these differ in processor, device or library versions" in found["sides-differ-in-host"].message


@pytest.mark.parametrize(
    "host_of",
    [
        lambda _approach, repeat: f"n{repeat % 2}",  # both sides on both
        lambda approach, repeat: f"{approach}{repeat}",  # a host for each run
        lambda approach, repeat: f"{approach}{repeat % 4}",  # four hosts for each six runs
        lambda _approach, _repeat: "n1",
        lambda _approach, _repeat: "",
    ],
)
def test_hosts_that_belong_to_no_side_are_no_matter_of_sides(host_of):
    assert "sides-differ-in-host" not in sides(lambda *run_of: {"where": {"host": host_of(*run_of)}})


def test_a_side_of_few_hosts_against_one_of_several_is_named():
    told = list(between_places(places([run("n1")] * 3), places([run("n2"), run("n3")]), known_to_differ=False))
    assert "made on n1, and all of the other on n2, n3" in told[0].message
    assert list(between_places(places([run("n1")]), places([run("n2")] * 2), known_to_differ=False)) == []


def test_a_device_that_belongs_to_a_side_is_named():
    a, b = (places([run(device=device)] * 3) for device in ("cuda:0", "cuda:1"))
    [told] = between_places(a, b, known_to_differ=False)
    assert (told.code, told.voids) == ("sides-differ-in-device", False)
    assert "on the device cuda:0, and all of the other on cuda:1" in told.message
    both = places([run(device="cuda:0"), run(device="cuda:1")])
    assert list(between_places(a, both, known_to_differ=False)) == []


def test_the_error_rate_is_lost_with_few_hosts_a_side_and_kept_with_a_host_a_run():
    """Two equal approaches, hosts that move the result by as much as a seed does: how often one is called better.

    From two runs a host on the sides are told to be those of their hosts.
    """
    generator = np.random.default_rng(1)
    runs, times, critical = 10, 2000, 2.101  # of Student's t with 18 degrees of freedom, 5 % on both sides

    def rejected(hosts_a_side):
        host = np.repeat(generator.normal(size=(times, 2, hosts_a_side)), runs // hosts_a_side, axis=2)
        values = host + generator.normal(size=(times, 2, runs))
        difference = values[:, 0].mean(axis=1) - values[:, 1].mean(axis=1)
        error = np.sqrt(values.var(axis=2, ddof=1).sum(axis=1) / runs)
        return float(np.mean(np.abs(difference / error) > critical))

    tolerance = 3 * math.sqrt(0.05 * 0.95 / times)
    assert rejected(runs) == pytest.approx(0.05, abs=tolerance)
    assert rejected(1) > 0.4 > rejected(2) > 0.2
    assert rejected(5) > 0.05 + 2 * tolerance
