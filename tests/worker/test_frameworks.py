"""A framework is a file: the registry knows them all, and nothing else in isorun names one."""

from __future__ import annotations

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import isorun
from isorun.worker import frameworks, levels

ROOT = Path(isorun.__file__).parent
NAMED = re.compile(
    r"\b(torch|tensorflow|keras(?!-tuner)|jax|numpy|sklearn|xgboost|lightgbm|catboost)\b|libtorch|TORCH|\bTF_|\bXLA_FLAGS"
    r"|torchinductor|cudnn|cublas|nccl"
)
# The papers train with frameworks, formats of printed lines are known by who prints them, and made records are made.
# What repair changes inside a model is a framework a file as well, and so are the engines, some of which are one's own.
# An audit reads the sources of trainings, in which frameworks are named. Callbacks are a framework a file, too.
AUDIT = ROOT / "diagnose" / "audit"
REPAIR = (ROOT / "repair" / "engines", ROOT / "repair" / "expansion")
FRAMEWORKS = (ROOT / "worker" / "frameworks", ROOT / "frameworks")
MAY_NAME = (*FRAMEWORKS, ROOT / "zoo", ROOT / "sources", ROOT / "testing", AUDIT, *REPAIR)
# Names of variables that may be recorded are a list of names, whoever reads them.
# What a difference in a recorded fact can change is a table of the facts' names.
LISTS_OF_VARIABLES = {ROOT / "worker" / "redaction.py", ROOT / "analysis" / "environments.py"}
# isorun computes with NumPy itself, so that imports of it are no naming; the worker imports only the standard library
# (a test below). MKL, BLAS and OpenMP, whose variables and files levels and fingerprints name, are no frameworks.
MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path not in LISTS_OF_VARIABLES and not any(folder in path.parents for folder in MAY_NAME)
]


def origin(node):
    return node.module if isinstance(node, ast.ImportFrom) else node.name


def words_of(path: Path) -> list[str]:
    """All names and texts of a module's code; comments and documentation may name what they explain."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    told = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)
    }
    words = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            words.append(node.value)
        elif isinstance(node, (ast.alias, ast.ImportFrom)) and str(origin(node)).partition(".")[0] == "numpy":
            continue
        elif isinstance(node, (ast.Name, ast.Attribute, ast.alias, ast.ImportFrom, ast.keyword)):
            words += [str(value) for _, value in ast.iter_fields(node) if isinstance(value, str)]
    return words


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_names_a_framework(path):
    assert [word for word in words_of(path) if NAMED.search(word)] == []


def test_the_test_would_see_one(tmp_path):
    (tmp_path / "x.py").write_text(
        '"""torch"""\nimport torch.nn\nx = sys.modules.get("keras")\n# jax\nimport numpy as np\nx.numpy()\n'
    )
    assert [word for word in words_of(tmp_path / "x.py") if NAMED.search(word)] == ["torch.nn", "keras", "numpy"]


def test_every_framework_is_in_the_registry_with_what_it_watches():
    every = frameworks.every()
    beside = {"__init__", "base", "switches", "torch_draws"}  # what all share, and what one of them loads on demand
    files = {path.stem for path in (ROOT / "worker" / "frameworks").glob("*.py")} - beside
    assert {type(framework).__module__.rpartition(".")[2] for framework in every} == files
    said = [framework for file in files for framework in import_module(f"isorun.worker.frameworks.{file}").FRAMEWORKS]
    assert sorted(framework.name for framework in said) == sorted(framework.name for framework in every)
    assert len({framework.name for framework in every}) == len(every)
    for name, owner in frameworks.WATCHED.items():
        assert frameworks.of_module(name).name == owner
        assert name.partition(".")[0] in {*frameworks.PACKAGES, "random"}
    assert {framework.name for framework in every} == {*frameworks.PACKAGES.values(), "random"}
    assert all(package == owner for package, owner in frameworks.PACKAGES.items() if package in frameworks.WATCHED)


def test_what_may_be_preloaded_belongs_to_a_framework():
    assert frameworks.safe_to_preload() <= set(frameworks.PACKAGES)
    assert not frameworks.safe_to_preload() & {"tensorflow", "jax", "keras"}
    assert frameworks.preload_with("torch")[2:4] == ("torch", "torch.optim")
    assert frameworks.preload_with("no-such-package") == ()


def test_global_seed_calls_are_those_of_all_frameworks():
    assert frameworks.global_seed_calls() == {
        "random.seed",
        "numpy.random.seed",
        "torch.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "tensorflow.random.set_seed",
        "polars.set_random_seed",
    }


def test_variables_of_all_frameworks_are_set_at_deterministic_only():
    added = levels.level_environment("deterministic", 1, 2, {}, cpu_flags=frozenset({"avx2"}))
    expected = {"CUBLAS_WORKSPACE_CONFIG", "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "XLA_FLAGS"}
    assert expected < set(added)
    assert not expected & set(levels.level_environment("fixed-seed", 1, 2, {}))


def test_asking_for_frameworks_imports_none(train):
    code = "import sys; import isorun_worker.frameworks as f; f.every(); "
    code += "print(sorted({'numpy', 'torch', 'sklearn', 'tensorflow'} & set(sys.modules)))"
    assert train("-c", code).stdout == "[]\n"


ESTIMATORS = """
import numpy as np, isorun
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

