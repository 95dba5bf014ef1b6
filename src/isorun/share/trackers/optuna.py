"""Optuna: the SQLite database or the journal file of its storages, read without Optuna.

optuna:sqlite:///s.db, optuna:journal.log. A trial is a run: its parameters are the config, its value the result, what
it reported on the way a series; attributes are tags. Times without a zone are those of this machine, as Optuna writes
them.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError
from isorun.share.trackers import AbstractTracker, Chosen, GrowingSeries, TrackedRun, shown_where, unix_microseconds
from isorun.share.trackers.foreign_files import asked_database, database_of, has_tables, refuse_missing
from isorun.sources.trackers import DATABASE
from isorun.study.records import RunState

__all__ = ["Optuna"]

_TABLES: Final = ("studies", "trials", "trial_params", "trial_values", "trial_intermediate_values")
_METRIC_NAMES: Final = "study:metric_names"
_BETTER: Final = {"MINIMIZE": "lower", "MAXIMIZE": "higher", 1: "lower", 2: "higher"}
_STATES: Final = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")


@dataclass(slots=True)
class _Trial:
    """One trial, as it is read."""

    number: int
    state: str = "RUNNING"
    values: dict[int, float] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    reported: dict[int, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    started: int | None = None
    ended: int | None = None


@dataclass(slots=True)
class _Kept:
    """One study: its trials by their id in the storage."""

    name: str
    directions: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    trials: dict[int, _Trial] = field(default_factory=dict)

    def objectives(self) -> list[str]:
        """What each value is called."""
        named = self.attributes.get(_METRIC_NAMES)
        count = max(len(self.directions), 1)
        if isinstance(named, list) and len(named) == count:
            return [str(name) for name in named]
        return ["value"] if count == 1 else [f"value_{place}" for place in range(count)]


class Optuna(AbstractTracker):
    """Trials of Optuna. An experiment is a study."""

    name = "optuna"
    where_hint = "optuna:sqlite:///s.db, or optuna:journal.log"

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """Every trial that began, by study and number."""
        path = database_of(self.where)
        if "://" in self.where and not self.where.startswith("sqlite:///"):
            raise InputError(
                f"{self.place} is no file that can be read",
                allowed=self.where_hint,
                hint="optuna.copy_study to sqlite:///copy.db, then isorun import optuna:sqlite:///copy.db",
            )
        refuse_missing(path, "the storage of Optuna")
        studies = _journal(path, self) if _is_text(path) else _database(path, self.where_hint)
        wanted = chosen.only({study.name: study.name for study in studies}, "study", self.place)
        waiting = empty = 0
        for study in studies:
            if study.name in wanted:
                for trial in sorted(study.trials.values(), key=lambda one: one.number):
                    if trial.state == "WAITING":
                        waiting += 1
                    else:
                        yield _run(study, trial)
                empty += not study.trials
        self.pass_over("trials that wait in Optuna's queue", waiting, "left out: they are no runs yet")
        self.pass_over("studies without a trial", empty)


def _run(study: _Kept, trial: _Trial) -> TrackedRun:
    names = study.objectives()
    reported = GrowingSeries()
    for step, value in sorted(trial.reported.items()):
        reported.add(step, None, value)
    state, reason = {
        "COMPLETE": (RunState.FINISHED, ""),
        "PRUNED": (RunState.INTERRUPTED, f"pruned after step {max(trial.reported, default='none')}"),
        "FAIL": (RunState.FAILED, trial.tags.get("fail_reason") or "Optuna says that it failed"),
    }.get(trial.state, (None, ""))
    told = {f"study.{name}": _as_text(value) for name, value in study.attributes.items() if name != _METRIC_NAMES}
    return TrackedRun(
        key=(study.name, str(trial.number), str(trial.started or 0)),
        experiment=study.name,
        name=f"trial-{trial.number}",
        state=state,
        reason=reason,
        started=trial.started,
        ended=trial.ended if state else None,
        params=trial.params,
        tags={**told, **trial.tags},
        series={names[0]: reported.series()} if reported.values else {},
        results={names[place]: value for place, value in sorted(trial.values.items()) if place < len(names)},
        directions=dict(zip(names, study.directions, strict=False)),
        left_out=tuple(f"the value of objective {place}" for place in sorted(trial.values) if place >= len(names)),
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_text(path: Path) -> bool:
    try:
        with path.open("rb") as opened:
            return opened.read(16) != DATABASE and opened.seek(0) == 0 and opened.read(1) == b"{"
    except OSError as error:
        raise InputError(f"{shown_where(str(path))} cannot be read", found=error.strerror or str(error)) from None


def _moment(text: object) -> int | None:
    try:
        moment = datetime.fromisoformat(str(text))
        return unix_microseconds(moment if moment.tzinfo else moment.astimezone())
    except (ValueError, OverflowError, OSError):
        return None


def _outside(internal: Any, distribution: Any) -> Any:
    """The value that the training was given, of the number that Optuna keeps."""
    made = json.loads(distribution) if isinstance(distribution, str) else distribution
    attributes = made.get("attributes", {})
    if "choices" in attributes:
        return attributes["choices"][int(internal)]
    return int(internal) if str(made.get("name", "")).startswith("Int") else float(internal)


def _database(path: Path, allowed: str) -> list[_Kept]:
    try:
        with asked_database(path, "the storage of Optuna") as database:
            has_tables(database, _TABLES, shown_where(str(path)), "Optuna", allowed)
            return _studies(database)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the storage of Optuna {shown_where(str(path))} holds something that Optuna did not write",
            found=f"{type(error).__name__}: {error}"[:200],
        ) from None


def _studies(database: sqlite3.Connection) -> list[_Kept]:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return database.execute(sql).fetchall()

    studies = {number: _Kept(str(name)) for number, name in rows("SELECT study_id, study_name FROM studies")}
    for number, direction in rows("SELECT study_id, direction FROM study_directions ORDER BY objective"):
        studies[number].directions.append(_BETTER.get(direction, ""))
    for table in ("study_user_attributes", "study_system_attributes"):
        for number, key, value in rows(f"SELECT study_id, key, value_json FROM {table} ORDER BY key"):  # noqa: S608
            studies[number].attributes[str(key)] = json.loads(value)
    trials: dict[int, _Trial] = {}
    columns = "trial_id, number, study_id, state, datetime_start, datetime_complete"
    for trial_id, number, study_id, state, start, end in rows(f"SELECT {columns} FROM trials"):  # noqa: S608
        trial = trials[trial_id] = _Trial(int(number), str(state), started=_moment(start), ended=_moment(end))
        studies[study_id].trials[trial_id] = trial
    asked = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params ORDER BY param_id"
    for trial_id, name, value, distribution in rows(asked):
        trials[trial_id].params[str(name)] = _outside(value, distribution)
    for trial_id, place, value, kind in rows("SELECT trial_id, objective, value, value_type FROM trial_values"):
        trials[trial_id].values[int(place)] = _number(value, kind)
    asked = "SELECT trial_id, step, intermediate_value, intermediate_value_type FROM trial_intermediate_values"
    for trial_id, step, value, kind in rows(asked):
        trials[trial_id].reported[int(step)] = _number(value, kind)
    for table in ("trial_user_attributes", "trial_system_attributes"):
        for trial_id, key, value in rows(f"SELECT trial_id, key, value_json FROM {table} ORDER BY key"):  # noqa: S608
            trials[trial_id].tags[str(key)] = _as_text(json.loads(value))
    return list(studies.values())


def _number(value: object, kind: object) -> float:
    words = {"INF_POS": math.inf, "INF_NEG": -math.inf, "NAN": math.nan}
    return words[str(kind)] if str(kind) in words else math.nan if value is None else float(str(value))


def _journal(path: Path, tracker: Optuna) -> list[_Kept]:
    studies: dict[int, _Kept] = {}
    trials: dict[int, _Trial] = {}
    shown, removed, number = shown_where(str(path)), 0, 0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                number += 1
                if not line.endswith("\n"):
                    # Somebody is just writing it, or the file was cut there.
                    tracker.pass_over("lines of the journal that are not whole yet", 1)
                    break
                entry = json.loads(line)
                if entry["op_code"] == 0:
                    better = [_BETTER.get(item, "") for item in entry["directions"]]
                    studies[len(studies) + removed] = _Kept(str(entry["study_name"]), better)
                elif entry["op_code"] == 1:
                    del studies[entry["study_id"]]
                    removed += 1
                else:
                    _take(entry, studies, trials)
    except OSError as error:
        raise InputError(f"{shown} cannot be read", found=error.strerror or str(error)) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{shown} is no journal of Optuna", found=f"line {number}: {type(error).__name__}: {error}"[:200]
        ) from None
    tracker.pass_over("studies that were deleted in Optuna", removed)
    return list(studies.values())


def _take(entry: Mapping[str, Any], studies: dict[int, _Kept], trials: dict[int, _Trial]) -> None:
    """One line of a journal: what it changes of a study or a trial."""
    match entry["op_code"]:
        case 2 | 3:
            studies[entry["study_id"]].attributes |= entry.get("user_attr") or entry.get("system_attr") or {}
        case 4:
            study = studies[entry["study_id"]]
            trial = trials[len(trials)] = _Trial(len(study.trials), started=_moment(entry.get("datetime_start")))
            study.trials[len(trials) - 1] = trial
            _begin(trial, entry)
        case 5:
            value = _outside(entry["param_value_internal"], entry["distribution"])
            trials[entry["trial_id"]].params[str(entry["param_name"])] = value
        case 6:
            trial = trials[entry["trial_id"]]
            trial.state = _STATES[int(entry["state"])]
            trial.values |= {place: float(value) for place, value in enumerate(entry.get("values") or [])}
            trial.started = _moment(entry["datetime_start"]) if entry.get("datetime_start") else trial.started
            trial.ended = _moment(entry["datetime_complete"]) if entry.get("datetime_complete") else trial.ended
        case 7:
            trials[entry["trial_id"]].reported[int(entry["step"])] = float(entry["intermediate_value"])
        case 8 | 9:
            given = entry.get("user_attr") or entry.get("system_attr") or {}
            trials[entry["trial_id"]].tags |= {str(key): _as_text(value) for key, value in given.items()}


def _begin(trial: _Trial, entry: Mapping[str, Any]) -> None:
    """A trial that was added whole, with what it was."""
    if "state" not in entry:
        return
    trial.state = _STATES[int(entry["state"])]
    values = entry.get("values") or ([entry["value"]] if entry.get("value") is not None else [])
    trial.values = {place: float(value) for place, value in enumerate(values)}
    trial.ended = _moment(entry["datetime_complete"]) if entry.get("datetime_complete") else None
    made = entry.get("distributions") or {}
    trial.params = {str(name): _outside(value, made[name]) for name, value in (entry.get("params") or {}).items()}
    trial.reported = {int(step): float(value) for step, value in (entry.get("intermediate_values") or {}).items()}
    for given in (entry.get("user_attrs") or {}, entry.get("system_attrs") or {}):
        trial.tags |= {str(key): _as_text(value) for key, value in given.items()}
