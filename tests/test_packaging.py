"""What a release is made of says the same everywhere; `make test-packages` builds and installs it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import isorun

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())


def promises():
    tree = ast.parse((ROOT / "packaging" / "verify.py").read_text())
    named = (node for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "PROMISES")
    return {key.value for key in next(named).value.keys}


def test_every_extra_has_something_that_it_is_verified_by():
    assert promises() == {*PROJECT["optional-dependencies"], "core"} - {"dev", "docs"}  # docs: make site builds with it


def test_the_recipe_asks_for_what_the_project_asks_for():
    wanted = {re.sub(r"(?=>)", " ", item, count=1) for item in PROJECT["dependencies"]}
    assert {*RECIPE["requirements"]["run"]} == wanted | {f"python {PROJECT['requires-python']}"}
    assert RECIPE["context"]["version"] == isorun.__version__
    assert "isorun = isorun.cli.main:main" in RECIPE["build"]["python"]["entry_points"]
    assert PROJECT["scripts"] == {"isorun": "isorun.cli.main:main"}
    assert PROJECT["entry-points"]["pytest11"] == {"isorun": "isorun.pytest_plugin"}


def test_the_citation_has_the_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited.get("version", isorun.__version__) == isorun.__version__


def test_classifiers_and_verified_pythons_agree():
    classified = [item.rpartition(" ")[2] for item in PROJECT["classifiers"] if "Python :: 3." in item]
    text = (ROOT / "packaging" / "verify.py").read_text()
    assert f"PYTHONS = {tuple(classified)!r}".replace("'", '"') in text
