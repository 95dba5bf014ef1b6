"""What the source of a training tells, in small: each kind where it is open, and where it only looks so."""

import ast
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isorun
from isorun.diagnose.audit import KINDS, examine_source, kernels, read_program
from isorun.diagnose.audit.findings import Sure
from isorun.diagnose.audit.patching import patch_for
from isorun.errors import InputError, UsageError

CORPUS = Path(__file__).parent / "audit_corpus"
OF_EVERY_SCRIPT = {"thread-count", "unpinned-packages"}


def examined(folder, code, *words, environ=(), **modules):
    (folder / "train.py").write_text(code)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return examine_source(read_program(["python", "train.py", *words], folder, dict(environ)))


def kinds(found):
    return sorted((item.kind, item.line) for item in found if item.kind not in OF_EVERY_SCRIPT)


OPEN = [
    ("from six.moves import urllib\nurllib.request.urlopen(u).read()", [("data-checksum", 2)]),
    ("index = {kind: place for place, kind in enumerate(set(found()))}", [("hash-order", 1)]),
    ("import datasets\nd = datasets.Dataset.from_dict(x).shuffle()", [("unseeded-generator", 2)]),
    ("from stable_baselines3 import PPO\nPPO('MlpPolicy', e).learn(9)", [("unseeded-generator", 2)]),
    ("from scipy import stats\nx = stats.norm.rvs(size=3)", [("unseeded-generator", 2)]),
    ("import jax\nx = y.at[i].add(z)", [("atomics", 2), ("nondeterministic-kernels", 1)]),
    (
        "import tensorflow as tf\nd = tf.data.Dataset.range(9).shuffle(9)",
        [("nondeterministic-kernels", 1), ("unseeded-generator", 2)],
    ),
    ("import torch, accelerate\na = accelerate.Accelerator()", [("nondeterministic-kernels", 2)]),
    ("import random as r\nr.seed()\nr.random()", [("unseeded-generator", 2)]),
    ("from numpy.random import default_rng as made\nmade(None)", [("unseeded-generator", 2)]),
    ("import random\nx = random.Random()", [("unseeded-generator", 2)]),
    ("import numpy as np\nnp.random.RandomState(seed=None)", [("unseeded-generator", 2)]),
    ("import torch\ntorch.seed()\ntorch.rand(2)", [("unseeded-generator", 2), ("unseeded-generator", 3)]),
    ("import torch, os\ntorch.manual_seed(os.getpid())\ntorch.rand(1)", [("fresh-seed", 2)]),
    (
        "import jax, time\nkey = jax.random.PRNGKey(int(time.time()))",
        [("fresh-seed", 2), ("nondeterministic-kernels", 1)],
    ),
    ("import numpy as np\nx = np.random.rand(3)\nnp.random.seed(1)", [("late-seed", 3)]),
    ("words = 'a b'.split()\nfor w in set(words):\n    print(w, end=index(w))\n    use(w)", [("hash-order", 2)]),
    ("v = {'a', 'b'}\nids = list(v)", [("hash-order", 2)]),
    ("names = frozenset(n.lower() for n in f())\nx = [*names]", [("hash-order", 2)]),
    ("bucket = hash('text') % 10", [("hash-order", 1)]),
    ("import os\nfor root, _, files in os.walk('d'):\n    load(files)", [("file-order", 2)]),
    ("from pathlib import Path\nfiles = [str(p) for p in Path('d').iterdir()]\nload(files)", [("file-order", 2)]),
    ("import torch\nx = torch.empty(3) + 1", [("uninitialised-memory", 2)]),
    ("import numpy as np\nx = np.empty(3)\ny = x * 2", [("uninitialised-memory", 2)]),
    ("import torch\ntorch.backends.cudnn.benchmark = True", [("cudnn-autotune", 2)]),
    ("from torch.backends import cudnn\ncudnn.benchmark = True", [("cudnn-autotune", 2)]),
    ("import torch\ntorch.set_float32_matmul_precision('medium')", [("tf32", 2)]),
    ("from urllib.request import urlretrieve\nurlretrieve('http://x/y', 'y')", [("data-checksum", 2)]),
    (
        "import tensorflow as tf\nd.map(f, deterministic=False)",
        [("loader-workers", 2), ("nondeterministic-kernels", 1)],
    ),
]


@pytest.mark.parametrize(("code", "known"), OPEN)
def test_what_is_open_is_found_at_its_line(code, known, tmp_path):
    assert kinds(examined(tmp_path, code)) == sorted(known)


