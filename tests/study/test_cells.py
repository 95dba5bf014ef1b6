"""Cells are known by their content: what was run before a key existed must not be run again because it exists."""

import hashlib
import hmac
import json
import time
from pathlib import Path

import pytest

from isorun.errors import StudyError
from isorun.study.cells import UNKEYED, Cell, Level, cells_of
from isorun.study.design import Study, adhoc_study, changed, document_of, document_without_secrets, kept_study, with_key

KEY = bytes(range(32))
CELL = Cell("a", ("python", "t.py"), "default", {}, "default", {}, Level.FIXED_SEED, 1, 0)


def declared(**options):
    approaches = {"train": ["python", "train.py", "--lr", "0.1"]}
    return Study("s", approaches=approaches, levels=["default", "deterministic"], **options)


def test_ids_are_those_of_the_first_release():
    assert CELL.id == "e08388ef36aa531e"
    assert [cell.id for cell in cells_of(declared())] == ["3394d34507ad2d58", "3253be064c7c4ce8"]


def test_ids_that_are_made_for_many_cells_at_once_are_those_of_each_cell():
    command = ["python", "t.py", "{config.lr}", '"repeat":0,"seed":null', "é"]
    tricky = {"c": {"lr": '{"repeat":0,"seed":null}'}, "d": {"lr": 0.1}}
    several = {"levels": ["default", "fixed-seed"], "seeds": [0, 7, 2**40], "repeats": 2, "take_seeds": True}
    study = Study("s", approaches={"a": command}, configs=tricky, **several)
    hidden = Study("s", approaches={"a": ["python", "t.py", "--password", "hunter2"]}, levels=["fixed-seed"], seeds=[1])
    cells = (*cells_of(study), *cells_of(hidden, KEY))
    assert len({cell.id for cell in cells}) == len(cells) == 2 * 2 * 6 + 1
    assert [Cell.from_json(cell.to_json()) for cell in cells] == list(cells)


def test_taking_seeds_over_makes_other_cells_and_says_so_only_then():
    plain, taking = cells_of(declared()), cells_of(declared(take_seeds=True))
    assert {cell.id for cell in plain}.isdisjoint(cell.id for cell in taking)
    assert all("take_seeds" not in cell.to_json() for cell in plain)
    assert all(cell.to_json()["take_seeds"] is True for cell in taking)
    assert [Cell.from_json(cell.to_json()) for cell in (*plain, *taking)] == [*plain, *taking]


def test_a_study_keeps_it_in_its_document_and_when_it_is_extended():
    study = Study("s", approaches={"a": "python t.py"}, take_seeds=True)
    assert document_of(study)["take_seeds"] is True
    assert changed(study, repeats=3).take_seeds
    assert all(cell.take_seeds for cell in cells_of(changed(study, repeats=3)))
    assert "take_seeds" not in document_of(Study("s", approaches={"a": "python t.py"}))


GOLDEN = [
    "c106e9aa3d1ae240",
    "ef8aaf26e6c0ff0b",
    "e28e7a8b2f33a282",
    "425ce9297d81e3ca",
    "3ae4999dc10b524c",
    "a32048f3a1dcff7b",
    "1a00881ae08b0983",
    "e65a4ca876f47ea2",
    "d649182dfe7142a7",
    "fbb47ebfaa40140d",
    "1a944b231260ef98",
    "f633b12d3ed222ad",
    "3a987c09564d70c4",
    "452a9ff874c96d11",
    "0ea736e8d7e0d8fc",
    "5524c5f716d61315",
    "5663c8d2760612fe",
    "345e5a21c8a3cd6a",
    "1b6fc5ba10f404da",
    "193a6bebd7661273",
    "745ae7083c5f80df",
    "bbf6f343380bd425",
    "2237059a79cd1e42",
    "43ab03c5a614e29b",
]


