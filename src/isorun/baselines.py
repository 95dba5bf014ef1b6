"""Baselines: what a change is held against, opened from whatever people have of it.

    a store           .isorun-main, postgresql://lab/isorun: the study of the same name there, or the one that is named
    a package         main.isorun: the study in it, whatever it is called (docs/packages.md)
    of a registry     registry:lab/cifar10/resnet56@3: the package of this name (docs/registry.md)
    a study           main/study.toml with the store beside it, or the name of one that the study's own store keeps
    a table           main.csv, main.parquet: a row a run, with the columns approach, config, environment, level, seed
    in Python         an outcome, records, a study, a list of numbers, a frame

`open_runs` is the one place where a kind is told from another. A study is read as it was declared when its runs were
made: its file may have changed since, and most often has, since that is what is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import InputError, IsorunError, known_names
from isorun.session import (
    Store,
    folder_of,
    is_package,
    is_registered,
    is_there,
    open_existing_store,
    opened,
    place_of,
    recorded,
    store_if_there,
    study_as_kept,
)
from isorun.store import STUDIES, AbstractStore, shown_place
from isorun.study.cells import cells_of
from isorun.study.design import Metric, Study
from isorun.study.records import RunRecord
from isorun.workflow import known_to, told_beside

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.analysis.measurements import Measurements
    from isorun.analysis.samples import FloatArray

__all__ = ["KnownRuns", "kept_table", "open_runs"]

_TABLES: Final = (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".gz")


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """Runs that were made: records, a table, or a list of numbers; exactly one of the three.

    place: where they are, for people. study: as it was declared when they were made, where that is known.
    """

    place: str
    study: Study | None = None
    records: tuple[RunRecord, ...] | None = None
    table: Measurements | None = None
    numbers: FloatArray | None = None
    told: tuple[Condition, ...] = ()


def open_runs(given: Any, *, like: Study | None = None, store: Store = None, study: str | None = None) -> KnownRuns:
    """The runs of a baseline. like: the study that is checked, whose name is looked for. store: that of its runs.

    study: the name of the one that is meant, where a store keeps several.
    """
    if isinstance(given, (str, Path)):
        return _named(str(given), like, store, study)
    if isinstance(given, Study):
        return _of_study(given, store)
    if isinstance(given, AbstractStore):
        return _of_store(given, "the store", like, study)
    from isorun.analysis.measurements import is_list_of_numbers  # noqa: PLC0415 - as all statistics: when it is needed

    found = getattr(given, "records", given)  # an outcome has its records there
    if isinstance(found, Sequence) and found and all(isinstance(item, RunRecord) for item in found):
        return KnownRuns("the records", records=tuple(found))
    if found is not given and isinstance(found, Sequence) and not found:
        raise InputError(
            "the outcome has no run of its own",
            found=str(getattr(given, "counted", "")) or "no records",
            hint="a store that is new each time makes all runs with the code as it is: isorun.run(…, store=tmp_path); "
            "the study in place of the outcome asks about what is recorded, whichever code made it",
        )
    if is_list_of_numbers(found):
        from isorun.analysis.samples import finite_sample  # noqa: PLC0415 - as all statistics: when it is needed

        return KnownRuns("the list", numbers=finite_sample(found, "the runs"))
    return KnownRuns("the table", table=_read(given))


def _named(name: str, like: Study | None, store: Store, study: str | None) -> KnownRuns:
    """What a text names: each kind is told by what is there, and none is made."""
    if is_registered(name):
        from isorun.registries import fetched  # noqa: PLC0415 - for those who ask one

        return replace(_named(str(fetched(name)), like, store, study), place=name)
    path = Path(name)
    if path.suffix == ".toml":
        with opened(path) as (declared, place):
            return _of_study(declared, place)
    if is_package(path):
        with open_existing_store(name) as kept:  # one study is in it, whatever it is called
            return _of_store(kept, name, like, study or kept.documents(STUDIES).names()[0])
    if path.is_file():
        if not name.endswith(_TABLES):
            raise _unknown_kind(name)
        return KnownRuns(name, table=_read(path))
    if "://" in name or (folder_of(name) is not None and is_there(name)):
        with open_existing_store(name) as kept:
            return _of_store(kept, shown_place(name), like, study)
    if path.is_dir():
        raise InputError(f"the baseline {name} is a folder without a store", hint="isorun run study.toml --store NEW")
    with store_if_there(place_of(like, store)) as own:
        names = () if own is None else own.documents(STUDIES).names()
        if own is not None and name in names:
            return replace(_of_store(own, f"the study {name}", like, name), place=name)
    raise InputError(
        f"there is no baseline {name!r}",
        found=f"neither a file nor a store, and no study of this name among {known_names(name, names)}",
        allowed="a store (.isorun-main, postgresql://…), a package (main.isorun, registry:…), a study, a table",
        hint="isorun run study.toml --store .isorun-main on the main branch makes one",
    )


def _unknown_kind(name: str) -> InputError:
    return InputError(
        f"the baseline {name} is a file of no kind that is known",
        allowed=f"a study file (.toml), a package (.isorun), a table ({', '.join(_TABLES)}), the folder of a store",
    )


def _of_study(study: Study, store: Store) -> KnownRuns:
    with recorded(store, study) as kept:
        known = known_to(study, kept)
        found = tuple(kept.records(cell.id for cell in cells_of(known)))
        return _with_records(KnownRuns(f"the study {study.name}", known, found, told=told_beside(known, kept)))


def _of_store(store: AbstractStore, place: str, like: Study | None, name: str | None) -> KnownRuns:
    """The runs that a store keeps of the study of this name; without one, of that which is checked."""
    names = store.documents(STUDIES).names()
    asked = name or (like.name if like is not None else "")
    if asked in names:
        study = known_to(_kept_there(asked, store), store)
    elif name is None and like is not None and not names:
        study = known_to(like, store)  # a store of runs whose study was not kept by its name
    else:
        raise InputError(
            f"{place} keeps no study {asked!r}" if asked else f"which study of {place} is meant is not said",
            allowed=known_names(asked, names),
            hint="baseline_study=… (--baseline-study NAME) names another one",
        )
    found = tuple(store.records(cell.id for cell in cells_of(study)))
    return _with_records(KnownRuns(place, study, found, told=told_beside(study, store)))


def _kept_there(name: str, store: AbstractStore) -> Study:
    try:
        return study_as_kept(name, store)
    except (IsorunError, KeyError, TypeError) as error:
        what = f"the study {store.documents(STUDIES).place(name)} of the baseline cannot be read: {error}"
        raise InputError(what, hint="make the baseline again: isorun run study.toml --store NEW") from None


def _with_records(runs: KnownRuns) -> KnownRuns:
    if not runs.records:
        raise InputError(
            f"{runs.place} has no run of the study {runs.study.name if runs.study else ''!r}",
            hint="isorun run study.toml --store STORE makes a baseline",
        )
    return runs


def _read(given: Any) -> Measurements:
    from isorun.analysis.measurements import read_table  # noqa: PLC0415 - as all statistics: when it is needed

    return read_table(given)


def kept_table(runs: KnownRuns, metric: str | None = None) -> str:
    """Runs as CSV, a row a run, to be kept beside the code: which run it was, what it counts as, and its value.

    metric: all that are judged when it is not said. Of a list, one column.
    """
    import csv  # noqa: PLC0415 - for those who keep a baseline
    import io  # noqa: PLC0415

    columns = _recorded_columns(runs, metric) if runs.records is not None else _listed_column(runs)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _recorded_columns(runs: KnownRuns, metric: str | None) -> dict[str, list[Any]]:
    from isorun.analysis.evidence.run_units import FINAL_WEIGHTS  # noqa: PLC0415
    from isorun.analysis.studies.study_result import DISTINCT, analyse_recorded, not_logged, run_table  # noqa: PLC0415

    assert runs.records is not None
    declared = {} if runs.study is None else runs.study.metrics
    metrics = declared if metric is None else {metric: declared.get(metric, Metric(metric))}
    result = analyse_recorded(runs.place, runs.records, metrics, {} if runs.study is None else runs.study.selections)
    wrong = [name for name in metrics if name not in result.logged]
    if wrong or result.primary is None:
        raise not_logged(wrong[0] if wrong else "", result.logged)
    table = run_table(result)
    digests = {record.run_id: record.digests.get(FINAL_WEIGHTS, "") for record in runs.records}
    kept = {name: column for name, column in table.items() if name not in {"run", DISTINCT}}
    weights = [digests[run] for run in table["run"]]
    judged = {name: kept.pop(name) for name in [item.name for item in result.metrics]}
    return {**kept, "weights": weights, **judged}


def _listed_column(runs: KnownRuns) -> dict[str, list[Any]]:
    if runs.numbers is None:
        raise InputError("a table is kept as it is", found=runs.place, hint="give its path as the baseline")
    return {"value": runs.numbers.tolist()}