CLOSED = [
    "kinds = set(found())\nkind = list(kinds)[0] if len(kinds) == 1 else next(iter(kinds))",
    "import random, datasets\nown = random.Random(1)\nown.shuffle(x)\ndatasets.Dataset.from_dict(x).shuffle(seed=1)",
    "import random\nrandom.seed(3)\nrandom.random()",
    "class random:\n    pass\nrandom.random()",
    "import numpy as np\nrng = np.random.default_rng(5)\nrng.shuffle([1, 2])",
    "import random, time\nbegan = time.time()\nrandom.seed(1)\nrandom.random()\nprint(time.time() - began)",
    "import torch\ndef held(seed=1):\n    torch.manual_seed(seed)\nheld()\ntorch.rand(2)",
    "import torch\ntorch.manual_seed(1)\ng = torch.Generator()\ntorch.randperm(3, generator=g)",
    "import torch\ndef unused():\n    torch.rand(2)",
    "words = set('a b'.split())\nfor w in sorted(words):\n    use(w)\nprint(len(words), 'a' in words)",
    "ids = {1, 2, 3}\nfor i in ids:\n    use(i)",
    "known = set(names())\nfor n in known:\n    if n not in allowed:\n        raise ValueError(n)",
    "class Key:\n    def __hash__(self):\n        return hash(self.name)",
    "import os\nnames = os.listdir('d')\nnames.sort()\nuse(names)",
    "import os\nif 'x' in os.listdir('d') and len(os.listdir('e')):\n    pass",
    "import glob\nfor f in sorted(glob.glob('*.npy')):\n    use(f)",
    "import os\nfor root, folders, files in os.walk('d'):\n    folders.sort()\n    use(sorted(files))",
    "import torch\nx = torch.empty(3)\nx.fill_(0)\ny = x + 1",
    "import numpy as np\nx = np.empty(3)\nx[:] = 1\ny = x + 1",
    "import torch\ntorch.backends.cudnn.benchmark = False\ntorch.set_float32_matmul_precision('highest')",
    "import hashlib\nimport numpy as np\nx = np.load('a.npy')\nhashlib.sha256(x)",
    "import json\nconfig = json.load(open('config.json'))",
]


@pytest.mark.parametrize("code", CLOSED)
def test_what_only_looks_open_is_not_told(code, tmp_path):
    assert kinds(examined(tmp_path, code)) == []


OPTION = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=None)
args = parser.parse_args()
if args.seed is not None:
    torch.manual_seed(args.seed)
torch.rand(2)
"""


LOADED = """import numpy as np
from torch import nn

class Net(nn.Module):
    @classmethod
    def from_file(cls, path):
        from library import Reader
        Reader.from_file(path)
        return np.load(path)