@pytest.mark.parametrize("key", [None, KEY])
def test_cells_in_which_nothing_is_withheld_have_the_ids_they_always_had(key):
    study = Study(
        "digits",
        approaches={"lenet": "python train.py --lr {config.lr}"},
        configs={"slow": {"lr": 0.01}, "drawn": {"lr": {"log-uniform": [0.001, 0.1]}, "draws": 2}},
        environments={
            "default": {},
            "one": {"threads": 1, "env": {"OMP_NUM_THREADS": "1", "EPOCHS": "3"}, "python": "/usr/bin/python3"},
        },
        levels=["default", "deterministic"],
        seeds=[1, 2],
    )
    assert [cell.id for cell in cells_of(study, key)] == GOLDEN
    taking = Study("t", approaches={"t": "python t.py"}, take_seeds=True)
    assert [cell.id for cell in cells_of(taking, key)] == ["0afacb9fde7a4771"]
    assert all("withheld" not in cell.to_json() for cell in cells_of(study, key))


SECRET_OPTIONS = ["--salt", "--pass", "--pat", "--auth", "--dsn", "--creds", "--cookie", "--password", "--api-key"]


def with_secret(option: str, value: str, **variables: str) -> Study:
    return Study("s", approaches={"t": ["python", "t.py", option, value]}, environments={"here": {"env": variables}})


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_commands_that_differ_in_a_withheld_value_are_different_cells(option):
    (five,), (ten,) = (cells_of(with_secret(option, value), KEY) for value in ("x5-Kq81z", "x9-Kq81z"))
    assert five.command == ten.command == ("python", "t.py", option, five.command[-1])
    assert "<redacted>" in five.command[-1]
    assert five.id != ten.id
    assert five.id == cells_of(with_secret(option, "x5-Kq81z"), KEY)[0].id
    assert Cell.from_json(five.to_json()) == five
    assert five.id != cells_of(with_secret(option, "x5-Kq81z"), b"another key" * 3)[0].id


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_commands_that_differ_in_a_short_number_are_different_cells(option):
    (five,), (ten,) = (cells_of(with_secret(option, value), KEY) for value in ("5", "10"))
    assert five.id != ten.id


def test_variables_that_differ_in_a_withheld_value_are_different_cells():
    (one,), (other,) = (cells_of(with_secret("--lr", "1", HASH_SALT=value), KEY) for value in ("x1-Kq81z", "x2-Kq81z"))
    assert one.environment_content == other.environment_content
    assert one.id != other.id


def test_a_withheld_value_is_not_found_by_trying_hashes_of_it():
    (cell,) = cells_of(with_secret("--salt", "x5-Kq81z"), KEY)
    whole = json.dumps({"command": ["python", "t.py", "--salt", "x5-Kq81z"], "env": {}}, sort_keys=True)
    assert cell.withheld != hashlib.sha256(whole.encode()).hexdigest()[:16]
    assert cell.withheld == hmac.new(KEY, whole.encode(), "sha256").hexdigest()[:16]


def test_without_a_key_a_cell_with_secrets_says_that_its_id_is_not_final():
    (cell,) = cells_of(with_secret("--salt", "x5-Kq81z"))
    assert cell.withheld == UNKEYED
    assert cell.id != cells_of(with_secret("--salt", "x5-Kq81z"), KEY)[0].id


def test_a_kept_study_has_the_same_cells_without_the_values(tmp_path):
    study = with_key(with_secret("--salt", "hidden-5", HASH_SALT="hidden-6", EPOCHS="3"), KEY)
    document = json.loads(json.dumps(document_without_secrets(study)))
    assert "hidden" not in json.dumps(document)
    kept = kept_study(document, tmp_path, "s")
    ids = [cell.id for cell in cells_of(study)]
    assert [cell.id for cell in cells_of(kept)] == ids == [cell.id for cell in cells_of(kept, b"x" * 32)]
    assert [cell.id for cell in cells_of(changed(kept, repeats=2))][:1] == ids
    assert [cell.id for cell in cells_of(kept_study(document_without_secrets(kept), tmp_path, "s"))] == ids


