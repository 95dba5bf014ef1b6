"""What one line of output says: some named values, and where in the training they belong.

Trainings print lines of a few shapes, millions of times. A `Template` is what was learned from one of them: the same
line with other digits says the same things with other numbers, which stand at the same places.

Names: a name counts by itself when one of its words is a metric word. Any other name counts only in company: on a line
that also has an epoch, a step or a metric. Words for time, memory and settings never count.

Numbers: times, dates, versions, addresses and numbers with a unit are recognised first, so that no part of them can be
taken for a value. A percent sign makes a fraction: "97.4%" is 0.974, and "9908/10000" is 0.9908. Commas part thousands
where nothing else is possible, as in "12,345,678" and "1,234.5"; "0,845" and "1,234" are not read, since the same
output may write a loss of 0.845 and one of 1.234 that way. "step 1,000/10,000" tells where the training is.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = [
    "COUNT",
    "DOUBLED",
    "EPOCH",
    "SEVERAL_TRIALS",
    "SHOWN_NUMBER",
    "SPLITS",
    "STEP",
    "TOKEN",
    "TOTAL",
    "UNCLEAR_COMMA",
    "VOCABULARY",
    "LeftOut",
    "MetricValue",
    "Row",
    "Span",
    "Template",
    "count_of",
    "differ",
    "fraction_of",
    "has_split",
    "has_unclear_comma",
    "is_a_time",
    "is_metric",
    "is_never",
    "keeps_no_prefix",
    "line_shape",
    "name_of",
    "read_number",
    "split_in",
    "unwrapped",
    "word_set",
    "written_number",
]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for lists that read better as prose."""
    return frozenset(text.split())


SPLITS: Final = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "validating": "val", "validate": "val", "vali": "val",
    "dev": "val",
    "test": "test", "testing": "test",
    "eval": "eval", "evaluation": "eval", "evaluate": "eval", "evaluating": "eval",
}  # fmt: skip

_METRICS: Final = word_set(
    """loss losses acc accuracy accuracies err error errors score f1 f2 fbeta fscore auc auroc auprc aucpr roc ap
    map mar precision recall mse rmse mae mape smape nll ce bce kl kld elbo perplexity ppl bleu sacrebleu chrf rouge
    rougel rougelsum meteor wer cer iou miou dice jaccard r2 r² psnr ssim lpips fid reward rewards return kappa mcc corr
    correlation pearson spearman pearsonr spearmanr specificity sensitivity ece brier logloss entropy ndcg mrr hit hits
    rew rmsle msle mase crps pinball loglik llf aic bic rsquared rsqu
    bpc bpb bits top metric exact likelihood correct objective fitness residual tpr fpr tnr fnr silhouette
    success successes winrate regret inertia concordance determination homogeneity completeness nmi rae rse"""
)
# Scores of clusterings, whose last word alone says how something was set or counted.
_CLUSTERING: Final = frozenset(
    ["v-measure", "v_measure", "rand_index", "adjusted_rand_index", "mutual_information", "adjusted_mutual_information",
     "normalized_mutual_information", "silhouette_coefficient", "davies-bouldin_index", "davies_bouldin_index",
     "calinski-harabasz_index", "calinski_harabasz_index"]
)  # fmt: skip
# "success_rate" and "hit rate" tell how a training went; "learning_rate" and "dropout rate" how it was set.
_RATES: Final = frozenset(["rate", "ratio"])
_RATE_OF_RESULTS: Final = word_set(
    """success win hit pass error failure miss detection recognition solve completion acceptance rejection alarm
    false true positive negative conversion click correct resolve coverage retrieval catch"""
)
_AMONG_THE_FIRST: Final = frozenset(["pass", "p", "r"])
# "cost" alone is what is made small; "batch_cost" and "data_cost" are times.
_WITH_COST: Final = frozenset(["cost", "total", "final", "best", "average", "mean"])
_METRIC_ENDINGS: Final = ("loss", "acc", "accuracy", "error", "score", "perplexity", "precision", "recall", "auc")
_QUALIFIERS: Final = word_set(
    """average avg mean median total overall final best running cross log macro micro weighted balanced binary
    categorical squared absolute relative root set top ema mean-squared epoch max maximum min minimum highest lowest
    worst"""
)
VOCABULARY: Final = _METRICS | _QUALIFIERS | frozenset(SPLITS)
_LEADING: Final = frozenset(["best", "final"])
_FILLERS: Final = frozenset(["average", "avg", "the", "set", "current", "a", "an", "new"])

