"""Names of metrics: which words make one, which never do, and how a printed phrase becomes a name.

A name counts by itself when one of its words is a metric word. Any other name counts only in company: on a line that
also has an epoch, a step or a metric. Words for time, memory and settings never count.
"""

from __future__ import annotations

import functools
import re
from typing import Final

__all__ = [
    "SPLITS",
    "VOCABULARY",
    "has_split",
    "is_metric",
    "is_never",
    "keeps_no_prefix",
    "name_of",
    "split_in",
    "word_set",
]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for lists that read better as prose."""
    return frozenset(text.split())


SPLITS: Final = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "validating": "val", "validate": "val", "dev": "val",
    "test": "test", "testing": "test",
    "eval": "eval", "evaluation": "eval", "evaluate": "eval", "evaluating": "eval",
}  # fmt: skip

_METRICS: Final = word_set(
    """loss losses acc accuracy accuracies err error errors score f1 f2 fbeta fscore auc auroc auprc aucpr roc ap
    map mar precision recall mse rmse mae mape smape nll ce bce kl kld elbo perplexity ppl bleu sacrebleu rouge
    rougel rougelsum meteor wer cer iou miou dice jaccard r2 r² psnr ssim lpips fid reward rewards return kappa mcc corr
    correlation pearson spearman pearsonr spearmanr specificity sensitivity ece brier logloss entropy ndcg mrr hit hits
    rew rmsle msle mase crps pinball loglik llf aic bic rsquared rsqu
    bpc bpb bits top metric exact likelihood correct objective fitness residual tpr fpr tnr fnr silhouette
    success successes winrate regret"""
)
# "success_rate" and "hit rate" tell how a training went; "learning_rate" and "dropout rate" how it was set.
_RATES: Final = frozenset(["rate", "ratio"])
_RATE_OF_RESULTS: Final = word_set(
    """success win hit pass error failure miss detection recognition solve completion acceptance rejection alarm
    false true positive negative conversion click correct resolve coverage retrieval catch"""
)
_METRIC_ENDINGS: Final = ("loss", "acc", "accuracy", "error", "score", "perplexity", "precision", "recall", "auc")
_QUALIFIERS: Final = word_set(
    """average avg mean median total overall final best running cross log macro micro weighted balanced binary
    categorical squared absolute root set top ema mean-squared epoch"""
)
VOCABULARY: Final = _METRICS | _QUALIFIERS | frozenset(SPLITS)
_LEADING: Final = frozenset(["best", "final"])
_FILLERS: Final = frozenset(["average", "avg", "the", "set", "current", "a", "an", "new"])

_NEVER: Final = word_set(
    """time times eta etas elapsed remaining runtime duration dur second seconds sec secs ms msec minutes min hours
    speed throughput fps memory mem ram vram gpu cpu size weight weights coef coefficient lambda smoothing scale
    patience threshold fn func function type date timestamp pid port version seed wait
    initscore pavg df ci"""
)
_NEVER_ALONE: Final = word_set(
    """epoch epochs ep step steps iter iters iteration iterations it round update batch batches sample samples image
    images example examples num n rank device devices cuda node world params parameters count counter total line data
    worker workers thread threads momentum decay dropout beta betas beta1 beta2 eps epsilon gamma alpha warmup hidden
    layer layers dim heads width height depth kernel stride padding classes channels length args exit code status job
    run trial fold folds v num_workers temperature stage level index idx id year day month tol max instances
    observations"""
)
_NO_PREFIX: Final = frozenset(["lr", "learning_rate", "lrate", "grad_norm", "gradnorm", "grad", "wd", "weight_decay"])
_PARTS = re.compile(r"[^a-z0-9²]+")
_WORDS = re.compile(r"[\w./\-]+")


@functools.lru_cache(maxsize=4096)
def is_metric(name: str) -> bool:
    """Whether a word of the name says that it is a metric; settings named after one ("loss_weight") are not."""
    parts = _parts(name)
    return not is_never(name) and (any(map(_is_metric_word, parts)) or _is_rate_of_results(parts))


@functools.lru_cache(maxsize=4096)
def is_never(name: str) -> bool:
    """Whether the name stands for time, memory, speed, a counter or a setting."""
    parts = _parts(name)
    if not parts or any(part in _NEVER for part in parts):
        return True
    return not any(_is_metric_word(part) for part in parts) and any(part in _NEVER_ALONE for part in parts)


def keeps_no_prefix(name: str) -> bool:
    """Whether the name belongs to the whole training, not to one split of the data ("lr")."""
    return name in _NO_PREFIX


def split_in(text: str) -> str:
    """The last word in the text that names a split of the data, as train, val, test or eval; "" without one.

    Only words that stand alone: `val_loss` says something about itself, not about the names that follow it.
    """
    found = [SPLITS[word] for word in _WORDS.findall(text.lower()) if word in SPLITS]
    return found[-1] if found else ""


@functools.lru_cache(maxsize=4096)
def has_split(name: str) -> bool:
    """Whether the name already says which split of the data it belongs to (`val_loss`, `eval/acc`)."""
    return any(part in SPLITS for part in _parts(name))


def name_of(words: list[str]) -> str:
    """The name a printed phrase stands for.

    A single word is kept as written, in lower case. In a phrase fillers go ("Average loss" is `loss`), the split
    comes first in its short form ("Accuracy Validation" is `val_accuracy`), only after "best" and "final", and words
    are joined by "_".
    """
    lowered = [word.lower() for word in words]
    if len(lowered) == 1:
        return lowered[0]
    kept = [word for word in lowered if word not in _FILLERS]
    lead = [word for word in kept if word in _LEADING]
    splits = [SPLITS[word] for word in kept if word in SPLITS]
    rest = [word for word in kept if word not in SPLITS and word not in _LEADING]
    return "_".join([*lead, *splits[:1], *rest])


def _is_rate_of_results(parts: list[str]) -> bool:
    """Whether the name is a rate that tells how a training went, or "pass@1"."""
    if parts[0] == "pass" and parts[-1].isdigit():
        return True
    return parts[-1] in _RATES and not _RATE_OF_RESULTS.isdisjoint(parts[:-1])


def _is_metric_word(part: str) -> bool:
    return part in _METRICS or part.rstrip("0123456789") in _METRICS or part.endswith(_METRIC_ENDINGS)


def _parts(name: str) -> list[str]:
    return [part for part in _PARTS.split(name.lower().replace("r-squ", "rsqu")) if part]
