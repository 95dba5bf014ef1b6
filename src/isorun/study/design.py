"""The declared design of a study: what is compared, where, at which levels, how often, and how it is judged.

A study is declared in Python, in a TOML file, or by the command typed at the prompt, which is a study too, so that it
can be resumed, extended and reported on. The document of a study is what it can be declared from again; cells that a
study already had stay the same cells.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import StudyError, known_names
from isorun.study import (
    Approach,
    Config,
    Distribution,
    Environment,
    Metric,
    Policy,
    Selection,
    Sources,
    parsing,
    recordable,
)
from isorun.study.cells import MOST_CELLS, Level, is_cell_id, recorded_command, withheld_hashes
from isorun.study.parsing import as_boolean, shown
from isorun.worker.redaction import redacted_argv

if TYPE_CHECKING:
    from isorun.study.factors import FactorDesign
    from isorun.study.imported import ImportedRuns
    from isorun.study.searches import Proposed, SearchDesign

__all__ = [
    "KEPT_NAMES",
    "Approach",
    "Config",
    "Environment",
    "Metric",
    "Policy",
    "Selection",
    "Sources",
    "Study",
    "adhoc_study",
    "can_be_kept",
    "changed",
    "document_of",
    "document_without_secrets",
    "extended",
    "extends",
    "imported_study",
    "kept_study",
    "load_study",
    "only_looked_at",
    "study_from_document",
    "together",
    "with_key",
    "with_proposed",
]

_UNNAMED: Final = "unnamed"
KEYS: Final = (
    "name",
    "approaches",
    "configs",
    "environments",
    "factors",
    "levels",
    "seeds",
    "repeats",
    "take_seeds",
    "metrics",
    "selections",
    "sources",
    "policy",
    "search",
    "searches",
)


@dataclass(frozen=True, slots=True)
class AskedRuns:
    """What one call asked of a command: runs at a level, with these seeds, so often each."""

    level: Level
    seeds: tuple[int, ...]
    repeats: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the keys of a study file."""
        return {"levels": [str(self.level)], "seeds": list(self.seeds), "repeats": self.repeats}


_SHOWN: Final[dict[str, Callable[[Any], str]]] = {}


def show_studies_with(text: Callable[[Any], str], html: Callable[[Any], str]) -> None:
    """From now on studies are shown by these, which lie above."""
    _SHOWN.update(text=text, html=html)