_NEVER: Final = word_set(
    """time times uptime eta etas elapsed remaining runtime duration dur second seconds sec secs ms msec minutes min
    hours speed throughput ips fps memory mem ram vram gpu cpu cache size weight weights coef coefs coeff coeffs
    coefficient lambda smoothing tolerance
    scale patience threshold thresh fn func function type date timestamp pid port version seed wait
    initscore pavg df ci progress sps qps tps wps ups wpb bsz wall"""
)
_PER_SECOND: Final = ("/s", "/sec", "/second", "persec", "persecond")
_SAMPLING: Final = ("top_k", "top_p", "top-k", "top-p")  # how text is sampled, or how many files are kept
# A number after it can only be its value.
_WHOLE_NAMES: Final = frozenset(["objective_function", "cost_function", "coefficient_of_determination"])
_NEVER_ALONE: Final = word_set(
    """epoch epochs ep step steps iter iters iteration iterations it round update batch batches sample samples image
    images example examples num n rank device devices cuda node world params parameters count counter total line data
    worker workers thread threads updates checkpoint checkpoints reader beam momentum decay dropout beta betas beta1
    beta2 eps epsilon gamma alpha warmup hidden layer layers dim heads width height depth kernel stride padding classes
    channels length args exit code status job run runs trial trials fold folds v num_workers temperature stage level
    index idx id year day month tol max instances observations skipped"""
)
_OF_SETTINGS: Final = frozenset(
    ["optim", "optimizer", "scheduler", "config", "cfg", "args", "hparams", "hyperparameters"]
)
# The same as a part of a nested object ("config/loss"); an optimizer's part of one may hold results.
_OBJECTS_OF_SETTINGS: Final = _OF_SETTINGS - {"optim", "optimizer", "scheduler"} | {"params", "parameters", "settings"}
_ENDS_A_SETTING: Final = frozenset(
    ["alpha", "beta", "gamma", "eps", "epsilon", "tol", "code"]
)  # "kl_beta", "error code"
_ACCUMULATED: Final = frozenset(["grad", "gradient", "steps", "iters", "batches"])  # "acc_steps" are no accuracy
_NO_PREFIX: Final = frozenset(["lr", "learning_rate", "lrate", "grad_norm", "gradnorm", "grad", "wd", "weight_decay"])
_PARTS = re.compile(r"[^a-z0-9²]+")
_ABBREVIATED: Final = frozenset(["train.", "trn.", "val.", "valid.", "test.", "eval."])
_ENDED: Final = word_set("completed complete finished done ended took stopped time")
"""Behind a word for a split: "Training completed, best_metric: 0.7" tells when, and not on which data."""
_AROUND_TRAINING: Final = word_set("before after until since without prior")
_WORDS = re.compile(r"[\w./\-]+")


@functools.lru_cache(maxsize=4096)
def is_metric(name: str) -> bool:
    """Whether a word of the name says that it is a metric; settings named after one ("loss_weight") are not."""
    parts = _parts(name)
    if name.lower() in _CLUSTERING:
        return True
    if is_never(name):
        return False
    is_cost = "cost" in parts and _WITH_COST.union(SPLITS).issuperset(parts)
    return is_cost or any(map(_is_metric_word, parts)) or _is_rate_of_results(parts)


