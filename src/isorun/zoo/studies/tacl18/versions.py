"""Versions of a framework as a factor (the paper's Table 5): SM-CNN in JAX, an environment of its own for each version.

Values, differences and tests are those of `isorun factors`: over seeds, and over the questions of the test set as in
the paper, both corrected. Initial weights and order come from NumPy. With shared masks so does dropout, and a version
can differ by its arithmetic alone; with own masks JAX draws them, as PyTorch did in the paper, and a version may draw
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.analysis.factors import FactorEffect, FactorEffects
from isorun.analysis.factors.attribution import QUESTION, FactorQuestion, attributed
from isorun.analysis.studies.study_result import analyse_study
from isorun.errors import InputError
from isorun.report import UNKNOWN, Column, Table, count, fixed, p_value
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.zoo.carried import carry_arrays, carry_script
from isorun.zoo.data.answers import AnswerData, AnswerSplit, load_answers
from isorun.zoo.data.made import made_answers, made_vectors
from isorun.zoo.data.presence import require
from isorun.zoo.data.word_vectors import load_word_vectors
from isorun.zoo.generators import hashed_generator
from isorun.zoo.paper import Request, last_attempts
from isorun.zoo.studies.tacl18.design import OWN_MASKS, WORKLOADS, carried_data, planned_studies, study_names
from isorun.zoo.studies.tacl18.measured import METRICS
from isorun.zoo.studies.tacl18.published import FRAMEWORK_BASELINE, FRAMEWORK_SIGNIFICANT, FRAMEWORK_VERSIONS
from isorun.zoo.studies.tacl18.ranking import judgements
from isorun.zoo.studies.tacl18.scales import AMOUNTS, JAX_SCRIPT
from isorun.zoo.studies.tacl18.training.options import PUBLISHED_SEED
from isorun.zoo.studies.tacl18.training.words import (
    Vocabulary,
    encode,
    inverse_frequencies,
    overlap_features,
    vocabulary,
)

__all__ = ["FrameworkVersions", "carry", "framework_sentences", "framework_table", "framework_versions"]

_DECIMALS: Final = 4
_FACTOR: Final = "jax"


def carry(request: Request) -> None:
    """Put the script and the arrays of every data set beside the studies."""
    carry_script(request, "tacl18", Path(__file__).with_name(JAX_SCRIPT))
    amount = AMOUNTS[request.scale]
    for workload in (WORKLOADS[name] for name in amount.version_data):
        name, made = carried_data(workload, request)
        data_set = workload.data.partition("-")[0]
        train = workload.train or amount.trecqa_train
        data = made_answers() if made else load_answers(workload.data, train, require(data_set))
        questions = amount.questions.get(data_set)
        if questions:
            data = replace(data, train=data.train.first_questions(questions))
        carry_arrays(request, "tacl18", name, _arrays(data, made=made))


def _arrays(data: AnswerData, *, made: bool) -> dict[str, Any]:
    """All that is the same in each epoch and for every seed, as `training/tensors.py` makes it."""
    splits = {"train": data.train, "dev": data.dev, "test": data.test}
    idf = inverse_frequencies(splits.values())
    load = made_vectors if made else lambda words: load_word_vectors(require("glove"), words)
    words = vocabulary(data, load, hashed_generator(PUBLISHED_SEED, "words"))
    found = {"table": words.vectors}
    for name, split in splits.items():
        found |= {f"{name}.{field}": values for field, values in _split_arrays(split, words, idf).items()}
    return found


def _split_arrays(split: AnswerSplit, words: Vocabulary, idf: Mapping[str, float]) -> dict[str, Any]:
    judged = judgements([pair.qid for pair in split.pairs], [pair.label for pair in split.pairs])
    question, question_lengths = encode([pair.question for pair in split.pairs], words.rows)
    answer, answer_lengths = encode([pair.answer for pair in split.pairs], words.rows)
    return {
        "question": question.astype(np.int32),
        "question_lengths": question_lengths.astype(np.int32),
        "answer": answer.astype(np.int32),
        "answer_lengths": answer_lengths.astype(np.int32),
        "features": overlap_features(split, idf).astype(np.float32),
        "labels": judged.label.astype(np.int32),
        "asked": judged.question,
        "tie_rank": judged.tie_rank,
        "qids": np.array(judged.qids),
    }


@dataclass(frozen=True, slots=True)
class FrameworkVersions:
    """What the versions did to AP and RR: over seeds, and over questions. why_not: why there is nothing over questions.

    seeds: of the data set and version with the fewest.
    """

    over_seeds: Mapping[str, FactorEffects]
    over_questions: Mapping[str, FactorEffects]
    seeds: int
    why_not: str = ""

    def effects(self, metric: str) -> Iterator[tuple[FactorEffect, FactorEffect | None]]:
        """Every effect over seeds, with the same one over questions where it could be had. metric: "AP" or "RR"."""
        asked = {_key(effect): effect for effect in self._questions(metric)}
        for effect in self.over_seeds[metric].effects:
            yield effect, asked.get(_key(effect))

    def _questions(self, metric: str) -> Sequence[FactorEffect]:
        return self.over_questions[metric].effects if metric in self.over_questions else ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: what `isorun factors --json` says, by metric and unit."""
        return {
            "seeds": {metric: found.to_json() for metric, found in self.over_seeds.items()},
            "questions": {metric: found.to_json() for metric, found in self.over_questions.items()},
            "why_not": self.why_not,
            "published": {
                version: {data: {"ap": score.ap, "rr": score.rr} for data, score in rows.items()}
                for version, rows in FRAMEWORK_VERSIONS.items()
            },
        }