@dataclass(frozen=True, init=False, slots=True, repr=False)
class Study:
    """A declared design: approaches x configs x environments x levels x seeds x repeats.

    Every argument takes what the study file takes for the table of the same name, or the ready-made parts:

        Study("digits", approaches={"lenet": "python train.py --lr {config.lr}"},
              configs={"slow": {"lr": 0.01}}, levels=["default", "fixed-seed"], repeats=8)

    An approach may also be a module-level Python function. folder: where relative paths start and where the default
    store lies. withheld: by approach and environment, the keyed hashes of what is in no record (`with_key`).
    kept: whether commands and variables are those that a store kept, without what is withheld (`kept_study`).
    known_as: of a kept study that a value was taken out of, the ids that its cells and searches had, by those of today.
    asked: of a command that was run in several ways (`together`), the runs of each way; otherwise every level has all.
    take_seeds: whether constants that the training seeds with follow the run's seed instead.
    searches: for configs, by name: the study's cells are then those that its searches proposed so far (`proposed`,
    which the store keeps). The only one is given as `search`, and has no name.
    factors: a design that its environments were made from; None where they were declared one by one.
    imported: of a study whose runs come from a tracker, these runs: its cells are theirs, and no others can be made.
    file: the study file that declares it; empty where none does.
    """

    name: str
    approaches: Mapping[str, Approach]
    configs: Mapping[str, Config]
    environments: Mapping[str, Environment]
    levels: tuple[Level, ...]
    seeds: tuple[int, ...]
    repeats: int
    take_seeds: bool
    metrics: Mapping[str, Metric]
    selections: Mapping[str, Selection]
    policy: Policy
    searches: Mapping[str, SearchDesign]
    factors: FactorDesign | None
    folder: str = field(compare=False)
    withheld: Mapping[str, Mapping[str, str]] = field(compare=False, repr=False)
    kept: bool = field(compare=False, repr=False)
    known_as: Mapping[str, str] = field(compare=False, repr=False)
    asked: tuple[AskedRuns, ...] = field(compare=False, repr=False)
    proposed: tuple[Proposed, ...] = field(compare=False, repr=False)
    imported: ImportedRuns | None = field(compare=False, repr=False)
    file: str = field(compare=False, repr=False)

    def __repr__(self) -> str:
        """What it is about, without what may be secret: a notebook keeps it in its file."""
        parts = (self.approaches, self.configs, self.environments, self.levels, self.seeds)
        named = zip(("approaches", "configs", "environments", "levels", "seeds"), map(len, parts), strict=True)
        return (
            f"<Study {self.name!r}: {', '.join(f'{number} {name}' for name, number in named)}, repeats {self.repeats}>"
        )

    def __str__(self) -> str:
        """The parts of the design, a line each."""
        return _SHOWN["text"](self) if _SHOWN else repr(self)

    def _repr_html_(self) -> str | None:
        return _SHOWN["html"](self) if _SHOWN else None

    def __init__(
        self,
        name: str,
        *,
        approaches: Mapping[str, Any],
        configs: Mapping[str, Any] | None = None,
        environments: Mapping[str, Any] | None = None,
        factors: Mapping[str, Any] | None = None,
        levels: Any = (Level.DEFAULT,),
        seeds: Any = (1,),
        repeats: int = 1,
        take_seeds: bool = False,
        metrics: Mapping[str, Any] | None = None,
        selections: Mapping[str, Any] | None = None,
        sources: Any = None,
        policy: Any = None,
        search: Any = None,
        searches: Mapping[str, Any] | None = None,
        folder: str | Path = ".",
    ) -> None:
        if not isinstance(folder, (str, Path)):
            raise StudyError("folder: it must be a path", found=shown(folder))
        default_sources = parsing.sources(sources, "sources")
        parsed = {
            "name": parsing.study_name(name),
            "approaches": parsing.approaches(approaches, default_sources, Path(folder)),
            "configs": parsing.configs(configs),
            "environments": parsing.environments(environments, Path(folder)),
            "levels": parsing.levels(levels),
            "seeds": parsing.seeds(seeds),
            "repeats": parsing.repeats(repeats),
            "take_seeds": as_boolean(take_seeds, "take_seeds"),
            "metrics": parsing.metrics(metrics),
            "selections": parsing.selections(selections),
            "policy": parsing.policy(policy),
            "searches": {},
            "factors": None,
            "folder": str(folder),
            "withheld": {},
            "kept": False,
            "known_as": {},
            "asked": (),
            "proposed": (),
            "imported": None,
            "file": "",
        }
        for key, value in parsed.items():
            object.__setattr__(self, key, value)
        if factors is not None:
            self._declare_factors(factors)
        if search is None and searches is None:
            parsing.check_together(self.approaches, self.configs)
        else:
            self._declare_searches(search, searches)

    def _declare_factors(self, table: Any) -> None:
        from isorun.study.factors import factor_design  # noqa: PLC0415 - most studies have none

        design = factor_design(table, self.environments, Path(self.folder))
        object.__setattr__(self, "factors", design)
        object.__setattr__(self, "environments", design.environments())

    def _declare_searches(self, one: Any, several: Any) -> None:
        from isorun.study import searches  # noqa: PLC0415 - most studies have none

        declared = searches.searches(one, several, self.metrics, tuple(self.approaches), tuple(self.configs))
        object.__setattr__(self, "searches", declared)
        searches.check_searches(self)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """The study declared in a TOML file."""
        if not isinstance(path, (str, Path)):
            raise StudyError("that is no study file", found=shown(path), allowed="its path")
        return load_study(Path(path))