@functools.lru_cache(maxsize=4096)
def is_never(name: str) -> bool:
    """Whether the name stands for time, memory, speed, a counter or a setting."""
    if name.lower() in _CLUSTERING:
        return False
    parts = _parts(name)
    if not parts or any(part in _NEVER for part in parts) or name.lower().endswith(_PER_SECOND):
        return name.lower() not in _WHOLE_NAMES
    first, dot, _ = name.lower().partition(".")
    if name.lower() == "top" or (dot and first in _OF_SETTINGS):  # "top 3" counts
        return True
    if not _OBJECTS_OF_SETTINGS.isdisjoint(name.lower().split("/")[:-1]):
        return True
    if (len(parts) > 1 and parts[-1] in _ENDS_A_SETTING) or ("acc" in parts and not _ACCUMULATED.isdisjoint(parts)):
        return True
    if name.lower().endswith(_SAMPLING) and not any(map(_is_metric_word, parts[:-2])):
        return True
    return not any(_is_metric_word(part) for part in parts) and any(part in _NEVER_ALONE for part in parts)


def keeps_no_prefix(name: str) -> bool:
    """Whether the name belongs to the whole training, not to one split of the data ("lr")."""
    return name in _NO_PREFIX


def split_in(text: str) -> str:
    """The last word in the text that names a split of the data, as train, val, test or eval; "" without one.

    Only words that stand alone: `val_loss` says something about itself, not about the names that follow it.
    """
    words = _WORDS.findall(text.lower())
    for place in range(len(words) - 1, -1, -1):
        word = words[place].rstrip(".") if words[place] in _ABBREVIATED else words[place]
        is_followed = place + 1 < len(words) and words[place + 1].rstrip(".") in _ENDED
        if word in SPLITS and not (is_followed or is_a_time(word, words[place - 1] if place else "")):
            return SPLITS[word]
    return ""


def is_a_time(word: str, before: str) -> bool:
    """Whether a word for a split says when something was, as in "before training acc: 0.1"."""
    return word == "training" and before in _AROUND_TRAINING


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
    """Whether the name is a rate that tells how a training went, or counts among the first ("pass@1", "P@5")."""
    if parts[0] in _AMONG_THE_FIRST and len(parts) == 2 and parts[1].isdigit():
        return True
    return parts[-1] in _RATES and not _RATE_OF_RESULTS.isdisjoint(parts[:-1])


def _is_metric_word(part: str) -> bool:
    return part in _METRICS or part.rstrip("0123456789") in _METRICS or part.endswith(_METRIC_ENDINGS)


def _parts(name: str) -> list[str]:
    return [part for part in _PARTS.split(name.lower().replace("r-squ", "rsqu")) if part]


# The rest of a number whose first character has been read. Atomic groups, so that "1e-05" is never read as "1" with
# the unit "e", nor "0.5/x" as "0".
_THOUSANDS = r"(?:,\d{3})+(?![\d,])(?:\.\d+)?"
_REST = rf"""(?>(?:(?<=\d)(?:\d{{0,2}}{_THOUSANDS}|\d*\.?\d*)
                  |(?<=[-+])(?:\d{{1,3}}{_THOUSANDS}|\d+\.?\d*|\.\d+)
                  |(?<=\.)\d+)
                (?:[eE][-+]?\d+)?)"""