def _key(effect: FactorEffect) -> tuple[str, str]:
    return effect.held.approach, effect.value


def framework_versions(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> FrameworkVersions | None:
    """What the records of this part say; None without a finished run."""
    [name] = study_names("versions", request.scale)
    own = [record for record in last_attempts(records.get(name, ())) if record.state is RunState.FINISHED]
    if not own:
        return None
    [study] = planned_studies(replace(request, only=("versions",), recorded=True))
    over_seeds = {metric: _attributed(study, own, METRICS[metric], None) for metric in METRICS}
    try:
        over_questions = {metric: _attributed(study, own, METRICS[metric], QUESTION) for metric in METRICS}
    except InputError as error:
        return FrameworkVersions(over_seeds, {}, _fewest(own), str(error))
    return FrameworkVersions(over_seeds, over_questions, _fewest(own))


def _fewest(own: Sequence[RunRecord]) -> int:
    seeds: dict[tuple[str, str], set[int | None]] = {}
    for record in own:
        seeds.setdefault((record.cell.approach, record.cell.environment), set()).add(record.cell.seed)
    return min(len(found) for found in seeds.values())


def _attributed(study: Study, records: Sequence[RunRecord], metric: str, unit: str | None) -> FactorEffects:
    assert study.factors is not None
    analysed = analyse_study(study, records)
    judged = next(item for item in analysed.metrics if item.name == metric)
    return attributed(FactorQuestion.of_study(study.factors, analysed, records, judged, unit=unit))


def framework_table(found: FrameworkVersions) -> Table:
    """Table 5: a row a version, ours over seeds and over questions, then the published ones."""
    columns = (
        *(Column(title, key=True) for title in ("data", "version")),
        *(Column(title) for title in ("AP", "difference", "95 % interval")),
        *(Column(title, group="p, corrected") for title in ("seeds", "questions")),
        *(Column(title) for title in ("RR", "moved", "weights")),
    )
    rows = [*_our_rows(found), *_published_rows(found)]
    effects = found.over_seeds["AP"].effects
    notes = (
        f"Ours: JAX, mean over {count(found.seeds, 'seed')}; held against {_FACTOR} {_baseline(found)}.",
        f"Published: PyTorch, one seed, held against {FRAMEWORK_BASELINE}; † p < 0.05 over questions.",
        "p: paired tests over seeds (other seeds) and over questions (these trained models), Holm over our rows.",
        "moved, weights: for how many seeds AP, and the final weights, are others than under the baseline.",
        "own masks: JAX draws those of dropout, as PyTorch did in the paper; else NumPy does, the same for all.",
        *((f"Nothing over questions: {found.why_not}",) if found.why_not else ()),
        *(() if effects else ("No version has runs of the baseline beside it.",)),
    )
    return Table("table-5", "Table 5: version of the framework", columns, tuple(rows), notes)


def _baseline(found: FrameworkVersions) -> str:
    return found.over_seeds["AP"].baseline[_FACTOR]


def _our_rows(found: FrameworkVersions) -> Iterator[tuple[str, ...]]:
    reciprocal = {_key(effect): effect for effect in found.over_seeds["RR"].effects}
    shown: set[str] = set()
    for effect, asked in found.effects("AP"):
        data, other = effect.held.approach, reciprocal[_key(effect)]
        if data not in shown:
            shown.add(data)
            means = (_mean(effect.tested.low), _mean(other.tested.low))
            yield (data, f"{_FACTOR} {effect.baseline}", means[0], *((UNKNOWN,) * 4), means[1], UNKNOWN, UNKNOWN)
        changes, tested = effect.changes, effect.tested
        yield (
            data,
            f"{_FACTOR} {effect.value}",
            _mean(tested.high),
            _difference(tested.difference),
            _interval(tested.interval95),
            _p(effect.p_corrected),
            _p(asked.p_corrected if asked else None),
            _mean(other.tested.high),
            f"{changes.values} of {changes.pairs}",
            f"{changes.weights_changed} of {changes.weights}",
        )


def _published_rows(found: FrameworkVersions) -> Iterator[tuple[str, ...]]:
    datas = dict.fromkeys(effect.held.approach.removesuffix(OWN_MASKS) for effect in found.over_seeds["AP"].effects)
    for data in datas:
        for version, rows in FRAMEWORK_VERSIONS.items():
            score, baseline = rows[data], FRAMEWORK_VERSIONS[FRAMEWORK_BASELINE][data]
            sign = "†" if (version, data, "AP") in FRAMEWORK_SIGNIFICANT else ""
            difference = round(score.value("AP") - baseline.value("AP"), _DECIMALS)
            told = UNKNOWN if version == FRAMEWORK_BASELINE else f"{_difference(difference)}{sign}"
            empty = (UNKNOWN,) * 3
            yield (data, f"published: PyTorch {version}", score.ap, told, *empty, score.rr, UNKNOWN, UNKNOWN)


def _mean(values: Any) -> str:
    return fixed(float(values.mean()), _DECIMALS) if values.size else UNKNOWN


def _difference(value: float | None) -> str:
    return UNKNOWN if value is None else ("0" if value == 0 else f"{value:+.{_DECIMALS}f}")


def _interval(ends: tuple[float, float] | None) -> str:
    return UNKNOWN if ends is None else f"[{ends[0]:.{_DECIMALS}f}, {ends[1]:.{_DECIMALS}f}]"


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else p_value(value)


def framework_sentences(found: FrameworkVersions) -> Iterator[str]:
    """What the versions did, data set by data set; then whether that is what the paper saw."""
    effects = list(found.effects("AP"))
    for data in dict.fromkeys(effect.held.approach for effect, _ in effects):
        yield from _on_data(data, [pair for pair in effects if pair[0].held.approach == data])
    if effects:
        yield _beside_the_paper(effects)


def _on_data(data: str, effects: Sequence[tuple[FactorEffect, FactorEffect | None]]) -> Iterator[str]:
    same = [effect.value for effect, _ in effects if effect.changes.weights and not effect.changes.weights_changed]
    others = [(effect, asked) for effect, asked in effects if effect.value not in same]
    if same:
        first, end = effects[0][0], "ends" if len(same) == 1 else "end"
        yield (
            f"{data}: JAX {_joined(same)} {end} with the same weights as {first.baseline}, bit for bit, for all "
            f"{count(first.changes.weights, 'seed')}."
        )
    for effect, asked in others:
        over = "" if asked is None else f", {_p(asked.p_corrected)} over questions"
        told = "a difference is told" if effect.is_claimed else "no difference is told"
        yield (
            f"{data}: JAX {effect.value} changes AP by {_difference(effect.tested.difference)} on average and by up to "
            f"{_difference_size(effect)} for one seed; {told} over {count(effect.tested.units, 'seed')} "
            f"(p {_p(effect.p_corrected)}{over}, corrected)."
        )


def _difference_size(effect: FactorEffect) -> str:
    return fixed(effect.changes.largest, _DECIMALS)


def _beside_the_paper(effects: Sequence[tuple[FactorEffect, FactorEffect | None]]) -> str:
    """The paper: neighbouring releases give the same numbers, and one release changed them, with p < 0.05."""
    paper = "The paper saw four releases of PyTorch with the same scores, and a fifth with others"
    changed = sorted({effect.value for effect, _ in effects if effect.changes.values})
    kept = sorted({effect.value for effect, _ in effects} - set(changed))
    told = sorted({effect.value for pair in effects for effect in pair if effect is not None and effect.is_claimed})
    if not changed:
        return f"{paper}. Not as published: here no version changes any score."
    seen = f"here {_joined(kept)} {_keep(kept)}, {_joined(changed)} not" if kept else "here every version changes some"
    seen = f"{'As published' if kept else 'In part as published'} that versions may change scores: {seen}"
    size = max(effect.changes.largest for effect, _ in effects)
    most = f"by up to {fixed(size, _DECIMALS)} AP for one seed"
    if told:
        return f"{paper}, at p < 0.05. {seen} ({most}); a difference is told of {_joined(told)}."
    return (
        f"{paper}, at p < 0.05. {seen} ({most}). Not as published: no version is told to be better or worse, neither "
        "over seeds nor over questions."
    )


def _keep(versions: Sequence[str]) -> str:
    return f"{'keeps' if len(versions) == 1 else 'keep'} every score"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