def load_study(path: Path) -> Study:
    """The study declared in a TOML file; its folder is the file's folder."""
    document = _read(path)
    try:
        return _with(study_from_document(document, path.parent, default_name=path.stem), file=str(path.absolute()))
    except StudyError as error:
        what = f"{path}: {error.what}"
        raise StudyError(what, found=error.found, allowed=error.allowed, hint=error.hint) from None


def study_from_document(document: dict[str, Any], folder: Path, default_name: str) -> Study:
    """The study that a parsed document declares."""
    for key in document:
        if key not in KEYS:
            raise StudyError(f"there is no key {key!r} in a study", allowed=known_names(key, KEYS))
    if "approaches" not in document:
        hint = 'add [approaches.NAME] with command = "python train.py"'
        raise StudyError("the study has no approaches, so there is nothing to run", hint=hint)
    arguments = {"name": default_name, **document}
    return Study(arguments.pop("name"), folder=folder, **arguments)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"there is no study file {path}", hint="isorun run --help shows how to start one") from None
    except IsADirectoryError:
        raise StudyError(
            f"{path} is a folder, not a study file", hint=f"name the file: {path / 'study.toml'}"
        ) from None
    except UnicodeDecodeError as error:
        hint = f"a package is called NAME.isorun; isorun verify {path} says whether it is one"
        raise StudyError(f"{path} is no study file, which is a text", found=f"{error.reason}", hint=hint) from None
    except OSError as error:
        raise StudyError(f"the study file {path} cannot be read: {error}") from None
    import tomllib  # noqa: PLC0415  most commands read no study file

    try:
        return tomllib.loads(text)
    except ValueError as error:  # besides TOMLDecodeError also numbers with more digits than Python reads
        script = path.suffix in {".py", ".sh"}
        hint = f"to run it: isorun run -- {'python' if path.suffix == '.py' else 'bash'} {path}" if script else ""
        raise StudyError(f"{path} is not valid TOML: {error}", hint=hint) from None
    except RecursionError:
        raise StudyError(f"{path} is not a usable study file: it is nested too deeply") from None


def adhoc_study(
    commands: Sequence[Sequence[str]],
    *,
    name: str | None = None,
    levels: Sequence[str] = (),
    seeds: Sequence[int] = (),
    repeats: int = 1,
    take_seeds: bool = False,
    environment: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    sources: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    folder: Path,
) -> Study:
    """A study of one command, or of several to compare; the same ones get the same name, so that it can be extended."""
    for command in commands:
        if not command or not command[0].strip():
            hint = "isorun run -n 16 -- python train.py"
            raise StudyError("the command is empty, so there is nothing to run", found=shown(list(command)), hint=hint)
    if len(set(map(tuple, commands))) < len(commands):
        found = " ".join(redacted_argv(commands[0], {}))
        raise StudyError("the commands to compare are the same", found=found, hint="change an option of one of them")
    approaches = _approach_names([redacted_argv(command, {}) for command in commands])
    study = Study(
        _UNNAMED if name is None else _checked(name),
        approaches={approach: list(command) for approach, command in zip(approaches, commands, strict=True)},
        environments={"default": environment or {}},
        levels=list(levels) or [Level.DEFAULT],
        seeds=list(seeds) or [1],
        repeats=repeats,
        take_seeds=take_seeds,
        metrics=metrics,
        sources=sources,
        policy=policy,
        folder=folder,
    )
    return study if name is not None else _with(study, name=_made_name(study))


def _made_name(study: Study) -> str:
    """A name for a study that was given none: what it is about, and a hash of what its cells share.

    So the same command gets the same name, whatever levels, seeds and repeats it is run with. What is withheld is in
    the hash by its keyed hash alone: nobody can guess a secret from the name.
    """
    shared = json.dumps(_shared(study), sort_keys=True).encode(errors="surrogateescape")
    told = "-vs-".join(map(_file_name, study.approaches))[:60]
    return f"{told}-{hashlib.sha256(shared).hexdigest()[:12]}"


