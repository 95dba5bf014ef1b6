"""The metrics of libraries that say themselves which direction is better: their answer, or none, but never the other.

`library_metrics.tsv` holds what scikit-learn (a scorer is always higher), torchmetrics (`higher_is_better`),
CatBoost, Keras (`_direction`), River (`bigger_is_better`), PyKEEN (`increasing`), LightGBM (`is_higher_better`) and
XGBoost (what its early stopping maximises; `ams` and `interval-regression-accuracy`, which that list lacks, by their
definition) answered, in the versions named in `libraries/README.md`.
"""

import csv
from collections import Counter
from pathlib import Path

from isorun.analysis.evidence.judged import direction_of

with (Path(__file__).parent / "library_metrics.tsv").open(encoding="utf-8") as file:
    ANSWERS = [tuple(row) for row in csv.reader(file, delimiter="\t")]

# The library contradicts what the metric is defined to be, and its own manual.
MISTAKEN = {
    ("torchmetrics", "DaviesBouldinScore"): "0 is the best value (Davies and Bouldin, 1979)",
    ("torchmetrics", "SpectralDistortionIndex"): "0 is the best value (Alparone et al., 2008)",
    ("torchmetrics", "WordInfoPreserved"): "1 is the best value, as 1 minus the information lost",
    ("LightGBM", "r2"): "its Python side knows the direction of some names only, and calls all others lower",
}

HUGGING_FACE_EVALUATE = {
    "lower": "brier_score cer mae mape mase mse perplexity smape ter wer",
    "higher": """accuracy bertscore bleu bleurt chrf comet exact_match f1 google_bleu matthews_correlation mauve
    mean_iou
        meteor pearsonr precision r_squared recall roc_auc rouge sacrebleu sari spearmanr""",
    "": """character charcut_mt code_eval competition_math confusion_matrix coval cuad frugalscore glue indic_glue
        mahalanobis nist_mt poseval rl_reliability seqeval squad squad_v2 super_glue trec_eval wiki_split xnli
        xtreme_s""",
}


def outcome(name: str, says: str) -> str:
    told = direction_of(name).better
    return "unknown" if not told else ("right" if told == says else "wrong")


def test_no_library_is_contradicted_unless_it_contradicts_the_definition():
    wrong = {(library, name) for library, name, says in ANSWERS if outcome(name, says) == "wrong"}
    assert wrong == set(MISTAKEN)


def test_how_many_are_known_is_what_the_documentation_says():
    counts: dict[str, Counter[str]] = {}
    for library, name, says in ANSWERS:
        counts.setdefault(library, Counter())[outcome(name, says)] += 1
    assert {library: (count["right"], count["unknown"]) for library, count in counts.items()} == {
        "scikit-learn scorers": (58, 0),
        "torchmetrics": (125, 12),
        "CatBoost": (56, 8),
        "Keras": (38, 0),
        "River": (39, 5),
        "PyKEEN": (27, 19),
        "LightGBM": (29, 2),
        "XGBoost": (30, 0),
    }
    written = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text()
    total = sum(counts.values(), Counter[str]())
    assert f"{len(ANSWERS)} names: {total['right']} as the library says, {total['unknown']} unknown" in written


def test_the_names_of_hugging_face_evaluate():
    for better, names in HUGGING_FACE_EVALUATE.items():
        assert {name: direction_of(name).better for name in names.split()} == dict.fromkeys(names.split(), better)
