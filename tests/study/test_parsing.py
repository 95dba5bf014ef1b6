"""What a study file may say, and what it is told when it may not."""

import pytest
from whole_study import FULL

from isorun.errors import StudyError
from isorun.study.cells import Level, cells_of
from isorun.study.design import Study, document_of, load_study, study_from_document
from isorun.study.parsing import as_duration


@pytest.fixture
def full(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FULL)
    return load_study(path)


def test_a_full_study_file_is_read_as_written(full):
    assert full.name == "digits"
    assert full.levels == (Level.DEFAULT, Level.FIXED_SEED)
    assert full.approaches["deep"].configs == ("fast",)
    assert full.environments["one-thread"].env == {"OMP_NUM_THREADS": "1", "MODE": "a"}
    assert full.policy.time_limit_seconds == 600
    assert full.approaches["lenet"].sources.files == ("metrics.csv",)


@pytest.mark.parametrize("written", ["[metrics.m]", "[metrics.m]\nchance = 0.1"])
def test_a_metric_without_a_direction_declares_none_and_stays_so_when_written_again(tmp_path, written):
    path = tmp_path / "study.toml"
    path.write_text(f'[approaches.a]\ncommand = "true"\n{written}\n')
    study = load_study(path)
    assert study.metrics["m"].direction == ""
    assert study_from_document(document_of(study), tmp_path, "again").metrics == study.metrics


def test_the_plan_is_the_product_of_the_design(full):
    cells = cells_of(full)
    settings = (1 + 4) + 1
    assert len(cells) == settings * 1 * 2 * (2 * 3)
    assert len({cell.id for cell in cells}) == len(cells)
    assert {cell.seed for cell in cells if cell.level is Level.DEFAULT} == {None}
    assert [cell.repeat for cell in cells] == sorted(cell.repeat for cell in cells)


def test_a_study_survives_the_way_through_its_document(full):
    again = study_from_document(document_of(full), full.folder, "other")
    assert again == full
    assert [cell.id for cell in cells_of(again)] == [cell.id for cell in cells_of(full)]


def test_a_cell_id_is_known_forever():
    study = Study("s", approaches={"a": "python train.py"}, levels=["fixed-seed"])
    assert [cell.id for cell in cells_of(study)] == ["9884243b81b23a1d"]


def test_more_repeats_keep_all_cells_there_were():
    def ids(**changes):
        return {cell.id for cell in cells_of(Study("s", approaches={"a": "python t.py {seed}"}, **changes))}

    before = ids(repeats=2, seeds=[1, 2], levels=["fixed-seed"])
    assert before < ids(repeats=5, seeds=[1, 2, 3], levels=["default", "fixed-seed"])


def test_more_draws_and_more_parameters_change_no_draw_already_made():
    def values(**config):
        command = "python t.py " + " ".join(f"{{config.{key}}}" for key in config if key != "draws")
        study = Study("s", approaches={"a": command}, configs={"c": config})
        return [cell.config_values["lr"] for cell in cells_of(study)]

    lr = {"uniform": [0, 1]}
    three = values(lr=lr, draws=3)
    assert values(lr=lr, wd={"normal": [0, 1]}, draws=6)[:3] == three
    assert len(set(three)) == 3


@pytest.mark.parametrize(
    ("distribution", "inside"),
    [
        ({"uniform": [2, 3]}, lambda x: 2 <= x <= 3),
        ({"log-uniform": [1e-4, 1e-2]}, lambda x: 1e-4 <= x <= 1e-2),
        ({"integer": [3, 5]}, lambda x: x in (3, 4, 5) and isinstance(x, int)),
        ({"normal": [10, 0.1]}, lambda x: 9 < x < 11),
        ({"choice": ["a", "b"]}, lambda x: x in ("a", "b")),
    ],
)
def test_draws_stay_inside_their_distribution(distribution, inside):
    study = Study("s", approaches={"a": "x {config.v}"}, configs={"c": {"v": distribution, "draws": 200}})
    drawn = [cell.config_values["v"] for cell in cells_of(study)]
    assert all(inside(value) for value in drawn)
    assert len(set(drawn)) > 1