def _shared(study: Study) -> dict[str, Any]:
    """What all cells of an ad hoc study have in common."""
    return {
        "commands": {name: list(recorded_command(study, item)) for name, item in study.approaches.items()},
        "configs": {name: _config(item) for name, item in study.configs.items()},
        "environments": {name: item.content() for name, item in study.environments.items()},
        "take_seeds": study.take_seeds,
        "withheld": _hashes(study),
    }


def extends(study: Study, kept: Study) -> bool:
    """Whether it differs from a kept study in nothing but levels, seeds, repeats, and how runs are judged."""
    return _shared(study) == _shared(kept)


def together(study: Study, kept: Study) -> Study:
    """The study with what was asked of the kept one beside its own: nothing of it is lost, and nothing is added."""
    both = changed(
        study,
        levels=list(dict.fromkeys(map(str, (*kept.levels, *study.levels)))),
        seeds=list(dict.fromkeys((*kept.seeds, *study.seeds))),
        repeats=max(kept.repeats, study.repeats),
        metrics=document_of(study)["metrics"] or document_of(kept)["metrics"],
    )
    return _with(both, asked=tuple(dict.fromkeys((*_asked_of(kept), *_asked_of(study)))))


def _asked_of(study: Study) -> tuple[AskedRuns, ...]:
    return study.asked or tuple(AskedRuns(level, study.seeds, study.repeats) for level in study.levels)


def _approach_names(commands: Sequence[Sequence[str]]) -> list[str]:
    """A name for each: the scripts' where they differ, else the script's with the words that only this one has.

    Commands that differ in nothing but what is withheld are numbered.
    """
    names = [_approach_name(command) for command in commands]
    if len(set(names)) == len(names):
        return names
    told = [f"{name} {_own_words(command, commands)}".strip() for name, command in zip(names, commands, strict=True)]
    if len({name[:100] for name in told}) < len(told):
        return [f"{name[:96]} {number}" for number, name in enumerate(told, start=1)]
    return [name[:100] for name in told]


def _own_words(command: Sequence[str], commands: Sequence[Sequence[str]]) -> str:
    """The words that not all commands have, each value with the option it belongs to."""
    shared = set.intersection(*(set(other) for other in commands))
    own = [place for place, word in enumerate(command) if word not in shared]
    places = {
        before for place in own for before in (place - 1, place) if before == place or _is_option(command, before)
    }
    return " ".join(command[place] for place in sorted(places))


def _is_option(command: Sequence[str], place: int) -> bool:
    return place >= 0 and command[place].startswith("-") and "=" not in command[place]


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


def _approach_name(command: Sequence[str]) -> str:
    """What a person would call it: the script's or module's name, else the program's."""
    words = [word for word in command if not word.startswith("-")]
    script = next((word for word in words if word.endswith(".py")), None)
    if script is None and "-m" in command[:-1]:
        script = command[command.index("-m") + 1]
    stem = Path((script or (words[0] if words else "command")).split()[-1]).name.removesuffix(".py")
    return re.sub(r"[^\w.-]", "_", stem) or "command"


KEPT_NAMES: Final = "letters, digits, '_', '-' and '.', at most 80 of them"


