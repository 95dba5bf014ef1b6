import sys

from hypothesis import given
from hypothesis import strategies as st

from isorun.execution.warm import imports_of_script, modules_to_preload
from isorun.worker.frameworks import preload_with

PARTS = preload_with("torch")


def project(tmp_path, **files):
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "train.py"


def test_imports_are_found_in_order_wherever_they_stand(tmp_path):
    script = project(
        tmp_path,
        train_py=(
            "import os, torch.nn.functional as F\n"
            "def main():\n    from sklearn.datasets import load_digits\n"
            "try:\n    import pandas\nexcept ImportError:\n    pandas = None\n"
            "import numpy as np\n"
        ),
    )
    found = modules_to_preload(script, tmp_path)
    assert found[:4] == ("torch.nn.functional", "sklearn.datasets", "pandas", "numpy")
    assert found[4:] == tuple(part for part in PARTS if part != "numpy")


def test_local_modules_are_followed_also_relative_ones_and_packages(tmp_path):
    script = project(
        tmp_path,
        train_py="import models.net\nfrom helpers import data\nimport torch\n",
        models__net_py="from .layers import Layer\nfrom . import extra\n",
        models__layers_py="import numpy\n",
        models__extra_py="from .. import outside\nimport scipy.stats\n",
        helpers__data_py="import pandas\n",
    )
    assert set(modules_to_preload(script, tmp_path)) == {"torch", "numpy", "pandas", "scipy.stats", *PARTS}


def test_modules_that_import_each_other_end(tmp_path):
    script = project(tmp_path, train_py="import a\n", a_py="import b\n", b_py="import a, numpy\n")
    assert modules_to_preload(script, tmp_path) == ("numpy",)


def test_a_local_file_hides_a_framework_of_the_same_name(tmp_path):
    script = project(tmp_path, train_py="import torch\n", torch_py="x = 1\n")
    assert modules_to_preload(script, tmp_path) == ()


def test_frameworks_that_do_not_survive_a_fork_are_left_out(tmp_path):
    script = project(tmp_path, train_py="import tensorflow, jax, polars, keras, torch\n")
    assert set(modules_to_preload(script, tmp_path)) == {"torch", *PARTS}


def test_nothing_is_executed(tmp_path):
    script = project(tmp_path, train_py="import marker\n", marker_py="raise SystemExit('executed')\n")
    before = set(sys.modules)
    assert imports_of_script(script, tmp_path) == ()
    assert "marker" not in set(sys.modules) - before


def test_a_script_that_is_missing_or_broken_has_nothing_to_preload(tmp_path):
    broken = project(tmp_path, train_py="import torch\ndef (:\n")
    assert modules_to_preload(broken, tmp_path) == ()
    assert modules_to_preload(tmp_path / "none.py", tmp_path) == ()


@given(source=st.binary(max_size=200))
def test_any_bytes_can_be_scanned(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scan")
    (folder / "train.py").write_bytes(source)
    assert isinstance(imports_of_script(folder / "train.py", folder), tuple)
