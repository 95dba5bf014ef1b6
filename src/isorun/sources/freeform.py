"""A free-form line of output: every number in it, judged by the text before it.

Rules, in the order they are applied to a number:
- "Epoch 3/50", "epoch=3", "Epoch: [3]" give the epoch, "step 500", "iter: 10", "[10] " give the step; a line about the
  best epoch does not ("best val acc 0.9 at epoch 7").
- "97.4%" and "Accuracy (%): 97.4" are 0.974; "Accuracy: 9908/10000 (99%)" is 0.9908. Other counts ("100/390") are
  progress.
- On a progress line the average of "Loss: 0.5 (0.6)" is taken, 0.6; on any other line the number before the brackets.
- A word for a split of the data prefixes the names after it: "Test set: Average loss: 0.03, Accuracy: 97%" gives
  `test_loss` and `test_accuracy`; a name that has a split of its own is left alone.

A label is the text before a number: it ends where the number starts and begins where the number before it ended.
Labels repeat from line to line (" - accuracy: "), so that each is parsed once and remembered. Sentences, which have
words or numbers between the name and the value, are tried first:

Accuracy of the network on the 10000 test images: 54 %     test_accuracy
Accuracy for class: plane is 55.4 %                        accuracy[plane]
8.0 perplexity estimate based on a held-out corpus         perplexity
0:<tab>learn: 0.90<tab>test: 0.94<tab>total: 52.7ms        learn, test, at round 0
Training loss (for 1 batch) at step 40: 0.5                train_loss, at step 40

Pycocotools evaluates boxes, masks and key points in the same words, and names which of them only above: what is not
about boxes has that in its name (`segm_AP@0.50:0.95/all/100`).

What surrounds a message in a log line was taken off before (`messages`), and lines that tell what was set are known by
their words (`settings`).
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass, replace

from isorun.sources.messages import UNREADABLE, plain
from isorun.sources.rows import (
    COUNT,
    EPOCH,
    SPLITS,
    STEP,
    TOKEN,
    TOTAL,
    UNCLEAR_COMMA,
    VOCABULARY,
    LeftOut,
    MetricValue,
    Row,
    Span,
    count_of,
    fraction_of,
    has_split,
    has_unclear_comma,
    is_a_time,
    is_metric,
    is_never,
    keeps_no_prefix,
    name_of,
    read_number,
    split_in,
    word_set,
    written_number,
)

__all__ = [
    "Label",
    "Role",
    "SplitSection",
    "evaluated_by",
    "label_of",
    "may_be_a_sentence",
    "read_catboost",
    "read_sentence",
    "read_text",
]

# "max_epoch: 50", "of max_iter: 4" and "start_epoch: 0" tell how long it will go on or went, not where it is.
_NO_LIMIT = r"(?<!max[_ -])(?<!num[_ -])(?<!total[_ -])(?<!\bn_)(?<!start_)(?<!begin_)(?<!initial_)(?<!warmup_)"
_EPOCH = re.compile(rf"(?:^|[^a-z]){_NO_LIMIT}(?:epoch|ep)(?:\s*\([a-z]+\))?[\s:=#\[('\"]*$")
_EPOCHS = re.compile(r"(?:^|[^a-z])epochs?\s*:?\s*$")
_STEP = re.compile(
    rf"(?:^|[^a-z]){_NO_LIMIT}(?:global_step|step|iteration|iter(?:\s*\(train\))?|round|episode)[\s:=#*\[('\"]*$"
    r"|\beval num_timesteps=$"
)
_LOGGED_BY = re.compile(r"\b(\w+_(?:epoch|step|iter))\s*[:=]\s*$")
_PART = re.compile(r"(?:^|[^a-z])(?:cv|folds?|seed|trial|run|repeat|task|split|model|candidate|client)[\s:=#\[(]*$")
_LAYER = re.compile(r"(?:^|[^a-z])layer[\s:=#\[(]*$")
# What is looked for behind blanks begins where these do: from each of a thousand blanks anew it takes minutes.
_OVER_EPOCH = re.compile(r"(?<!\s)\s+(?:over|per)\s+(?:the\s+)?epoch\s*(?=[:=]\s*$)", re.IGNORECASE)
_SEPARATOR = re.compile(r"(?<!\s)\s*+(?:\bis\s*+(?=[:=-]))?(?P<sign>[:=]|-+>|=+>|\bis\b)?(?P<space>\s*+)[\"']?$")
_DETERMINATION = re.compile(r"\bcoefficient of determination\b", re.IGNORECASE)
_ABBREVIATION = re.compile(r"\b(adj|train|val|valid|test|trn|eval|avg)\.(?= )", re.IGNORECASE)
_AVERAGE = re.compile(r"(?<!\s)\s*\((micro|macro|weighted|samples)(?: avg)?\)\s*$", re.IGNORECASE)
_PERCENT_UNIT = re.compile(r"(?<!\s)\s*[(\[]\s*(?:%|in %|percent)\s*[)\]]\s*$")
_BREAK = re.compile(r"[,;|(){}\[\]\"'<>│┃┆•·*#\t!?]|\s[-–—]+\s|^[-–—]+\s|[:=]|\s{2,}|\.\s|[━─█▏▎▍▌▋▊▉╸╺]+|\.{4,}")
_STOP_WORDS = word_set(
    """with at of the is was got reached and to in on for from by after before than over improved decreased increased
    saved saving until since per into achieved had has across among within during"""
)
# "std of acc: 0.02", "gap between train and val acc: 0.1": said of a metric, and none of its values.
_SAID_OF_IT = re.compile(
    r"\b(?:std|stdev|sd|dev|deviation|variance|change|difference|drop|gain|improvement|increase|decrease|reduction|gap|ratio"
    r"|threshold|weight|number) (?:of|in|between) ",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?<!\S)--[A-Za-z][\w-]*$")  # "--loss 0.3": what a command was given
# Words alone, which are all that stands before a number of a line or between two of its commas or bars:
# print("Robust accuracy", 0.4), "Step 1: generator loss 3.5, discriminator loss 4.1".
_PHRASE = re.compile(r"(?:\s*[,;|:]\s*)?[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){1,3} +$")
_MAY_BE_OPTION = re.compile(r"(?<!\S)-[A-Za-z]\w*$")  # "-loss 0.3": so it may be, or an item of a list
# "baseline accuracy 0.8", "the paper reports accuracy 0.96", "target accuracy 0.95": words that no name keeps.
_OF_ANOTHER = re.compile(
    r"\b(?:papers?|reports|reported|published|literature|sota|baselines?|chance|previous(?:ly)?|prior|target|goal|desired"
    r"|required)\b",
    re.IGNORECASE,
)
_WHY_OF_ANOTHER = "it may be said of something else than this training"
_WHY_OPTION = "it may be an option of a command"
_WORD = re.compile(r"[^\W\d_]\w*")
# "Step    100: eval          Accuracy |  0.85": a name between the step and a bar.
_BEFORE_A_BAR = re.compile(r":\s+(?P<name>[A-Za-z][\w-]*(?:\s+[A-Za-z][\w-]*){0,3})\s*\|\s*$")
# "LOC: precision: 92%", "PGD: acc 0.4", "Random Forest: accuracy=0.9": of which class, attack or model the values are.
_WHOSE = re.compile(r"\s*(?P<label>[A-Za-z][A-Za-z+/._-]*(?: [A-Za-z][A-Za-z+/._-]*){0,2}) ?:\s+(?=[A-Za-z])")
# "Macro avg in dev dataset: precision: 0.9": over classes, as "precision (macro)" is.
_AVERAGE_OF = re.compile(
    r"\s*(?P<average>macro|micro|weighted)[ -](?:avg|averaged?)\b[^:=\d]{0,40}:\s+(?=[A-Za-z])", re.IGNORECASE
)
# "4_Default_Xgboost logloss 0.4", "Theta(2) MAE: 0.9": a name with a number or settings in it.
_NUMBERED_MODEL = re.compile(r"\s*(?P<label>\d{1,4}_[A-Za-z]\w{0,60}|[A-Z]\w{0,40}\([^()]{0,60}\)) ++(?=[A-Za-z])")
_OF_THE_WHOLE = word_set(
    """final best last latest new current average averaged avg mean median overall total sum epoch epochs step steps
    iter iteration iterations round batch batches fold folds run runs"""
)
_OF_NOBODY = _OF_THE_WHOLE | word_set(
    """result results metric metrics summary score scores report performance stats statistics status progress info log
    logs note output evaluation trained model network the done finished complete completed time"""
)
_ARTICLES = word_set(
    "the a an its our my this that your with we i achieves achieved reaches gives shows mean average avg"
)
_MOST_WORDS = 4
_WHOLE_BAR = 100
_BAR_ENDS = tuple("━─█╸╺")


class Role(enum.Enum):
    """What a number is, going by the text before it."""

    NOTHING = "nothing"
    EPOCH = "epoch"
    STEP = "step"
    METRIC = "metric"
    DOUBTFUL = "doubtful"
    IN_BRACKETS = "in brackets"
    OPENING = "opening"
    SPLIT = "split"
    PART = "part"
    LAYER = "layer"


@dataclass(frozen=True, slots=True)
class Label:
    """role and name of the number; form: how the two were written; split: the part of the data the text names.

    percent: the text says that the number is a percentage. tight: a colon stands right before the number ("gpu:0").
    plural_epochs: the text is a bar's description that counts epochs ("Epochs: 40%|"). unread: a metric that the text
    names, but not in words right before the number ("RMSE on the held-out part of (b): 0.3"). ends_in_bar: what was
    drawn of a bar stands right before the number ("━━━━ 40%"). doubt: why it may be no value of this training, which
    counts where the line names no epoch and no step.
    """

    role: Role
    name: str = ""
    form: str = ""
    split: str = ""
    percent: bool = False
    tight: bool = False
    plural_epochs: bool = False
    unread: str = ""
    ends_in_bar: bool = False
    only_percent: bool = False
    doubt: str = ""


@functools.lru_cache(maxsize=4096)
def label_of(text: str) -> Label:
    """What the text says about the number that follows it."""
    if "poch" in text:
        text = _OVER_EPOCH.sub("", text)
    if "|" in text and (found := _BEFORE_A_BAR.match(text)) is not None:
        text = f" {' '.join(found['name'].split())}: "
    lowered = text.lower()
    split = split_in(lowered)
    stripped = lowered.strip()
    if stripped in {"(", "["}:
        return Label(Role.IN_BRACKETS if stripped == "(" else Role.OPENING, split=split)
    if stripped.endswith(": ("):
        return replace(label_of(text.rstrip()[:-1]), only_percent=True)  # "Accuracy: (98%)"; others begin a list
    if (logged := _LOGGED_BY.search(lowered)) is not None and is_metric(logged[1]):
        return _named(text, split)  # "train_loss_epoch: 0.4" is a loss, and names no epoch
    if "ep" in lowered and _EPOCH.search(lowered):
        return Label(Role.NOTHING if "best" in lowered else Role.EPOCH, split=split, plural_epochs=True)
    if _STEP.search(lowered):
        return Label(Role.NOTHING if "best" in lowered else Role.STEP, split=split)
    if _PART.search(lowered):
        return Label(Role.PART, split=split)
    if "layer" in lowered and _LAYER.search(lowered):
        return Label(Role.LAYER, split=split)
    return _named(text, split)


def _named(text: str, split: str) -> Label:
    separator = _SEPARATOR.search(text)
    assert separator is not None
    sign = separator["sign"] or ""
    body = _ABBREVIATION.sub(r"\1", text[: separator.start()].replace("'s ", " "))
    body = _DETERMINATION.sub("coefficient_of_determination", body)
    without_unit = _PERCENT_UNIT.sub("", body)
    average = _AVERAGE.search(without_unit)
    without_unit = without_unit[: average.start()] if average else without_unit
    chunk = _BREAK.split(without_unit.strip().strip("\"'"))[-1]
    if _SAID_OF_IT.search(chunk) or (sign in {"", "="} and _OPTION.search(chunk)):
        return Label(Role.NOTHING, split=split)
    doubt = _doubt(chunk, sign)
    is_phrase = not doubt and _PHRASE.match(text) is not None
    words = _words(chunk, separated=bool(sign) or is_phrase)
    if not words or all(word.lower() in SPLITS for word in words):
        counts_epochs = _EPOCHS.search(text.lower()) is not None
        unread = next(filter(is_metric, _WORD.findall(body.lower())), "") if sign in {":", "="} else ""
        role = Role.SPLIT if words else Role.NOTHING
        in_bar = text.rstrip().endswith(_BAR_ENDS)
        form = _form(sign)
        return Label(role, form=form, split=split, plural_epochs=counts_epochs, unread=unread, ends_in_bar=in_bar)
    if [word.lower() for word in words[-2:]] == ["ratio", "test"]:
        return Label(Role.NOTHING, split=split)  # a test of statistics, no split of the data
    name = name_of(words) + (f"_{average[1].lower()}" if average else "")
    return Label(
        role=_role(name, sign),
        name=name,
        form=_form(sign),
        split=split,
        percent=average is None and without_unit != body,
        tight=sign == ":" and not separator["space"],
        plural_epochs=_EPOCHS.search(text.lower()) is not None,
        doubt=doubt,
    )


def _whose(line: str) -> str:
    """Of whom or what the values of a line are, as the words before the first colon say; "" for most lines."""
    if (model := _NUMBERED_MODEL.match(line)) is not None:
        return model["label"]
    found = _WHOSE.match(line) if ":" in line else None
    words = re.split(r"[\s_./-]+", found["label"].lower()) if found is not None else []
    if found is None or _OF_NOBODY.issuperset(words):
        return ""
    is_of_all = any(word in SPLITS or word in _OF_THE_WHOLE or is_metric(word) for word in words)
    return "" if is_of_all else found["label"]


def _doubt(chunk: str, sign: str) -> str:
    if sign in {"", "="} and _MAY_BE_OPTION.search(chunk):
        return _WHY_OPTION
    return _WHY_OF_ANOTHER if not sign and _OF_ANOTHER.search(chunk) else ""


def _role(name: str, sign: str) -> Role:
    if is_metric(name):
        return Role.METRIC
    is_letter = sign == "=" and len(name) == 1  # "C=0.1, score=0.9": what was set
    is_named = keeps_no_prefix(name) if sign in {"", "is"} else not is_never(name)  # "| lr 20.00 |"
    return Role.DOUBTFUL if is_named and not is_letter else Role.NOTHING


def _form(sign: str) -> str:
    return {"": "name value", ":": "name: value", "=": "name=value"}.get(sign, f"name {sign} value")


def _words(chunk: str, *, separated: bool) -> list[str]:
    """The words at the end of the chunk that make a name: without a separator only words known from metrics.

    "from score 0.69" tells where something began, which is no result.
    """
    words: list[str] = []
    parts = chunk.split()
    for place in range(len(parts) - 1, -1, -1):
        word = parts[place]
        cleaned = word.strip(".~+-&^`：")
        lowered = cleaned.lower()
        if not separated and (lowered == "from" or cleaned == "Mar"):  # "Mar 25 13:03:58" is a date
            return []
        if not lowered or lowered in _STOP_WORDS or not _starts_a_name(lowered):
            break
        if place and is_a_time(lowered, parts[place - 1].lower()):
            break
        if not separated and lowered not in VOCABULARY and not is_metric(lowered) and not keeps_no_prefix(lowered):
            break
        words.insert(0, cleaned)
    return words[-_MOST_WORDS:]


def _starts_a_name(word: str) -> bool:
    is_text = (word[0].isalpha() or word[0] == "_") and UNREADABLE not in word
    return is_text and not word.endswith((".py", ".log", ".txt", ".json", ".csv", ".pt"))


_TIME_OF_DAY = re.compile(r"\s+\d\d?:\d\d")
_LEADING_PAIR = re.compile(r"\s*\[\s*(\d+)\s*,\s+(\d+)\s*\]")
_LEADING_STEP = re.compile(r"\s*\[(\d{1,3}(?:,\d{3})+|\d+)\]")
_LEADING_EPOCH = re.compile(r"\s*(\d{1,6})epoch(?=:| results:)")  # "3epoch results: [train] loss=0.5"
_FINAL = re.compile(r"\b(?:final|test|best)")
_AVERAGED = re.compile(r"\W*Averaged\b", re.IGNORECASE)  # "Averaged stats: loss: 0.5 (0.6)"
_DIGITS = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?"
# What may follow a number that is not the whole value: further numbers ("0.9, 0.8", "0.9 0.8", "0.5 / 0.6"), an
# arrow to the next one, the end of a range ("0.8-0.9", "0.1..0.2", "0.8 to 0.9"), a product ("0.9 x 100").
_GOES_ON = re.compile(
    rf"\s*,\s*{_DIGITS}\s*(?:$|[,;\])|])|\s+[-+]?\d*\.\d+(?:[eE][-+]?\d+)?%?(?:\s|$)|\s*/\s*{_DIGITS}|\s*(?:-+>|=>|→)"
    r"|[-–—~]\.?\d|\s[-–—~]\s\d*\.\d+(?![\w.])(?!\s*[A-Za-z])|\s?\.\.+\s?[-+]?\.?\d|\s+to\s+[-+]?\.?\d"
    r"|\s?[*×]\s?[\d.(]|\sx\s\d"
)
# After a whole number: groups of a larger one ("1 234", "1'234"), or a sum ("1 - err = 0.8").
_GROUPS = re.compile(r"[ '’\u00a0\u2009\u202f]\d{3}(?!\d)")
_DRAWN = re.compile(r"\s*\[?[=#>━█╸]{2}")  # within an epoch, "step 157/157 [=====]" is how far a bar is
_OF_A_WORD = re.compile(r"-[A-Za-z]")  # "Minimizing error metric: 1-accuracy"
_SUM = re.compile(r"\s*[-+*]\s*[A-Za-z_]\w*\s*=")
_SUM_WITH_RESULT = re.compile(r"\s?[+*×]\s?\d[\d.]*\s?=\s?[-\d]")  # "DECODE: 96+964 = 1002"
# "loss = 0.5 * mse", "loss = 0.3 + 0.5": how it is computed. Behind a colon boosters print a mean + deviation.
_FORMULA = re.compile(r"\s?(?:[*×]\s?[A-Za-z_]|\+\s?[\d.])")
_PERCENT_BEHIND = re.compile(r"\s?(?:±|\+/?-)\s?\d[\d.]*\s?%")  # "97.94+-0.14%": its unit is that of the deviation
_MOST_BEFORE_GROUPS = 3
_IN_SUM = "its number is part of a sum"
_IN_WORD = "its number is part of a word"
_WIDTHS = frozenset(["4", "8", "16", "32", "64"])
_WHOSE_SPLIT = "its line names several splits of the data, and does not say whose it is"
_SEVERAL = "several numbers follow its name"
_NUMBERED = re.compile(rf"\s?[:=]\s*{_DIGITS}")  # "loss 2: 0.5": which loss, not how much
_DECIMAL_COMMA = re.compile(r",\d+(?![\d.,])")
_TOP_IN_NAME = re.compile(r"(?<=\b[Tt]op) (?=\d{1,3}(?: [A-Za-z]|[:=]))")  # "Test top 5 accuracy: 98.4%": 5 is no value
# "mAP@.5:.95"; in "ndcg@10:0.25" and "recall@0.5:0.93" the value begins behind the colon.
_RANGE_IN_NAME = re.compile(r"(?P<start>@\s?0?\.\d+):(?=0?\.95\b|0?\.\d+\s*[:=|]|0?\.\d+\s+[\d.])")
_BRACKETS_IN_NAME = re.compile(
    r"(?<=[A-Za-z])(?:@\[\s*(?:IoU=)?(?P<limits>[\d.]+(?:\s?[:-]\s?[\d.]+)?)|\[(?P<range>0?\.\d+[:-]0?\.\d+))\s*\]",
    re.IGNORECASE,
)
# "avg. loss [9501-10000]: 576.8", "Avg loss (last 100 iter): 634.1": over which steps it was taken.
_STEPS_IN_NAME = re.compile(r"(?<=[A-Za-z]) (?:\[\d{1,9}-\d{1,9}\]|\(last \d{1,9} [A-Za-z]{1,12}\))(?=:)")


def read_text(line: str, *, split: str = "", epochs_are_named: bool = False) -> Row:
    """The values of a line. split: the split that a heading above the line named.

    epochs_are_named: the output has said "epoch" before, so that "[12/50]" at the start of a line is progress.
    """
    if "op " in line:
        line = _TOP_IN_NAME.sub("-", line)
    if "@" in line or "[." in line or "[0." in line:
        line = _RANGE_IN_NAME.sub(r"\g<start>-", _BRACKETS_IN_NAME.sub(_without_brackets, line))
    if "]:" in line or "):" in line:
        line = _STEPS_IN_NAME.sub(lambda found: " " * len(found[0]), line)
    reader = _Reader(line, split, epochs_are_named)
    end = 0
    numbers = []
    for token in TOKEN.finditer(line):
        reader.take(token, label_of(line[end : token.start()]))
        end = token.end()
        numbers.append(token.span())
    row = reader.finished()
    row.numbers = numbers
    return row


def _without_brackets(found: re.Match[str]) -> str:
    """The range in "mAP@[.5:.95]" as part of the name, and blanks behind it: all other places of the line stay."""
    limits = re.sub(r"\s", "", found["limits"] or found["range"]).replace(":", "-")
    return f"@{limits}".ljust(len(found[0]))


class _Reader:
    """Goes through the numbers of a line from left to right; `split` is the last one that was named."""

    def __init__(self, line: str, split: str, epochs_are_named: bool) -> None:
        self._line = line
        self._split = split
        self._epochs_are_named = epochs_are_named
        self._row = Row()
        self._bar_counts_epochs = False
        self._bar_percent = -1
        self._averages: dict[int, tuple[float, Span]] = {}
        self._last_was_value = False
        self._after_sum = False
        self._is_part = False
        self._unread: list[MetricValue] = []
        self._splits_before: set[str] = set()
        average = _AVERAGE_OF.match(line)
        self._average = "" if average is None else average["average"].lower()
        self._went_back = False

    def take(self, token: re.Match[str], label: Label) -> None:
        if label.split and label.split != self._split:
            self._enter_split(label.split)
        after_value, self._last_was_value = self._last_was_value, False
        kind = token.lastgroup
        if label.unread and kind in {"number", "percent"}:
            self._unread.append(MetricValue(label.unread, float(written_number(token)), ""))
        if kind == "total":
            self._take_count(token, label)
        elif kind == "percent" and (token["bar"] is not None or label.ends_in_bar):
            self._bar_counts_epochs = label.plural_epochs
            self._bar_percent = int(min(float(written_number(token)), 1000.0))  # more digits than a float has are inf
        elif label.role is Role.IN_BRACKETS:
            self._take_average(token, after_value)
        elif kind != "junk" and label.role is not Role.NOTHING and (kind == "percent" or not label.only_percent):
            self._take_number(token, label)

    def _enter_split(self, split: str) -> None:
        """The line speaks of another split from here on; of one that it has left before, it is not clear for how long.

        "(train)0.8s + (eval)0.4s: train loss = 0.5, recall = 0.2": whose recall it is the line does not say.
        """
        self._went_back = split in self._splits_before
        self._splits_before |= {self._split, split} - {""}
        self._split = split

    def finished(self) -> Row:
        row = self._row
        self._take_leading_brackets()
        if self._averages and (row.total or _AVERAGED.match(self._line)):
            row.values = [self._averaged(index, value) for index, value in enumerate(row.values)]
        if self._bar_percent >= 0 and not row.total:
            row.count, row.total, row.by_value = self._bar_percent, _WHOLE_BAR, True
        row.split = self._split
        row.label = _whose(self._line) if row.values else ""
        row.by_value = row.by_value or any(map(str.isdigit, row.label))
        row.final = self._split == "test" or _says_final(self._line.lower())
        row.settle()
        row.doubtful += self._unread  # after it: these count in no company
        return row

    def _take_count(self, token: re.Match[str], label: Label) -> None:
        count, total = count_of(token)
        self._row.by_value = self._row.by_value or label.role is Role.METRIC
        if label.role is Role.METRIC and "," in token[0]:
            self._row.left_out.append(LeftOut(self._prefixed(label.name), UNCLEAR_COMMA))
            return
        if label.role is Role.METRIC and total and count <= total:
            self._add(label, count / total, "name: count/total", fraction=True)
        elif label.role is Role.EPOCH or self._bar_counts_epochs or self._opens_with_epoch(token, label):
            self._row.epoch = float(count)
            self._row.places[EPOCH] = (token.start(), token.end("count"))
        elif label.role is Role.STEP and not (self._epochs_are_named and _DRAWN.match(self._line, token.end())):
            self._row.step = float(count)
            self._row.places[STEP] = (token.start(), token.end("count"))
        elif label.role is Role.PART or self._is_part:
            self._is_part = True  # "[CV 1/3; 2/6] score=0.9": a result for each, which no later one replaces
        else:
            self._row.count, self._row.total = count, total
            self._row.by_value = self._row.by_value or not total  # "0/0" counts nothing, where "0/1" of its shape does
            self._row.places[COUNT], self._row.places[TOTAL] = (token.start(), token.end("count")), token.span("total")

    def _opens_with_epoch(self, token: re.Match[str], label: Label) -> bool:
        opens = label.role is Role.OPENING and not self._line[: token.start()].strip(" \t[")
        is_a_day = _TIME_OF_DAY.match(self._line, token.end()) is not None  # "[11/01 11:27:04] "
        return opens and self._row.epoch is None and not self._epochs_are_named and not is_a_day

    def _take_average(self, token: re.Match[str], after_value: bool) -> None:
        if after_value and token["number"] is not None and not token["percent"]:
            place = (token.start(), token.end("number"))
            self._averages[len(self._row.values) - 1] = (float(written_number(token)), place)

    def _take_number(self, token: re.Match[str], label: Label) -> None:
        written = written_number(token)
        if label.role is Role.EPOCH:
            self._take_epoch(written, token)
        elif label.role is Role.STEP:
            self._row.step = float(written)
            self._row.places[STEP] = (token.start(), token.start() + len(written))
        elif label.role is Role.SPLIT:
            self._take_epoch_after_split(token, written)
            self._take_value_of_split(token, label, written)
        elif label.role is Role.LAYER:
            self._row.layer, self._row.by_value = f"layer {written}", True
        elif label.role in {Role.METRIC, Role.DOUBTFUL}:
            self._take_value(token, label, written)

    def _take_epoch(self, written: str, token: re.Match[str]) -> None:
        looks_back = self._row.values and "best" in self._line.lower()
        if self._row.epoch is None and not looks_back:
            self._row.epoch = float(written)
            self._row.places[EPOCH] = (token.start(), token.start() + len(written))

    def _take_epoch_after_split(self, token: re.Match[str], written: str) -> None:
        """The form "Train: 3 [ 100/390 ( 26%)]", where the word epoch is left out."""
        if written.isdigit() and self._line[token.end() :].lstrip().startswith("["):
            self._take_epoch(written, token)

    def _take_value_of_split(self, token: re.Match[str], label: Label, written: str) -> None:
        """The form "Loss: 1.38, Train: 0.31, Val: 0.24": a metric that is not named has the name of the split."""
        is_named = label.split and label.form in (_form(":"), _form("="))
        if is_named and self._row.epoch is not None and "." in written:
            value = fraction_of(written) if token["percent"] else float(written)
            self._row.places[label.split] = (token.start(), token.start() + len(written))
            self._row.doubtful.append(MetricValue(label.split, value, "split: value", token["percent"] is not None))

    def _take_value(self, token: re.Match[str], label: Label, written: str) -> None:
        behind = _PERCENT_BEHIND.match(self._line, token.end()) is not None
        is_percent = token["percent"] is not None or label.percent or behind
        whole = written.lstrip("+-").isdigit() and not is_percent
        if whole and (label.name.endswith(("error", "errors")) or (label.tight and label.role is Role.DOUBTFUL)):
            return
        if has_unclear_comma(token[0]) or _DECIMAL_COMMA.match(self._line, token.end()):
            self._row.by_value = True
            self._row.left_out.append(LeftOut(self._prefixed(label.name), UNCLEAR_COMMA))
            return
        if written in _WIDTHS and label.name.endswith(("precision", "bits")) and not is_percent:
            self._row.by_value = True
            self._row.left_out.append(LeftOut(self._prefixed(label.name), "it may be how wide numbers are"))
            return
        why = self._is_not_the_value(token, label, written, whole=whole)
        if self._went_back and not (why or label.split or has_split(label.name) or keeps_no_prefix(label.name)):
            self._row.left_out += [LeftOut(label.name, _WHOSE_SPLIT)] if label.role is Role.METRIC else []
            return
        if why:
            self._row.left_out.append(LeftOut(self._prefixed(label.name), why))
            return
        value = fraction_of(written) if is_percent else float(written)
        self._row.places[self._prefixed(label.name)] = (token.start(), token.start() + len(written))
        self._add(label, value, label.form + ("%" if is_percent else ""), fraction=is_percent)

    def _is_not_the_value(self, token: re.Match[str], label: Label, written: str, *, whole: bool) -> str:
        """Why a number after a name is not its value: more follows, or it says how much that changed; else ""."""
        after_sum, self._after_sum = self._after_sum, False
        if after_sum:
            return _IN_SUM
        if label.doubt and label.role is Role.METRIC and not (self._row.has_clock or self._row.total):
            return label.doubt
        if _GOES_ON.match(self._line, token.end()):
            return _SEVERAL
        if whole and label.form == _form("") and _NUMBERED.match(self._line, token.end()):
            return _SEVERAL
        if whole and _OF_A_WORD.match(self._line, token.end()):
            return _IN_WORD
        if whole and label.form == _form("=") and _SUM.match(self._line, token.end()):
            self._after_sum = True
            return _IN_SUM
        if label.form == _form("=") and _FORMULA.match(self._line, token.end()):
            return _IN_SUM
        if label.role is Role.METRIC and _SUM_WITH_RESULT.match(self._line, token.end()):
            return _IN_SUM
        if whole and len(written) <= _MOST_BEFORE_GROUPS and _GROUPS.match(self._line, token.end()):
            return _SEVERAL
        return "a change of it, not its value" if written[0] == "+" and label.form == _form("") else ""

    def _add(self, label: Label, value: float, form: str, *, fraction: bool) -> None:
        found = MetricValue(self._prefixed(label.name), value, form, fraction)
        if label.role is Role.METRIC:
            self._row.values.append(found)
            self._last_was_value = True
        else:
            self._row.doubtful.append(found)

    def _prefixed(self, name: str) -> str:
        name = f"{name}[{self._row.layer}]" if self._row.layer else name
        name = f"{name}_{self._average}" if self._average and self._average not in name else name
        if not self._split or keeps_no_prefix(name) or has_split(name):
            return name
        return f"{self._split}_{name}"

    def _take_leading_brackets(self) -> None:
        """The forms "[1,  2000] loss: 2.2" (epoch and batch) and "[10] valid-logloss:0.2" (round, also "[1,200]")."""
        if self._row.has_clock:
            return
        if "epoch" in self._line and (told := _LEADING_EPOCH.match(self._line)):
            self._row.epoch, self._row.places[EPOCH] = float(told[1]), told.span(1)
        if not self._line.lstrip().startswith("["):
            return
        if pair := _LEADING_PAIR.match(self._line):
            self._row.epoch, self._row.places[EPOCH] = float(pair[1]), pair.span(1)
        elif (self._row.values or self._row.doubtful) and (lone := _LEADING_STEP.match(self._line)):
            self._row.step, self._row.places[STEP] = float(lone[1].replace(",", "")), lone.span(1)

    def _averaged(self, index: int, value: MetricValue) -> MetricValue:
        if index not in self._averages:
            return value
        average, self._row.places[value.name] = self._averages[index]
        return MetricValue(value.name, average, "name: value (average)", value.fraction)


def _says_final(lowered: str) -> bool:
    """Whether a word of the line starts with final, test or best; looked at closely only if one could."""
    return ("est" in lowered or "final" in lowered) and _FINAL.search(lowered) is not None


_METRIC = (
    r"(?P<metric>accuracy|acc|loss|error|precision|recall|f1|perplexity|ppl|auc|auroc|rmse|mse|mae|mape|rmsle|nll|r2|map"
    r"|miou|iou|dice|bleu|wer|cer|psnr|ssim|fid|ece|rae|rse)"
)
_VALUE = (
    r"(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?\s?%?|nan|inf)\s*+"
    r"(?:(?:±|\+/?-)\s*+[\d.]+(?:[eE][-+]?\d+)?\s?%?\s*+)?(?:\.\s*+)?$"
)
_CLASS = re.compile(
    rf"^\s*{_METRIC} (?:(?:for|of) class\s*+(?::\s*+)?|of\s+)(?P<class>\w[\w\-]*)\s*(?:is|:|=)\s*{_VALUE}",
    re.IGNORECASE,
)
_WHOLE = word_set("model network net classifier ensemble test train training validation val data dataset system")
_COCO = re.compile(
    r"^\s*Average (?:Precision|Recall)\s+\((?P<metric>AP|AR)\) @\[ IoU=(?P<iou>[\d.:]+)\s*\| area=\s*(?P<area>\w+)\s*"
    r"\| maxDets=\s*(?P<most>\d+)\s*\] = (?P<value>-?[\d.]+)\s*$"
)
_COCO_TYPE = re.compile(
    r"(?:IoU metric: |Evaluate annotation type \*|.{0,200}\bEvaluation results for )(?P<type>\w{1,20})\b"
)
_ABOUT = re.compile(
    rf"^\s*(?P<before>[\w -]{{0,40}}?\(?)\b{_METRIC}\)?(?:[ -]+score)? (?:of|on|for|over|across|in)\b(?P<about>[^:=]*)"
    rf"(?:[:=]|\bis\b)\s*{_VALUE}",
    re.IGNORECASE,
)
_VALUE_WITHIN = re.compile(r"\bis\s+[-+]?\.?\d")
# "Training loss (for 1 batch) at step 0: 2.1", "Cost after iteration 100: 0.6", "Loss step 10: 5.07"
_AT_A_STEP = re.compile(
    r"^\s*(?P<name>[A-Za-z][A-Za-z_ /.-]{1,50}?)(?<! )\s*+(?:\([^()]{0,40}\)\s*+)?(?:(?:at|after|in|for)\s++)?"
    r"(?P<clock>(?:global[ _])?step|iteration|iter|epoch|round|episode)\s+#?(?P<at>\d{1,9})\s*(?:[:=]|\bis\b)\s*"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_TOP = re.compile(r"\btop-\d{1,3}\s*$", re.IGNORECASE)
_EPOCH_TOLD = re.compile(r"\bepoch (\d{1,9})\b", re.IGNORECASE)
_ESTIMATE = re.compile(rf"(?<![\d.,])(?P<value>[-+]?[\d.]+) {_METRIC} estimate based on ", re.IGNORECASE)


_MAY_BE_A_SENTENCE = re.compile(
    r" (?:of|on|for|over|across|in) |maxDets|(?:step|iter|iteration|epoch|round|episode) #?\d+ ?(?:[:=]| is)"
)


def may_be_a_sentence(line: str) -> bool:
    """Whether it is worth trying `read_sentence`; cheap."""
    return _MAY_BE_A_SENTENCE.search(line) is not None


def evaluated_by(line: str) -> str:
    """What a line says that pycocotools evaluates by from here on ("bbox", "segm"); "" for any other line."""
    found = _COCO_TYPE.match(line) if "valuat" in line or "IoU" in line else None
    return "" if found is None else found["type"].lower()


def read_sentence(line: str, *, evaluated: str = "") -> Row | None:
    """The value told in a sentence; None for any other line. evaluated: what `evaluated_by` said above it."""
    if (found := _COCO.match(line)) is not None:
        name = f"{found['metric']}@{found['iou']}/{found['area']}/{found['most']}"
        name = name if evaluated in ("", "bbox") else f"{evaluated}_{name}"
    elif (found := _CLASS.match(line)) is not None and found["class"].lower() not in _WHOLE:
        name = f"{found['metric'].lower()}[{found['class']}]"
    elif (found := _about(line)) is not None:
        split = split_in(found["before"]) or split_in(found["about"])
        name = "_".join(filter(None, [split, *_what_kind_of(found["before"]), found["metric"].lower()]))
    elif (found := _ESTIMATE.search(line)) is not None:
        name = found["metric"].lower()
    else:
        return _read_at_a_step(line)
    value = read_number(found["value"])
    is_a_code = name.endswith("error") and found["value"].isdigit()
    if value is None or is_a_code:
        return _read_at_a_step(line)
    if found.re is _ABOUT and _OF_ANOTHER.search(line, 0, found.start("value")):
        return Row(left_out=[LeftOut(name, _WHY_OF_ANOTHER)], by_value=True)
    is_percent = "%" in found["value"]
    values = [MetricValue(name, value, "sentence" + ("%" if is_percent else ""), is_percent)]
    epoch = _EPOCH_TOLD.search(line, 0, found.start("value"))
    return Row(values, epoch=float(epoch[1]) if epoch else None, final="test" in name)


def _about(line: str) -> re.Match[str] | None:
    """A metric of something and its value; "MSE for 10 samples is 1.7 and RMSE is 1.3" ends in that of another one."""
    found = _ABOUT.match(line)
    if found is None or _SAID_OF_IT.search(found["before"]) or _VALUE_WITHIN.search(found["about"]):
        return None
    return found


def _what_kind_of(before: str) -> list[str]:
    """The words right before a metric in a sentence that belong to it: "Adversarial accuracy on test set: 0.9"."""
    if (top := _TOP.search(before)) is not None:
        return [top[0].strip().lower()]
    if before.endswith("("):  # "The mean squared error (MSE) on test set"
        return []
    words = [word.lower() for word in _words(_BREAK.split(before.rstrip())[-1], separated=True)]
    return [word for word in words if word not in SPLITS and word not in _OF_NOBODY and word not in _ARTICLES]


def _read_at_a_step(line: str) -> Row | None:
    """The value of a name that is followed by where in the training it belongs."""
    if (found := _AT_A_STEP.match(line)) is None:
        return None
    name = name_of(_words(_BREAK.split(found["name"])[-1], separated=True))
    value = read_number(found["value"])
    if value is None or not is_metric(name) or (name.endswith("error") and found["value"].isdigit()):
        return None
    is_percent = "%" in found["value"]
    row = Row([MetricValue(name, value, "sentence" + ("%" if is_percent else ""), is_percent)], split=split_in(name))
    if found["clock"].lower() == "epoch":
        row.epoch = float(found["at"])
    else:
        row.step = float(found["at"])
    return row


_CATBOOST = re.compile(r"\s*(?P<round>\d{1,9}):\t(?=(?:learn|test): )")
_CATBOOST_VALUE = re.compile(r"(?P<name>learn|test\d*|best): (?P<value>\S+)")
_CATBOOST_TIMES = "total: "
# "engine_capacity, bin=24 score 888794.2": how good a split of a tree is, and not the model.
_CATBOOST_SPLIT = re.compile(r".{0,300}\b(?:bin|border|value)=\S{1,40} score [\d.]+(?:e[-+]?\d+)?\s*$")


def read_catboost(line: str) -> Row | None:
    r"""The values of one round of CatBoost ("0:\tlearn: 0.90\ttest: 0.94\tbest: 0.94 (0)\ttotal: 52.7ms"), or None.

    They have the name of a split, and which metric it is is not said. What it tells of the trees gives nothing.
    """
    if "score " in line and _CATBOOST_SPLIT.match(line):
        return Row()
    found = _CATBOOST.match(line)
    if found is None:
        return None
    told = line[found.end() :].partition(_CATBOOST_TIMES)[0]
    numbers = {part["name"]: read_number(part["value"]) for part in _CATBOOST_VALUE.finditer(told)}
    values = [MetricValue(name, value, "name: value") for name, value in numbers.items() if value is not None]
    return Row(values, step=float(found["round"]))


_BARE_HEADING = re.compile(
    r"[\s\-=*#>~_<\[(+|.:…─━═]*(?P<words>[A-Za-z]+(?:[ -][A-Za-z]+){0,4})[\s\-=*#<>~_\])+|.…─━═]*$"
)
_IN_HEADING = word_set(
    """set phase results result metrics performance on the data model running run start starting begin stage step loop
    in progress now split reported"""
)
_HEADED = SPLITS | {"cross-validation": "cv"}
_LONGEST_SECTION = 60
_OF_AN_EPOCH = re.compile(r"\bepoch\b\W{0,3}\d{1,9}(?:\s?/\s?\d{1,9})?", re.IGNORECASE)


_COUNTED_STEP = re.compile(r"\bstep \d{1,9}/(\d{1,9})\b")


class SplitSection:
    """The split of the data that a line by itself named ("Validation", "=== Test set ==="), for the lines below it.

    It may name its epoch too ("[val] epoch: 1/15"). It ends with the next heading, where the next epoch or step begins,
    and where lines are no longer indented. Steps of its own, counted to another number than those of the training, are
    part of it ("Eval begin...", then "step 35/35" within an epoch of 197 steps).
    """

    def __init__(self) -> None:
        self.split = ""
        self._total = self._total_of_training = 0
        self._lines = 0
        self._is_indented = False

    @property
    def has_lines(self) -> bool:
        """Whether the heading itself is over."""
        return self._lines > 0

    def has_step(self, line: str) -> bool:
        """Whether a line within an epoch is of a step of the section itself."""
        counted = _COUNTED_STEP.search(line)
        total = 0 if counted is None else int(counted[1])
        if not self.split or self._lines == 0:
            self._total_of_training = total or self._total_of_training
            return False
        if self._lines == 1 and total not in (0, self._total_of_training) and self._total_of_training:
            self._total = total
        return 0 < total == self._total

    def end(self) -> None:
        """The lines that follow are of no section."""
        self.split = ""

    def follow(self, line: str) -> None:
        """Look whether a line begins a section or ends one."""
        if (named := _split_alone_in(line)) is not None:
            self.split, self._lines, self._total = ("" if named == "train" else named), 0, 0
        elif self.split and line.strip():
            self._lines += 1
            is_indented = line[:1] in " \t"
            self._is_indented = is_indented if self._lines == 1 else self._is_indented
            if self._lines > _LONGEST_SECTION or (self._is_indented and not is_indented):
                self.split = ""


def _split_alone_in(line: str) -> str | None:
    """The split of the data that a line names and nothing else does; None for most lines."""
    if len(line) > _LONGEST_SECTION:
        return None
    if "poch" in line or "POCH" in line:
        line = _OF_AN_EPOCH.sub(" ", line, count=1)
    if line[-1:].isdigit():
        return None
    found = _BARE_HEADING.match(plain(line))
    words = found["words"].lower().split() if found else []
    splits = [_HEADED[word] for word in words if word in _HEADED]
    return splits[-1] if splits and all(word in _HEADED or word in _IN_HEADING for word in words) else None