def can_be_kept(name: str) -> bool:
    """Whether a study of this name can be kept under it: names of study files may be longer, or have blanks."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]{0,79}", name) is not None


def _checked(name: str) -> str:
    if not can_be_kept(name):
        raise StudyError(
            "that is not a usable name for an ad hoc study",
            found=repr(name),
            allowed=KEPT_NAMES,
        )
    return name


def document_of(study: Study) -> dict[str, Any]:
    """Plain JSON with the keys of a study file; `study_from_document` makes an equal study of it."""
    return {
        "name": study.name,
        "approaches": {name: _approach(item) for name, item in study.approaches.items()},
        "configs": {name: _config(item) for name, item in study.configs.items()},
        **_environments(study),
        "levels": [str(level) for level in study.levels],
        "seeds": list(study.seeds),
        "repeats": study.repeats,
        **({"take_seeds": True} if study.take_seeds else {}),
        "metrics": {name: _given(direction=m.direction or None, chance=m.chance) for name, m in study.metrics.items()},
        "selections": {name: {"metric": s.metric, "direction": s.direction} for name, s in study.selections.items()},
        "policy": _given(
            time_limit=study.policy.time_limit_seconds,
            on_failure=study.policy.on_failure,
            retries=study.policy.retries,
            isolate=study.policy.isolate or None,
        ),
        **_searches(study),
    }


def _environments(study: Study) -> dict[str, Any]:
    """The environments; of a design with factors what it makes them from."""
    if study.factors is None:
        return {"environments": {name: item.to_json() for name, item in study.environments.items()}}
    base = study.factors.base
    return {"environments": {base.name: base.to_json()}, "factors": study.factors.to_json()}


def _searches(study: Study) -> dict[str, Any]:
    """The searches as a study file says them; nothing where there is none."""
    tables = {name: design.to_json() for name, design in study.searches.items()}
    if "" in tables:
        return {"search": tables[""]}
    return {"searches": tables} if tables else {}


def with_proposed(study: Study, proposed: Sequence[Proposed]) -> Study:
    """The study with the trainings that its searches proposed so far."""
    return _with(study, proposed=tuple(proposed))


def with_key(study: Study, key: bytes) -> Study:
    """The study with the hashes of what its records will not hold, under the key of the store it is carried out with.

    All cells of it then have the ids that the store knows, and a name that was made from its content is made again.
    """
    keyed = _with(study, withheld=withheld_hashes(study, key))
    return _with(keyed, name=_made_name(keyed)) if study.name == _made_name(study) else keyed


def document_without_secrets(study: Study) -> dict[str, Any]:
    """The same document to be kept, without values that look secret and with variables as a record shows them.

    It has the hashes of what was withheld, if the study was given a key, so that its cells have the same ids.
    """
    document = document_of(study)
    for name, approach in document["approaches"].items():
        if "command" in approach:
            approach["command"] = list(recorded_command(study, study.approaches[name]))
    for environment in document["environments"].values():
        environment["env"] = {name: recordable(name, value) for name, value in environment["env"].items()}
    hashes, asked = _hashes(study), [item.to_json() for item in study.asked]
    imported = study.imported.to_json() if study.imported else {}
    also = {"withheld": hashes, "asked": asked, "known_as": dict(study.known_as), "imported": imported}
    return {**document, **{name: value for name, value in also.items() if value}}


def _hashes(study: Study) -> dict[str, dict[str, str]]:
    """The keyed hashes of those approaches of which something is withheld."""
    return {name: dict(items) for name, items in study.withheld.items() if items}


def kept_study(document: dict[str, Any], folder: Path, name: str) -> Study:
    """The study that `document_without_secrets` was made of, as far as it was kept."""
    hashes = document.get("withheld", {})
    if not isinstance(hashes, dict) or not all(isinstance(items, dict) for items in hashes.values()):
        raise StudyError("withheld: it is no table of hashes", found=repr(hashes))
    known_as = _known_as(document)
    own = {"withheld", "asked", "known_as", "file", "code", "imported"}
    declared = {key: value for key, value in document.items() if key not in own}
    study = _with(study_from_document(declared, folder, name), kept=True)
    kept = _with(study, withheld=hashes, asked=tuple(_kept_asked(document, study)), known_as=known_as)
    if "imported" not in document:
        return kept
    from isorun.study.imported import imported_runs  # noqa: PLC0415 - most studies have none

    return _with(kept, imported=imported_runs(document["imported"]))


def _known_as(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The ids that cells and searches had, by those of today: folders are called after them, so nothing else is one."""
    known_as: Mapping[str, str] = parsing.as_mapping(document.get("known_as", {}), "known_as")
    for known in known_as.values():
        if not is_cell_id(known):
            raise StudyError("known_as: that is no id of a cell", found=f"{known!r:.60}", allowed="16 hex digits")
    return known_as