{use}
"""


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("Net()", []),
        ("Net.from_file('a.npy')", [("data-checksum", 9)]),
        ("load = Net().from_file", [("data-checksum", 9)]),
    ],
)
def test_a_method_of_a_class_that_nobody_names_is_not_looked_at(use, told, tmp_path):
    assert [one for one in kinds(examined(tmp_path, LOADED.format(use=use))) if one[0] == "data-checksum"] == told


def test_an_option_counts_as_the_command_gives_it(tmp_path):
    (found,) = [item for item in examined(tmp_path, OPTION) if item.kind == "unseeded-generator"]
    assert (found.line, found.sure) == (8, Sure.HIGH)
    assert "--seed" in found.fix
    assert kinds(examined(tmp_path, OPTION, "--seed", "3")) == []
    assert kinds(examined(tmp_path, OPTION, "--seed=0")) == []


def test_modules_of_its_own_are_followed_and_drawn_from_when_imported(tmp_path):
    model = "import torch\nweights = torch.rand(3)\n"
    found = examined(tmp_path, "import torch\nimport parts\ntorch.manual_seed(1)\n", parts=model)
    assert kinds(found) == [("late-seed", 3)]
    assert "parts.py:2" in found[0].why


def test_a_branch_that_is_not_known_makes_a_finding_less_sure(tmp_path):
    found = examined(tmp_path, "import random, sys\nif sys.platform == other:\n    random.random()\n")
    assert [(item.kind, item.sure) for item in found] == [("unseeded-generator", Sure.MEDIUM)]


def test_variables_of_the_environment_close_what_they_fix(tmp_path):
    code = "import torch\nfor w in set('a b'.split()):\n    use(w)\n"
    held = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2"}
    assert {item.kind for item in examined(tmp_path, code)} == {"hash-order", "thread-count", "unpinned-packages"}
    assert {item.kind for item in examined(tmp_path, code, environ=held)} == {"unpinned-packages"}


@pytest.mark.parametrize(
    ("requirements", "line"),
    [
        ("torch==2.3\nnumpy\n", 2),
        ("torch >= 2\n", 1),
        ("# pinned\ntorch == 2.3.1  # yes\n", None),
        ("x @ https://y/z\n", None),
    ],
)
def test_requirements_without_a_version_are_told(requirements, line, tmp_path):
    (tmp_path / "requirements.txt").write_text(requirements)
    found = [item.line for item in examined(tmp_path, "import torch\n") if item.kind == "unpinned-packages"]
    assert found == ([] if line is None else [line])


def test_a_lock_pins_everything(tmp_path):
    (tmp_path / "uv.lock").write_text("")
    assert "unpinned-packages" not in {item.kind for item in examined(tmp_path, "import torch\n")}


def test_a_module_is_found_by_its_name_and_relative_imports_are_followed(tmp_path):
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("from . import parts\nparts.draw()\n")
    (package / "parts.py").write_text("import random\ndef draw():\n    random.random()\n")
    program = read_program(["python", "-m", "job.train"], tmp_path, {})
    assert [(item.kind, item.file, item.line) for item in examine_source(program)] == [
        ("unseeded-generator", "job/parts.py", 3)
    ]


def test_of_a_package_or_folder_that_is_run_its_main_is_looked_at(tmp_path):
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import random\nfrom . import parts\n\nrandom.random()\n")
    (package / "parts.py").write_text("")
    by_name = read_program(["python", "-m", "job", "--fast"], tmp_path, {})
    assert [source.shown for source in by_name.sources] == ["job/__main__.py", "job/__init__.py", "job/parts.py"]
    assert ("job/__main__.py", 4) in {(item.file, item.line) for item in examine_source(by_name)}
    by_folder = read_program(["python", "job"], tmp_path, {})
    assert by_folder.script.shown == "job/__main__.py"
    assert examine_source(by_folder)


def test_source_that_was_not_looked_at_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("isorun.diagnose.audit.program._MOST_BYTES", 200)
    (tmp_path / "train.py").write_text("import large, broken, small\n")
    (tmp_path / "large.py").write_text("import random\nrandom.random()\n" + "# filler\n" * 30)
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "small.py").write_text("")
    found = isorun.audit(["python", "train.py"], static=True, folder=tmp_path)
    assert [item.partition(":")[0] for item in found.unread] == ["large.py", "broken.py"]
    assert found.to_json()["unread"] == list(found.unread)
    text = " ".join(str(found).split())
    assert text.startswith("Whether train.py leaves anything open is not known")
    assert "source of 2 files" in text
    alone = isorun.audit(["python", "large.py"], static=True, folder=tmp_path)
    assert "nothing open" not in str(alone)
    assert "source of 0 files" in " ".join(str(alone).split())


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        (["python", "missing.py"], InputError, "missing.py"),
        (["python", "broken.py"], InputError, "no Python"),
        (["./train"], UsageError, "names no Python script"),
        (["python", "-c", "pass"], UsageError, "names no Python script"),
    ],
)
def test_a_command_without_a_script_is_refused_with_a_reason(words, error, told, tmp_path):
    (tmp_path / "broken.py").write_text("def (:")
    with pytest.raises(error, match=told):
        read_program(words, tmp_path, {})


STATEMENTS = [
    ast.unparse(statement)
    for path in sorted(CORPUS.rglob("*.py"))
    for statement in ast.walk(ast.parse(path.read_text()))
    if isinstance(statement, (ast.Assign, ast.Expr, ast.For, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom))
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STATEMENTS), max_size=25))
def test_any_program_is_examined_and_its_findings_stand_in_it(tmp_path_factory, statements):
    folder = tmp_path_factory.mktemp("program")
    code = "\n".join(statements)
    for item in examined(folder, code):
        assert item.kind in KINDS
        assert 1 <= item.line <= max(code.count("\n") + 1, 1)
        assert item.why
        assert item.fix


@pytest.mark.parametrize(
    "code",
    [
        f"import random\nx = {'+'.join(['f(1)'] * 600)}\nrandom.random()\n",
        f"import random\nx = set(a.b){'.union(b)' * 900}\nfor y in x:\n    use(y)\nrandom.random()\n",
        "import random\nx = '\\d'\ndef f():\n    return f()\nf()\nrandom.random()\n",
        "import train\nimport random\nrandom.random()\n",
        "class A(A):\n    pass\nA().x()\nimport random\nrandom.random()\n",
    ],
    ids=["a long sum", "a long chain", "a circle of calls", "a circle of imports", "a class of itself"],
)
def test_programs_that_go_deep_or_in_circles_are_examined(code, tmp_path):
    assert "unseeded-generator" in {item.kind for item in examined(tmp_path, code)}


def test_a_script_that_lies_elsewhere_has_no_patch_for_it(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "train.py").write_text("import random\nrandom.random()\n")
    program = read_program(["python", "../train.py"], tmp_path / "here", {})
    found = examine_source(program)
    assert [item.kind for item in found] == ["unseeded-generator"]
    assert patch_for(program, found) == ""


@pytest.mark.alone
def test_three_hundred_files_take_under_two_seconds(tmp_path):
    text = (CORPUS / "held_out" / "airbench_like" / "fast.py").read_text()
    for number in range(300):
        (tmp_path / f"m{number}.py").write_text(text)
    (tmp_path / "train.py").write_text("\n".join(f"import m{number}" for number in range(300)))
    began = time.process_time()
    program = read_program(["python", "train.py"], tmp_path, {})
    assert len(program.sources) == 301
    assert examine_source(program)
    assert time.process_time() - began < 2


# Seen in public trainings, and none of them open: initialised by hand or by a base class, sorted afterwards, and an
# attribute that is only called like an option of tf.data.
CLOSED_IN_OTHER_WAYS = {
    "an initialiser of its own": (
        "import torch\nfrom torch import nn\nfrom init import trunc_normal_\ntorch.manual_seed(0)\n"
        "class Net(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(torch.empty(3))\n"
        "        self.reset()\n    def reset(self):\n        trunc_normal_(self.w, std=0.02)\nNet()\n"
    ),
    "a base class that initialises": (
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nclass Net(Base):\n    def __init__(self):\n"
        "        self.w = nn.Parameter(torch.empty(3))\n        self.init_weights()\n    def init_weights(self):\n"
        "        super().init_weights()\nNet()\n"
    ),
    "files that are sorted in the end": (
        "import os\ndef files(folder):\n    found = []\n    for root, _, names in os.walk(folder):\n"
        "        found += names\n    return sorted(found)\nfiles('x')\n"
    ),
    "an attribute called deterministic": (
        "import tensorflow as tf\ntf.random.set_seed(0)\nclass Kron:\n    def __init__(self, deterministic=False):\n"
        "        self.deterministic = deterministic\nKron()\n"
    ),
}


@pytest.mark.parametrize("name", CLOSED_IN_OTHER_WAYS)
def test_what_is_closed_in_another_way_is_not_found(name, tmp_path):
    found = {item.kind for item in examined(tmp_path, CLOSED_IN_OTHER_WAYS[name])}
    assert not found & {"uninitialised-memory", "file-order", "loader-workers"}


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node 2 -m pkg.train",
        "torchrun --nproc_per_node=2 pkg/train.py",
        "accelerate launch --num_processes 2 -m pkg.train",
        "accelerate launch pkg/train.py --lr 1",
        "uv run python -m pkg.train",
        "uv run pkg/train.py",
        "python -m torch.distributed.run --nproc_per_node 2 --module pkg.train",
        "python -m pkg.train",
    ],
)
def test_launchers_stand_before_the_script(command, tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "train.py").write_text("import random\nrandom.random()\n")
    program = read_program(command.split(), tmp_path, {})
    assert program.script.shown == "pkg/train.py"
    assert [item.kind for item in examine_source(program) if item.kind == "unseeded-generator"]


def test_a_pin_has_no_local_version(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n")
    program = read_program(["python", "train.py"], tmp_path, {})
    patch = patch_for(program, examine_source(program), [("torch", "2.1.0+cpu")])
    assert "+torch==2.1.0\n" in patch


@pytest.mark.parametrize(
    ("package", "word"), [("torch", "torch.set_num_threads(3)"), ("keras", "TF_NUM_INTRAOP_THREADS=3")]
)
def test_the_threads_to_hold_are_those_of_this_machine_in_the_words_of_the_framework(
    tmp_path, monkeypatch, package, word
):
    monkeypatch.setattr(kernels, "threads_here", lambda: 3)
    (tmp_path / "train.py").write_text(f"import {package}\n")
    found = examine_source(read_program(["python", "train.py"], tmp_path, {}))
    [fix] = [item.fix for item in found if item.kind == "thread-count"]
    assert word in fix
    assert ("torch" in fix) == (package == "torch")
    assert ("OMP_NUM_THREADS" in fix) == (package == "torch"), "TensorFlow does not read it"


@pytest.mark.parametrize(
    ("code", "held", "is_open"),
    [
        ("import keras\n", {"OMP_NUM_THREADS": "2"}, True),
        ("import keras\n", {"TF_NUM_INTRAOP_THREADS": "2"}, False),
        ("import keras\n", {"OMP_NUM_THREADS": "2", "KERAS_BACKEND": "torch"}, False),
        ("import os\nimport keras\nos.environ['TF_NUM_INTRAOP_THREADS'] = '2'\n", {}, False),
        ("import os\nimport torch\nos.environ['OMP_NUM_THREADS'] = '2'\n", {}, True),
        ("import os\nos.environ['OMP_NUM_THREADS'] = '2'\nimport torch\n", {}, False),
        ("import os, numpy\nos.environ['OMP_NUM_THREADS'] = '2'\nimport torch\n", {}, False),
        ("import os, numpy\nos.environ['OMP_NUM_THREADS'] = '2'\na = numpy.dot(b, c)\n", {}, True),
    ],
)
def test_a_number_of_threads_counts_where_it_is_read(tmp_path, code, held, is_open):
    (tmp_path / "train.py").write_text(code)
    found = examine_source(read_program(["python", "train.py"], tmp_path, held))
    assert ("thread-count" in {item.kind for item in found}) == is_open


@pytest.mark.parametrize(
    ("code", "line", "before"),
    [
        ("import keras\n", "tensorflow.config.threading.set_intra_op_parallelism_threads(", ""),
        (
            '"""Text."""\nfrom __future__ import annotations\nimport numpy\na = numpy.dot(b, c)\n',
            'os.environ.setdefault("OMP_NUM_THREADS", ',
            "import numpy",
        ),
    ],
)
def test_a_patch_holds_threads_before_they_are_asked_for(tmp_path, code, line, before):
    (tmp_path / "train.py").write_text(code)
    program = read_program(["python", "train.py"], tmp_path, {})
    (tmp_path / "patch").write_text(patch_for(program, examine_source(program)))
    subprocess.run(["git", "apply", "-p1", "patch"], cwd=tmp_path, check=True)
    patched = (tmp_path / "train.py").read_text()
    assert patched.index(line) < (patched.index(before) if before else len(patched))
    compile(patched, "train.py", "exec")
    left = examine_source(read_program(["python", "train.py"], tmp_path, {}))
    assert "thread-count" not in {item.kind for item in left}


def test_a_file_whose_name_would_make_lines_of_a_patch_has_none(tmp_path):
    name = "a\n--- b.py"
    (tmp_path / f"{name}.py").write_text("import random\nrandom.random()\n")
    program = read_program(["python", f"{name}.py"], tmp_path, {})
    found = examine_source(program)
    assert "unseeded-generator" in {item.kind for item in found}
    assert patch_for(program, found) == ""


PACKAGE = {
    "lib/__init__.py": "from .data import *\nfrom .swarm import Swarm\n",
    "lib/data.py": "import numpy as np\ndef split(x, seed=None):\n    if seed:\n        np.random.seed(seed)\n"
    "    np.random.shuffle(x)\n",
    "lib/swarm.py": "import numpy as np\nclass Swarm:\n    def __init__(self):\n        self.x = np.random.rand()\n"
    "class Other(Swarm):\n    def step(self):\n        return np.random.uniform(0, 1)\n",
}


@pytest.mark.parametrize(
    ("code", "sure"),
    [
        ("from lib import split\nsplit([1], seed=1)\n", None),
        ("from lib import *\nsplit([1], seed=1)\n", None),
        ("import lib\nlib.split([1], seed=1)\n", None),
        ("from lib import split\nsplit([1])\n", Sure.HIGH),
        ("import lib\n", Sure.MEDIUM),  # of a module that is imported, and of which nothing is used
    ],
)
def test_what_a_package_hands_on_is_followed(tmp_path, code, sure):
    (tmp_path / "lib").mkdir()
    for name, text in {**PACKAGE, "train.py": code}.items():
        (tmp_path / name).write_text(text)
    found = examine_source(read_program(["python", "train.py"], tmp_path, {}))
    assert [item.sure for item in found if item.kind == "unseeded-generator"] == ([sure] if sure else [])