x, y = np.arange(120.0).reshape(60, 2) % 7, np.arange(60) % 3 % 2
for name, model in (("forest", RandomForestClassifier(5)), ("line", LogisticRegression())):
    isorun.digest(name, model.fit(x, y))
isorun.digest("other", RandomForestClassifier(5, random_state=9).fit(x, y))
for name, answers in (("scaled", y), ("turned", 1 - y)):
    isorun.digest(name, make_pipeline(StandardScaler(), LogisticRegression()).fit(x, answers))
"""


@pytest.mark.long
def test_estimators_are_digested_by_what_fitting_left(train, tmp_path):
    (tmp_path / "train.py").write_text(ESTIMATORS)
    first, again = (train("train.py", level="fixed-seed", seed=3) for _ in range(2))
    assert first.of_kind("note") == [], first.stderr
    names = ("forest", "line", "other", "scaled", "turned")
    assert [first.digest(name) for name in names] == [again.digest(name) for name in names]
    assert len({first.digest(name) for name in names}) == 5


def test_the_registry_needs_nothing_beyond_the_standard_library():
    for path in (ROOT / "worker").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            absolute = isinstance(node, ast.ImportFrom) and node.level == 0
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in [node.module] if absolute else names:
                assert name.partition(".")[0] in sys.stdlib_module_names, f"{path} imports {name}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import torch; torch.nn.Linear(2, 2)(torch.ones(2))", ["torch: no optimizer made a step in this process"]),
        (
            "import sklearn.base",
            ["sklearn: no estimator of its own was fitted in this process; isorun.digest does any"],
        ),
        ("import torch, isorun; isorun.digest('mine', torch.ones(2))", []),
        ("import numpy", []),
    ],
)
def test_a_run_without_a_digest_says_why(train, code, told):
    trained = train("-c", code)
    assert trained.returncode == 0, trained.stderr
    notes = [note["message"] for note in trained.of_kind("note") if note["code"] == "no-digest"]
    assert [note.partition(",")[0].partition(" or ")[0] for note in notes] == told


IN_A_CHILD = """
import multiprocessing, torch
def work():
    model = torch.nn.Linear(2, 1)
    model(torch.ones(2)).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""


@pytest.mark.long
def test_a_run_whose_forked_child_trains_says_what_was_not_looked_at(train):
    trained = train("-c", IN_A_CHILD)
    assert trained.returncode == 0, trained.stderr
    notes = [note["message"] for note in trained.of_kind("note") if note["code"] == "no-digest"]
    assert len(notes) == 1
    assert notes[0].startswith("torch: no optimizer made a step in this process, ")
    assert notes[0].endswith("; it forked others, and what these trained is not digested")


BY_HAND = """
import torch
model, unused = torch.nn.Linear(2, 1), torch.nn.Linear(3, 3)
slope = torch.zeros(2, requires_grad=True)
for step in range(3):
    (model(torch.ones(2)) + slope.sum()).square().sum().backward()
    with torch.no_grad():
        for weight in (*model.parameters(), slope):
            weight -= RATE * weight.grad
    slope.grad = None
"""


@pytest.mark.long
def test_weights_that_a_script_moves_by_hand_are_digested_by_what_it_holds_at_its_end(train, tmp_path):
    (tmp_path / "slow.py").write_text(BY_HAND.replace("RATE", "0.01"))
    (tmp_path / "fast.py").write_text(BY_HAND.replace("RATE", "0.02"))
    first, again, fast = (train(script, level="fixed-seed", seed=3) for script in ("slow.py", "slow.py", "fast.py"))
    assert first.digest("weights.final") == again.digest("weights.final") != fast.digest("weights.final")
    assert not [note for note in first.of_kind("note") if note["code"] == "no-digest"]