def _kept_asked(document: Mapping[str, Any], study: Study) -> Iterator[AskedRuns]:
    """What was asked in each way. A package says each in a few bytes: no study is made of it, and seeds have an end."""
    left = MOST_CELLS
    for item in parsing.as_list(document.get("asked", []), "asked", "a list of what was asked"):
        said = parsing.as_table(item, "asked", ("levels", "seeds", "repeats"))
        counted = said.get("seeds", 0)
        left -= counted if isinstance(counted, int) else 0
        if left < 0:
            raise StudyError("asked: there are too many seeds", allowed=f"at most {MOST_CELLS:,}")
        levels = parsing.levels(said["levels"]) if "levels" in said else study.levels
        seeds = parsing.seeds(said["seeds"]) if "seeds" in said else study.seeds
        repeats = parsing.repeats(said["repeats"]) if "repeats" in said else study.repeats
        yield from (AskedRuns(level, seeds, repeats) for level in levels)


def imported_study(name: str, imported: ImportedRuns, metrics: Mapping[str, Any], folder: Path) -> Study:
    """The study that runs of a tracker make up."""
    approaches = dict.fromkeys(run.approach for run in imported.runs)
    study = Study(
        _checked(name),
        approaches={approach: ["imported", imported.tracker] for approach in approaches},
        levels=list(dict.fromkeys(str(run.level) for run in imported.runs)) or [Level.DEFAULT],
        metrics=metrics,
        folder=folder,
    )
    return _with(study, imported=imported, kept=True)


def extended(study: Study, level: Level, units: int, *, of_one_seed: bool = False) -> Study:
    """The study with at least so many independent units a group at this level.

    At level default every run is one, and repeats grow. Where seeds are fixed a new seed is a new unit; only a
    question about one seed alone gets more repeats of it.
    """
    if level is Level.DEFAULT or of_one_seed:
        needed = -(-units // len(study.seeds))
        return changed(study, repeats=max(study.repeats, needed))
    return changed(study, seeds=_more_seeds(study.seeds, units))


def changed(study: Study, **changes: object) -> Study:
    """The study with some keys of its document changed; everything is checked as in a study file."""
    made = study_from_document({**document_of(study), **changes}, Path(study.folder), study.name)
    made = _with(made, file=study.file)
    same = not {"approaches", "environments"} & set(changes)
    own = {"withheld": study.withheld, "kept": study.kept, "known_as": study.known_as, "imported": study.imported}
    return _with(made, **own) if same else made


def only_looked_at(study: Study, asked: str) -> Study:
    """The study whose trainings the worker looks at and ends: cells of their own, which nobody takes for whole ones."""
    return _with(study, environments={name: replace(item, look=asked) for name, item in study.environments.items()})


def _with(study: Study, **checked: Any) -> Study:
    """The study with fields that need no check any more."""
    made = copy.copy(study)
    for name, value in checked.items():
        object.__setattr__(made, name, value)
    return made


def _more_seeds(seeds: tuple[int, ...], count: int) -> list[int]:
    more = list(seeds)
    candidate = max(seeds)
    while len(more) < count:
        candidate += 1
        more.append(candidate)
    return more


def _approach(approach: Approach) -> dict[str, Any]:
    what = {"function": approach.command[1]} if approach.is_function else {"command": list(approach.command)}
    return {**what, "configs": list(approach.configs), "sources": approach.sources.to_json()}


def _config(config: Config) -> dict[str, Any]:
    drawn = {name: _distribution(item) for name, item in config.distributions.items()}
    return {**config.values, **drawn, "draws": config.draws, "draw_seed": config.draw_seed}


def _distribution(item: Distribution) -> dict[str, Any]:
    return {item.kind: list(item.options) if item.kind == "choice" else [item.first, item.second]}


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