# The first character stands outside the alternatives: this lets the matcher skip from one candidate to the next,
# which halves the time. What it matched is joined to the groups by `written_number` and `count_of`.
TOKEN = re.compile(
    rf"""
    [-+.\dnNiI](?<![\w.@/$-].)
    (?:
      (?P<junk>
          (?<=\d)\d*(?:[:-]\d+)+(?:[.,]\d+)?(?:[TZ][\d:.]*)?        # 10:00:00,123  2024-01-02  1-2
        | (?<=\d)\d*/\d+/\d+                                       # 01/02/2024
        | (?<=\d)\d*(?:\.\d+){{2,}}[\w.+:-]*                         # 2.13.0+cpu  127.0.0.1:6006
        | {_REST}(?:[A-Za-zµ_]\w*)(?:/\w+)?                         # 3ms/step  54.26it/s  12.5MB
        | {_REST}\#(?:IND|INF|QNAN|SNAN)\w*                          # 1.#IND
        | {_REST}\ (?:s|secs?|seconds|ms|minutes|hours|it/s|s/it|[kKMGT]i?B)(?![\w/])
      )
    | (?<=\d)(?P<count>(?:(?<=[1-9])\d{{0,2}}(?:,\d{{3}})+|\d*))(?:\s*/\s*|\ (?:out\ )?of\ )
      (?P<total>(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|\d+))(?![\w.]\d|/|\w)
    | (?P<number>{_REST})(?![\w/\\])(?P<percent>(?:\s?|\ {{2,6}}(?=%(?:\s|$)))%(?P<bar>\||\s?[━─█╸╺])?)?
    | (?P<word>(?<=[nN])[aA][nN]|(?<=[iI])nf(?:inity)?|(?<=[-+])(?:[nN][aA][nN]|[iI]nf(?:inity)?))(?![\w.])
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_MOST_DIGITS = 300
_SURELY_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3}){2,}|,\d{3}\.)")
_WITH_COMMA = re.compile(r"[-+]?\d++(?:\.\d++)*+,\d++(?:[.,]\d++)*+(?:[eE][-+]?\d++)?\s*+%?$")
SEVERAL_TRIALS: Final = "several trials print it, and each is a training of its own"
DOUBLED: Final = "two values of it on one line"
UNCLEAR_COMMA: Final = "the comma in its number may be decimal or part thousands"


def written_number(token: re.Match[str]) -> str:
    """The number of a token as `float` reads it, without its percent sign."""
    end = token.end("word") if token["number"] is None else token.end("number")
    return token.string[token.start() : end].replace(",", "")


def has_unclear_comma(written: str) -> bool:
    """Whether a text is a number with a comma in it that may be decimal."""
    return "," in written and _WITH_COMMA.match(written) is not None and _SURELY_THOUSANDS.match(written) is None


def count_of(token: re.Match[str]) -> tuple[int, int]:
    """The two numbers of "9908/10000"; counts too long to be any give (0, 0)."""
    if len(token[0]) > _MOST_DIGITS:
        return 0, 0
    count = token.string[token.start() : token.end("count")]
    return int(count.replace(",", "")), int(token["total"].replace(",", ""))


def read_number(text: str) -> float | None:
    """The value of a written number, percentage or fraction; None when it is none of them."""
    match = TOKEN.fullmatch(text.strip())
    if match is None or match["junk"] is not None or has_unclear_comma(match[0]):
        return None
    if match["total"] is not None:
        count, total = count_of(match)
        return count / total if total else None
    return fraction_of(written_number(match)) if match["percent"] else float(written_number(match))


def fraction_of(written: str) -> float:
    """The fraction that a percentage stands for, rounded once: "97.4" is 0.974, not 0.9740000000000001."""
    takes_exponent = written[-1] in "0123456789." and "e" not in written.lower()
    return float(f"{written}e-2") if takes_exponent else float(written) / 100


SHOWN_NUMBER: Final = r"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)"
# A number as numpy, torch, TensorFlow and JAX show it; what else stands in the brackets says nothing about its value.
_WRAPPED = re.compile(
    rf"(?:np\.\w+|(?:torch\.)?tensor|tf\.Tensor|array|(?:Device)?Array)\(\s*(?P<number>{SHOWN_NUMBER})"
    r"(?:,[^()]{0,200}(?:\([^()]{0,100}\)[^()]{0,200}){0,3})?\)"
)
_ALONE_IN_BRACKETS = re.compile(rf"(?<=:)(\s*)\[(\s*(?=[-+\d.einaf]*[.nf]){SHOWN_NUMBER}\s*)\](?!\s*[\[\w])")
_SHOWN_TENSOR = re.compile(rf"<tf\.Tensor:[^<>]{{0,200}}numpy=(?P<number>{SHOWN_NUMBER})>")


def unwrapped(line: str) -> str:
    """The line with "tensor(0.5, device='cuda:0')", "np.float64(0.5)", "[0.5]" and the like written as 0.5."""
    if "ensor(" in line or "np." in line or "rray(" in line:
        line = _WRAPPED.sub(lambda found: found["number"], line)
    if "]" in line:  # "loss is: [0.5]", an array of one number; all places stay
        line = _ALONE_IN_BRACKETS.sub(r"\1 \2 ", line)
    if "<tf.Tensor" in line:
        line = _SHOWN_TENSOR.sub(lambda found: found["number"], line)
    return line


Span = tuple[int, int]

# Keys of `Row.places` that are no names of metrics: no name has a line end in it.
EPOCH: Final = "\nepoch"
STEP: Final = "\nstep"
COUNT: Final = "\ncount"
TOTAL: Final = "\ntotal"


class MetricValue(NamedTuple):
    """One named value. form: how it was written ("name: value"). fraction: whether the text said % or count/total."""

    name: str
    value: float
    form: str
    fraction: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A name with a number that was not taken, and why: a wrong value is worse than none."""

    name: str
    why: str


@dataclass(slots=True)
class Row:
    """The values of one line, filled while the line is read.

    epoch, step: given on this very line, else None. count, total: a progress counter ("100/390"); total 0 without one.
    split: the split of the data the line speaks of ("train"), if any. table: the row has its own clock and leaves the
    training's alone; a row of a table of epochs has the table's running number. final: the line says that its values
    are final. doubtful: names that look like values but count only in company. by_user: found by the user's own
    pattern, which has the last word on its names. lines: the lines above that the values stand in, when they are
    not in the last one read. left_out: what was seen and not taken. places: where in the line the numbers stand, by
    the names of their metrics, as far as that is known. numbers: where in the line any number stands, taken or not.
    by_value: what was taken depends on more than the shape of the line. above: a row of the line above, which is known
    to be one only now. restarts: another training begins with this row of a table. layer: the one that the line is
    about ("layer 1 loss: 0.5"). label: whose values a line says they are ("LOC: precision: 92%"), if anybody's.
    """

    values: list[MetricValue] = field(default_factory=list)
    doubtful: list[MetricValue] = field(default_factory=list)
    epoch: float | None = None
    step: float | None = None
    count: int = 0
    total: int = 0
    split: str = ""
    table: int = 0
    final: bool = False
    by_user: bool = False
    lines: str = ""
    left_out: list[LeftOut] = field(default_factory=list)
    places: dict[str, Span] = field(default_factory=dict)
    numbers: list[Span] = field(default_factory=list)
    by_value: bool = False
    above: Row | None = None
    restarts: bool = False
    layer: str = ""
    label: str = ""

    @property
    def has_clock(self) -> bool:
        """Whether the line itself says which epoch or step it belongs to."""
        return self.epoch is not None or self.step is not None

    def shift(self, characters: int) -> None:
        """Move all places to the right: the row was read from the end of a line."""
        if characters:
            self.places = {name: (start + characters, end + characters) for name, (start, end) in self.places.items()}
            self.numbers = [(start + characters, end + characters) for start, end in self.numbers]

    def settle(self) -> None:
        """Take the doubtful values too when the line is about a metric, an epoch or a step.

        An epoch or step that is not finite is none.
        """
        self.epoch = None if self.epoch is None or not math.isfinite(self.epoch) else self.epoch
        self.step = None if self.step is None or not math.isfinite(self.step) else self.step
        if self.values or self.has_clock:
            self.values += self.doubtful
            self.doubtful = []
        if len(self.values) > 1:
            self._drop_doubled()

    def _drop_doubled(self) -> None:
        """Two different values of one name on one line: which of them is meant is not said."""
        self.by_value = self.by_value or len({value.name for value in self.values}) < len(self.values)
        first: dict[str, float] = {}
        doubled = {
            value.name for value in self.values if differ(first.setdefault(value.name, value.value), value.value)
        }
        if doubled:
            self.values = [value for value in self.values if value.name not in doubled]
            self.left_out += [LeftOut(name, DOUBLED) for name in sorted(doubled)]


def differ(one: float, other: float) -> bool:
    """Whether two values are different ones; nan is like nan."""
    return one != other and not (math.isnan(one) and math.isnan(other))


_ANY_DIGIT_IS_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_DIGITS: Final = re.compile(r"[0-9]+")
_LONGEST_NUMBER: Final = 40


_BLOCK: Final = b"\xe2\x96"
_FILLED_BAR: Final = re.compile(rb"(?<=\|)(?:\xe2\x96[\x88-\x8f])+ *(?=\|)")


def line_shape(line: str) -> bytes:
    """The line with every digit written as 0: lines of one shape are read alike. Bytes, which are translated faster.

    How far a bar of blocks is filled ("|███▌      |", as tqdm draws it) is no part of it, as long as it is as wide.
    """
    shape = line.encode("utf-8", "surrogatepass").translate(_ANY_DIGIT_IS_ZERO)
    return _FILLED_BAR.sub(_width_of_bar, shape) if _BLOCK in shape else shape


def _width_of_bar(bar: re.Match[bytes]) -> bytes:
    return b"\0" * (bar[0].count(_BLOCK) + bar[0].count(b" "))


@dataclass(frozen=True, slots=True)
class Template:
    """How lines of one shape are read. names: digits that are part of names, which other lines must share."""

    values: tuple[tuple[MetricValue, Span], ...]
    clock: tuple[tuple[str, Span], ...]
    names: tuple[tuple[Span, str], ...]
    filled: Row

    @classmethod
    def learned(cls, line: str, row: Row) -> Template | None:
        """What the row of a line teaches about its shape; None when that is not all there is to know."""
        wanted = [name for name, given in _clock_of(row).items() if given]
        names = [*wanted, *(value.name for value in row.values)]
        if row.by_value or row.table or any(name not in row.places for name in names):
            return None
        if any(end - start > _LONGEST_NUMBER or "," in line[start:end] for start, end in row.places.values()):
            return None
        template = cls(
            tuple((value, row.places[value.name]) for value in row.values),
            tuple((name, row.places[name]) for name in wanted),
            tuple(_digits_of_names(line, row.numbers)),
            Row(split=row.split, final=row.final, label=row.label),
        )
        again = template.row(line)
        return template if again is not None and _same(again, row) else None

    def row(self, line: str) -> Row | None:
        """The row of another line of this shape, filled anew at each call; None when it has another name in it."""
        for (start, end), text in self.names:
            if line[start:end] != text:
                return None
        row = self.filled
        for name, (start, end) in self.clock:
            number = float(line[start:end])
            if not math.isfinite(number) or (name is TOTAL and not number):  # "0/0" is no progress
                return None
            if name is EPOCH:
                row.epoch = number
            elif name is STEP:
                row.step = number
            elif name is COUNT:
                row.count = int(number)
            else:
                row.total = int(number)
        row.values = [
            MetricValue(name, fraction_of(line[start:end]) if fraction else float(line[start:end]), form, fraction)
            for (name, _, form, fraction), (start, end) in self.values
        ]
        return row


def _digits_of_names(line: str, numbers: list[Span]) -> Iterator[tuple[Span, str]]:
    """The digits that belong to no number: "acc@5", "layer3"."""
    for match in _DIGITS.finditer(line):
        if not any(start <= match.start() and match.end() <= end for start, end in numbers):
            yield match.span(), match[0]


def _clock_of(row: Row) -> dict[str, bool]:
    return {EPOCH: row.epoch is not None, STEP: row.step is not None, COUNT: row.total > 0, TOTAL: row.total > 0}


def _same(one: Row, other: Row) -> bool:
    """Whether two rows of one line say the same, as far as a template does."""
    first, second = (
        (row.values, row.epoch, row.step, row.count, row.total, row.split, row.final) for row in (one, other)
    )
    return repr(first) == repr(second)