BAD = {
    "unknown key": ("nmae = 'x'", "no key 'nmae'", "did you mean 'name'"),
    "unknown level": ("levels = ['fixed_seed']", "no level 'fixed_seed'", "did you mean 'fixed-seed'"),
    "empty levels": ("levels = []", "levels: the list is empty", "default, fixed-seed, deterministic"),
    "empty seeds": ("seeds = []", "seeds: the list is empty", ""),
    "no repeats": ("repeats = 0", "repeats: it must be a whole number", "1 to"),
    "float repeats": ("repeats = 2.5", "repeats: it must be a whole number", "float 2.5"),
    "boolean seed": ("seeds = [true]", "seeds: it must be a whole number", "bool True"),
    "double seed": ("seeds = [1, 1]", "seeds: 1 is there more than once", "raise repeats"),
    "taking seeds": ("take_seeds = 'yes'", "take_seeds: it must be true or false", "str 'yes'"),
    "unknown approach key": ("approaches.b.cmd = 'x'", "approaches.b: there is no key 'cmd'", "command"),
    "command and function": (
        "approaches.b = {command='x', function='t.py:f'}",
        "needs either a command or a function",
        "both",
    ),
    "unknown placeholder": ("approaches.b.command = 'x {sede}'", "no placeholder {sede}", "{{sede}}"),
    "unfilled placeholder": ("approaches.b.command = 'x {config.lr}'", "asks for {config.lr}", "add lr"),
    "shell": ("approaches.b.command = 'x | tee log'", "belongs to a shell", "bash"),
    "open quote": ('approaches.b.command = "x \'y"', "cannot be split", "No closing quotation"),
    "empty command": ("approaches.b.command = ''", "command: it is empty", ""),
    "missing function file": ("approaches.b.function = 'no.py:f'", "there is no file no.py", "looked in"),
    "unknown config": ("approaches.b = {command='x', configs=['nope']}", "no config 'nope'", ""),
    "unused config": ("configs.c.lr = 1", "configs.c.lr: no approach uses it", "{config.lr}"),
    "bad distribution": ("configs.c.lr = {unifrom=[0,1]}", "not a distribution", "did you mean 'uniform'"),
    "reversed range": ("configs.c.lr = {uniform=[1,0]}", "low must be below high", "[1.0, 0.0]"),
    "log of zero": ("configs.c.lr = {log-uniform=[0,1]}", "numbers above 0", ""),
    "secret by name": ("configs.c.api_key = 'hidden-value'", "configs.c.api_key: that looks like a secret", "env]"),
    "secret by shape": ("configs.c.hub = 'hf_0123456789abcdef'", "configs.c.hub: that looks like a secret", "env]"),
    "unknown environment key": ("environments.e.pyhton = 'x'", "no key 'pyhton'", "did you mean 'python'"),
    "reserved variable": ("environments.e.env = {ISORUN_SEED='1'}", "'ISORUN_SEED' cannot be set", ""),
    "bad direction": ("metrics.m.direction = 'up'", "'up' is not known", "higher, lower"),
    "selection without metric": ("selections.s.direction = 'lower'", "needs a metric and a direction", ""),
    "bad duration": ("policy.time_limit = 'soon'", "not a duration", '"10m"'),
    "bad policy": ("policy.on_failure = 'explode'", "'explode' is not known", "continue, fail-fast"),
    "bad pattern": ("sources.patterns = ['(']", "not a regular expression", ""),
    "pattern without name": (r"sources.patterns = ['\d+']", "no named group", "?P<val_acc>"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_message(case, tmp_path):
    text, what, more = BAD[case]
    path = tmp_path / "study.toml"
    path.write_text(f"approaches.a.command = 'python train.py'\n{text}\n")
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert str(path) in str(caught.value)
    assert what in str(caught.value)
    assert more in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no approaches"),
        ("[approaches]", "nothing to run"),
        ("= 3", "not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_files_that_declare_nothing_are_refused(text, what, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=what):
        load_study(path)


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(StudyError, match="there is no study file"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(StudyError, match="is a folder"):
        load_study(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(StudyError, match="is no study file, which is a text"):
        load_study(tmp_path / "latin.toml")


def test_a_design_too_large_to_run_is_refused_before_it_is_built():
    study = Study("s", approaches={"a": "x"}, repeats=1_000_000, seeds=100)
    with pytest.raises(StudyError, match="100,000,000 cells"):
        cells_of(study)


def test_a_function_of_a_module_is_an_approach(tmp_path):
    study = Study("s", approaches={"f": test_missing_and_unreadable_files_are_named}, folder=tmp_path)
    assert study.approaches["f"].is_function
    assert study.approaches["f"].command[1].endswith("test_parsing.py:test_missing_and_unreadable_files_are_named")


def test_a_lambda_cannot_be_run_in_another_process():
    with pytest.raises(StudyError, match="top level of a module"):
        Study("s", approaches={"f": lambda: None})


@pytest.mark.parametrize(("said", "seconds"), [("90", 90), ("1.5", 1.5), (".5", 0.5), ("90s", 90), ("2 m", 120)])
def test_a_duration_is_a_number_of_seconds_or_has_its_unit(said, seconds):
    assert as_duration(said, "here") == seconds


@pytest.mark.parametrize("said", ["", "s", "²", "1..5", "-1", "0", "nan", "inf", "1e3", True])
def test_what_is_no_duration_is_refused(said):
    with pytest.raises(StudyError, match="here: it is not a duration"):
        as_duration(said, "here")
