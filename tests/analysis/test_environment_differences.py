"""What differs between two environments: every fact has its kind and a reason, and no secret is shown."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.environments import (
    COSMETIC,
    NUMERICS,
    RULES,
    SPEED,
    difference_of,
    facts_of,
    library_name,
    rule_for,
)
from isorun.analysis.evidence.provenance import made, requested
from isorun.report.environments import diff_view
from isorun.study.cells import Level
from isorun.worker.redaction import RECORDED_VARIABLES
from record_builder import make_cell, make_record

EFFECTIVE = {
    "python": {"version": "3.11.7", "executable": "/usr/bin/python", "optimize": 0, "hash_randomization": True},
    "platform": {"os": "Debian 12", "kernel": "Linux 6.1", "machine": "x86_64", "libc": "glibc 2.36"},
    "cpu": {"logical": 8, "affinity": 2, "model": "EPYC", "vector": ["avx", "avx2"]},
    "frameworks": ["torch", "numpy"],
    "torch": {"version": "2.13.0", "threads": 2, "cpu_capability": "AVX2", "cudnn_benchmark": False},
    "switches": {"torch": {"cpu": "avx2", "onednn": "on", "threads": "2", "device": "cuda", "tf32": "off"}},
    "gpu": {"devices": ["H200"], "cuda": "12.9", "cudnn": 91000, "driver": "NVRM version: 570.1", "tf32_matmul": False},
    "libraries": [{"name": "libscipy_openblas64_-32a4b2a6.so", "size": 1, "sha256": "aa" * 32}],
    "packages": {"numpy": "2.4.6", "torch": "2.13.0", "tqdm": "4.0", "pillow": "11.0"},
    "variables": {"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "1", "ISORUN_SEED": "1"},
    "sources_sha256": "11" * 32,
}
REQUESTED = {"level": "default", "threads": 2, "cpus": 2, "switches": {"onednn": "on"}}
MADE = {"python": "/usr/bin/python"}


def run(path=None, value=None, **changes):
    """A run, of which the fact at the dotted path has another value."""
    content = json.loads(json.dumps({"effective": EFFECTIVE, "requested": REQUESTED, "made": MADE}))
    if path is not None:
        *folders, name = path.split(".")
        part = content
        for folder in folders:
            part = part.setdefault(folder, {})
        part[name] = value
    return make_record(environment=content, where={"host": "a", "folder": "/runs/1"}, **changes)


def test_a_variable_of_the_study_is_one_difference():
    cells = [replace(make_cell(), environment_content={"env": {"PYTHONHASHSEED": value}}) for value in ("1", "2")]
    first, second = (
        replace(run("effective.variables.PYTHONHASHSEED", value), cell=cell)
        for value, cell in zip(("1", "2"), cells, strict=True)
    )
    assert [item.what for item in difference_of(first, second).differences] == ["study variable PYTHONHASHSEED"]


def differing(path, value, **changes):
    return difference_of(run(), run(path, value, **changes)).differences


@pytest.mark.parametrize(
    ("path", "value", "what", "kind"),
    [
        ("effective.switches.torch.device", "cpu", "switches.torch.device", NUMERICS),
        ("effective.gpu.devices", ["A100"], "gpu.devices", NUMERICS),
        ("effective.torch.version", "2.12.0", "torch.version", NUMERICS),
        ("effective.packages.numpy", "1.26.4", "packages.numpy", NUMERICS),
        ("effective.packages.pillow", "10.0", "packages.pillow", NUMERICS),
        ("effective.work.seconds", 1.25, "work.seconds", COSMETIC),
        ("effective.work.first_step.cpu_seconds", 1.25, "work.first_step.cpu_seconds", COSMETIC),
        ("effective.work.steps", 5, "work.steps", NUMERICS),
        ("effective.packages.tqdm", "3.0", "packages.tqdm", COSMETIC),
        ("effective.switches.torch.cpu", "avx512", "switches.torch.cpu", NUMERICS),
        ("effective.switches.torch.onednn", "off", "switches.torch.onednn", NUMERICS),
        ("requested.switches.onednn", "off", "requested.switches.onednn", NUMERICS),
        ("effective.switches.torch.tf32", "on", "switches.torch.tf32", NUMERICS),
        ("effective.gpu.cudnn", 90000, "gpu.cudnn", NUMERICS),
        ("effective.gpu.driver", "NVRM version: 550.2", "gpu.driver", NUMERICS),
        ("effective.torch.threads", 1, "torch.threads", NUMERICS),
        ("requested.threads", 1, "requested.threads", NUMERICS),
        ("made.python", "/opt/python", "made.python", COSMETIC),
        ("made.image_id", "sha256:ab", "made.image_id", NUMERICS),
        ("effective.torch.cudnn_benchmark", True, "torch.cudnn_benchmark", NUMERICS),
        ("effective.cpu.model", "Xeon", "cpu.model", NUMERICS),
        ("effective.variables.OMP_NUM_THREADS", "1", "variables.OMP_NUM_THREADS", NUMERICS),
        ("effective.variables.KMP_BLOCKTIME", "0", "variables.KMP_BLOCKTIME", SPEED),
        ("effective.python.version", "3.12.1", "python.version", NUMERICS),
        ("effective.platform.libc", "glibc 2.41", "platform.libc", NUMERICS),
        ("effective.platform.kernel", "Linux 5", "platform.kernel", SPEED),
        ("effective.platform.os", "Ubuntu", "platform.os", COSMETIC),
        ("effective.python.executable", "/opt/python", "python.executable", COSMETIC),
        ("effective.cpu.logical", 16, "cpu.logical", SPEED),
        ("effective.something_new", 1, "something_new", NUMERICS),
    ],
)
def test_every_kind_of_fact_is_sorted_by_what_it_can_change(path, value, what, kind):
    (found,) = differing(path, value)
    assert (found.what, found.kind) == (what, kind)
    assert found.reason
    assert found.first != found.second


def test_a_math_library_is_told_by_its_hash_whatever_its_file_is_called():
    other = [{"name": "libscipy_openblas64_-99999999.so", "size": 1, "sha256": "bb" * 32}]
    (found,) = differing("effective.libraries", other)
    assert found.to_json() == {
        "what": "math library libscipy_openblas64_.so",
        "first": "aa" * 6,
        "second": "bb" * 6,
        "kind": NUMERICS,
        "reason": found.reason,
    }
    assert library_name("libgomp-a34b3233.so.1.0.0") == "libgomp.so.1.0.0"


def test_the_most_suspicious_stands_first():
    other = run("effective.packages.tqdm", "3.0", cell=make_cell(Level.FIXED_SEED), launch="fresh", started_at="later")
    inside = other.environment["effective"]
    inside["torch"]["threads"], inside["switches"]["torch"]["device"] = 1, "cpu"
    found = difference_of(run(), other).differences
    assert [item.what for item in found] == [
        "level",
        "switches.torch.device",
        "torch.threads",
        "launch",
        "packages.tqdm",
        "started",
    ]


def test_the_same_environment_differs_in_nothing():
    found = difference_of(run(), run())
    assert found.differences == ()
    assert not found.is_numeric
    assert found.same > 30


def test_seeds_are_no_environment_but_are_said():
    found = difference_of(run(), run(seed_used=2))
    assert (found.differences, found.seeds) == ((), (1, 2))
    assert "different seeds (1 and 2)" in diff_view(found).text()


def test_code_and_files_are_compared():
    other = run("requested.given_files", [{"path": "data.csv", "sha256": "bb" * 32}], code={"commit": "b" * 40})
    mine = run("requested.given_files", [{"path": "data.csv", "sha256": "aa" * 32}], code={"commit": "a" * 40})
    found = {item.what: item.kind for item in difference_of(mine, other).differences}
    assert found == {"code.commit": NUMERICS, "file data.csv": NUMERICS}


def test_a_run_of_which_nothing_is_known_is_one_difference():
    found = difference_of(
        run(), make_record(environment={"requested": dict(REQUESTED), "effective": {}}, where={"host": "a"})
    )
    numeric = [item.what for item in found.of_kind(NUMERICS)]
    assert numeric == ["effective"]
    assert difference_of(make_record(environment={}), make_record(environment={})).differences == ()


SECRET = "hunter2-" + "x7Kq9" * 4


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "DB_PASSWORD", "OPENAI_API_KEY"]
)
def test_no_secret_is_shown(name):
    mine, other = (run(cell=make_cell(environment_content={"env": {name: value}})) for value in (SECRET, SECRET[::-1]))
    found = difference_of(mine, other)
    assert [item.what for item in found.differences] == [f"study variable {name}"]
    assert SECRET not in json.dumps(found.to_json())
    assert SECRET[::-1] not in json.dumps(found.to_json())
    told = run(f"effective.variables.{name}", SECRET)
    assert SECRET not in json.dumps(difference_of(run(), told).to_json())


def test_withheld_values_are_told_apart_and_not_shown():
    mine, other = (run(cell=replace(make_cell(), withheld=value)) for value in ("aaaa", "bbbb"))
    (found,) = difference_of(mine, other).differences
    assert (found.what, found.first, found.second) == ("withheld values", "<redacted>", "<redacted>")


def test_every_variable_that_is_recorded_has_a_kind():
    assert {rule_for(f"variables.{name}")[1].kind for name in RECORDED_VARIABLES} == {NUMERICS, SPEED}


def test_every_rule_has_a_kind_and_a_reason():
    assert {rule.kind for rule in RULES} == {NUMERICS, SPEED, COSMETIC}
    assert all(rule.reason for rule in RULES)


ASKED = st.deferred(lambda: st.dictionaries(st.text(max_size=5), JSON))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["torch", "gpu", "libraries", "switches", "x"]), JSON),
    st.dictionaries(st.text(max_size=5), JSON),
)
def test_whatever_a_training_left_can_be_compared(inside, requested):
    odd = make_record(environment={"effective": inside, "requested": requested})
    assert all(isinstance(value, str) for value in facts_of(odd).values())
    forth, back = difference_of(run(), odd), difference_of(odd, run())
    assert [item.what for item in forth.differences] == [item.what for item in back.differences]
    assert difference_of(odd, odd).differences == ()


def test_a_record_that_had_what_was_made_among_the_requests_is_read_as_one_of_today():
    code = {"ref": "main", "commit": "a" * 40, "links": ["data"]}
    requests = {"threads": 2, "python": "/usr/bin/python", "packages": {"numpy": "1.26.4"}, "packages_made_by": "pip"}
    earlier = make_record(environment={"requested": {**requests, "code": code}, "effective": EFFECTIVE})
    parts = {
        "requested": {"threads": 2, "code": {"ref": "main", "links": ["data"]}},
        "made": {**{name: requests[name] for name in requests if name != "threads"}, "code": {"commit": "a" * 40}},
    }
    today = make_record(environment={**parts, "effective": EFFECTIVE})
    assert (requested(earlier), made(earlier)) == (requested(today), made(today)) == (parts["requested"], parts["made"])
    assert facts_of(earlier) == facts_of(today)
    assert facts_of(today)["made.packages.numpy"] == "1.26.4"
    assert difference_of(earlier, today).differences == ()