@pytest.mark.parametrize("name", ["sig", "auth", "code"])
def test_a_secret_in_an_address_with_more_behind_it_keeps_its_cells(tmp_path, name):
    study = with_key(with_secret("--u", f"https://h/x?{name}=abcdefgh12345&a=1"), KEY)
    kept = kept_study(json.loads(json.dumps(document_without_secrets(study))), tmp_path, "s")
    assert [cell.id for cell in cells_of(kept)] == [cell.id for cell in cells_of(study)]


def test_what_a_store_kept_is_never_redacted_again(tmp_path):
    """Also where today's rules would take out more: they may have been others when it was kept."""
    study = with_key(with_secret("--salt", "hidden-5"), KEY)
    document = document_without_secrets(study)
    document["approaches"]["t"]["command"] = ["python", "t.py", "--salt", "kept-Kq81z"]
    kept = kept_study(document, tmp_path, "s")
    (cell,) = cells_of(kept)
    assert cell.command == ("python", "t.py", "--salt", "kept-Kq81z")
    assert cell.withheld == cells_of(study)[0].withheld
    assert document_without_secrets(kept) == document


def test_a_study_with_a_key_that_gets_another_command_forgets_the_hashes():
    study = with_key(with_secret("--salt", "x5-Kq81z"), KEY)
    (cell,) = cells_of(changed(study, approaches={"t": {"command": ["python", "t.py", "--lr", "1"]}}))
    assert cell.withheld == ""


def test_a_damaged_table_of_hashes_is_refused(tmp_path):
    document = {**document_of(with_secret("--lr", "5")), "withheld": {"t": "x"}}
    with pytest.raises(StudyError, match="no table of hashes"):
        kept_study(document, tmp_path, "s")


def test_commands_to_compare_that_differ_in_a_withheld_value_are_two_approaches(tmp_path):
    commands = [["python", "t.py", "--salt", value] for value in ("x1-Kq81z", "x2-Kq81z")]
    study = adhoc_study(commands, folder=tmp_path)
    assert list(study.approaches) == ["t 1", "t 2"]
    assert len({cell.id for cell in cells_of(study, KEY)}) == 2
    with pytest.raises(StudyError, match="are the same"):
        adhoc_study([commands[0], commands[0]], folder=tmp_path)


def test_what_was_asked_for_counts_where_a_study_has_too_many_cells():
    document = {**document_without_secrets(declared()), "asked": [{"seeds": 1000, "repeats": 10**6}]}
    with pytest.raises(StudyError, match="2,000,000,000 cells"):
        cells_of(kept_study(document, Path(), "s"))


def test_too_many_seeds_are_refused_before_they_are_listed():
    document = {**document_without_secrets(declared()), "asked": [{"seeds": 10**6}] * 2}
    with pytest.raises(StudyError, match="too many seeds"):
        kept_study(document, Path(), "s")


def test_many_approaches_that_take_many_configs_are_counted_without_looking_at_each_pair():
    approaches = {f"a{number}": ["python", "train.py"] for number in range(5_000)}
    study = Study("s", approaches=approaches, configs={f"c{number}": {} for number in range(20_000)})
    began = time.process_time()
    with pytest.raises(StudyError, match="100,000,000 cells"):
        cells_of(study)
    assert time.process_time() - began < 1.0


def test_placeholders_and_values_are_held_against_the_configs_that_an_approach_takes():
    taking = {"command": ["python", "t.py", "{config.lr}"], "configs": ["c"]}
    plain = {"command": ["python", "t.py"], "configs": ["d", "d"]}
    Study("s", approaches={"a": taking, "b": plain}, configs={"c": {"lr": 1}, "d": {}, "e": {"unused": 1}})
    with pytest.raises(StudyError, match=r"configs\.d\.lr: no approach uses it"):
        Study("s", approaches={"a": taking, "b": plain}, configs={"c": {"lr": 1}, "d": {"lr": 1}})
    with pytest.raises(StudyError, match=r"asks for \{config\.lr\}, which config 'e' lacks"):
        Study("s", approaches={"a": [*taking["command"]]}, configs={"c": {"lr": 1}, "e": {}})
