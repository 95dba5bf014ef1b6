"""A line of output as its writer meant it: what surrounds the message, and what in it is no value, is taken off.

Around it stand colours, cursor movements, dates, levels, names of loggers, and what says which of several processes
printed it. In it stand names of files, and objects as Python shows them: their numbers were set.
"""

from __future__ import annotations

import itertools
import re

from isorun.sources.rows import SPLITS, is_metric

__all__ = [
    "TRACEBACK",
    "UNREADABLE",
    "class_named_alone",
    "ends_a_part",
    "is_text",
    "may_begin_a_traceback",
    "message_of",
    "number_in_front",
    "plain",
    "process_of",
    "without_files",
    "without_reprs",
]

UNREADABLE = "\ufffd"
"""What stands in a text for bytes that were none."""
TRACEBACK = "Traceback (most recent call last)"
"""What every traceback has in its first line."""

# Colours and cursor movements, then titles and links (a text up to its end mark), then single characters.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_LEVEL = re.compile(
    r"""^[^{}=]{0,80}?\b(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)\b[\])]*\s*
        (?:[|:\-]\s*)?
        (?!\[(?i:train(?:ing)?|trn|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)\])
        (?:\[?(?!\d)[\w.<>]+(?::[\w.<>]+)*\]?(?:\s+[-|]\s+|\]\s*:?\s*|:(?=[A-Za-z_{\[])))?""",
    re.VERBOSE,
)
_ABSL = re.compile(r"^[IWEF]\d{4} [\d:.]+\s+\d+ [\w./-]+:\d+\] ")
_RANK = re.compile(
    r"^\s*(?:\([\w.:-]+ pid=\d+(?:, ip=[\d.]+)?\)|\[(?:rank|default)\s?\d+\]:?|\[\d+,\d+\]<std(?:out|err)>:)\s*"
)
# What says which of several processes a line is from; "rank=10 rmse=0.9" says what was set.
_PROCESS = re.compile(
    r"""\s*\([\w.:-]+\ (?P<pid>pid=\d+)
        |\s*\[\d+,(?P<tagged>\d+)\]<std
        |\s*(?:rank|gpu|process|proc)\s?[:=\#]?\s?(?P<first>\d{1,4})(?=\s*[:,|]|\s+(?:epoch|step|iter)\b)
        |.{0,60}?[\[(](?:rank|default|gpu|process|proc)\s?[:=\#]?\s?(?P<bracketed>\d{1,4})[\])]""",
    re.VERBOSE | re.IGNORECASE,
)
# What `srun -l` and `mpirun` put before each line, and programs before theirs: a rank, or a count.
_IN_FRONT = re.compile(r"\[(\d{1,4})\]:? (?=\S)|(\d{1,4}): (?=\S)")
_PROCESS_WORDS = ("ank", "pid=", "default", "gpu", "GPU", "roc", "<std")
_DAY_AND_LOGGER = re.compile(r"^\[\d\d/\d\d \d\d:\d\d:\d\d [\w.]+\]:?\s*")  # "[11/01 11:27:04 d2.utils.events]: "
_DATED_LOGGER = re.compile(r"^\[?\d{4}-\d\d-\d\d[ T][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?\s*(?:[-|]\s+)?(?:[\w.]+\s+-\s+)?")
# "[NeMo I 2026-11-18 10:00:01 wer:121] ": the line of a source file that a message is from
_DATED_BRACKETS = re.compile(r"^\[[A-Za-z ]{1,20} \d{4}-\d\d-\d\d[ T][\d:.,]+(?:\s[^\[\]]{0,80})?\]:?\s*")

_PREFIXES = (_LEVEL, _ABSL, _DATED_LOGGER, _DAY_AND_LOGGER, _DATED_BRACKETS)
_PREFIX_STARTS = frozenset("[( TDINWECF")
_TEXT_PER_NOISE = 8
_DATE_SIGNS = frozenset("-/:.")


def plain(line: str) -> str:
    """The line without colour codes, backspaces and other control characters; tabs stay, also as syslog writes them."""
    if "#011" in line:
        line = line.replace("#011", "\t")
    return line if line.isprintable() else _CONTROL.sub("", line)


_CLASS_HEADING = re.compile(
    r"\s*(?:C(?:lass|LASS)(?:[ _][Nn](?:ame|AME))?|class[ _]name)\s*:\s*(?P<name>[^\d\s:=][^:=]{0,60})$"
)


def class_named_alone(line: str) -> str:
    """The class that a line names and nothing else does ("Class name: cat"), of which the lines below tell; else ""."""
    found = _CLASS_HEADING.match(message_of(line)) if "lass" in line or "CLASS" in line else None
    return "" if found is None else found["name"].strip()


def ends_a_part(line: str) -> bool:
    """Whether a line is empty or a rule, behind its date and level."""
    return not message_of(line).strip(" \t-=*_#─━")


def is_text(line: str) -> bool:
    """Whether a line is text: bytes of something else have control characters and much that is no character at all."""
    if UNREADABLE not in line:
        return True
    controls = sum(character < " " and character not in "\t\b\x1b" for character in line)
    return not controls or (line.count(UNREADABLE) + controls) * _TEXT_PER_NOISE < len(line)


def may_begin_a_traceback(line: str) -> bool:
    """Whether a line may be a frame or the head of a traceback; cheap, since it is asked for every line."""
    return ", line " in line or "Traceback" in line  # between its words may be colours


def message_of(line: str) -> str:
    """The message of a log line, without date, level, logger, process or rank; other lines as they are."""
    if not _may_have_a_prefix(line):
        return line
    line = _RANK.sub("", line, count=1) if line[:1] in "([" or "pid=" in line[:40] else line
    for prefix in _PREFIXES:
        if (found := prefix.match(line)) is not None:
            return line[found.end() :]
    return line


def _may_have_a_prefix(line: str) -> bool:
    """Whether the line starts like a date, a time, a bracket or a level; cheap, since it is asked for every line."""
    first = line[:1]
    return first in _PREFIX_STARTS or (first.isdigit() and (line[4:5] in _DATE_SIGNS or line[2:3] in _DATE_SIGNS))


def process_of(line: str) -> str:
    """Which of several processes says that it printed the line: its rank ("0"), or "pid=7"; "" for most lines."""
    if not any(word in line for word in _PROCESS_WORDS):
        return ""
    found = _PROCESS.match(line)
    return "" if found is None else next(filter(None, found.groups()), "").lstrip("0") or "0"


def number_in_front(line: str) -> tuple[int, str] | None:
    """The number before all else on a line, and the text after it ("[1] epoch 3", "1: epoch 3"); None without one."""
    if line[:1] != "[" and not line[:1].isdigit():
        return None
    found = _IN_FRONT.match(line)
    return None if found is None else (int(found[1] or found[2]), line[found.end() :])


# The name of a file says what was known when it was written, and often rounded.
_FILE_END = re.compile(
    r"\.(?:ckpt|pth?|pt2|bin|safetensors|h5|hdf5|keras|pkl|pickle|joblib|npz|npy|onnx|msgpack|params|pdparams|model|weights"
    r"|tar|zip|json|csv|txt|log|png|jpg|pdf)(?![\w.=])"
)


def without_files(line: str) -> str:
    """The line with blanks for names of files that have digits ("epoch=3-val_loss=0.46.ckpt"); all places stay."""
    for found in _FILE_END.finditer(line):
        start = max(line.rfind(sign, 0, found.start()) for sign in " \t\"'(`[<") + 1
        if any(character.isdigit() for character in line[start : found.start()]):
            line = f"{line[:start]}{' ' * (found.end() - start)}{line[found.end() :]}"
    return line


# "IntDistribution(high=32, low=2, step=1)", "<TrialState.COMPLETE: 1>": how Python shows an object; arrays are values.
_REPR = re.compile(
    r"(?<![\w.])(?:\w+\.)*+(?!\w{0,20}(?:Array|Tensor)\()(?P<kind>[A-Z]\w{0,80}+)\((?=[^()=]{0,200}=)"
    r"|<[A-Z]\w*\.\w+: [^<>]{0,40}>"
)
_BRACKET = re.compile(r"[()]")
_MOST_REPRS = 50
_LONGEST_WITH_REPRS = 20_000
_FIELD = re.compile(r"(?<![\w.])([A-Za-z_]\w*)=")
_SET_UP = re.compile(
    r"(?:Distribution|Trial|Study|Sampler|Pruner|Config|Configuration|Args|Arguments|Settings|Options|Params|Parameters|Space"
    r"|Namespace|Classifier|Regressor|Regression|CV|Pipeline|Estimator|Optimizer|Scheduler|Callback|Stopping|Checkpoint)$"
)


def without_reprs(line: str) -> str:
    """The line with blanks for objects shown as "Name(key=value, …)", whose fields were set; all places stay.

    One that has a metric among its fields may be a result ("EvalOutput(loss=0.5)") and stays, unless its name is that
    of settings; so does what is called after a metric or a moment: "Loss(train=0.5)", "Step(n=3)".
    """
    if "=" not in line or len(line) > _LONGEST_WITH_REPRS:
        return line
    end = 0
    for found in itertools.islice(_REPR.finditer(line), _MOST_REPRS):
        if found.start() < end or (found["kind"] or "a").isupper():  # "RMSE(val=0.5)" is no class
            continue
        if (kind := found["kind"]) is None:
            stop = found.end()
        else:
            stop = _closed_at(line, found.end())
            names = _FIELD.findall(line, found.end(), stop)
            if not _SET_UP.search(kind) and (_names_a_value(kind) or any(map(is_metric, names))):
                continue
        line, end = f"{line[: found.start()]}{' ' * (stop - found.start())}{line[stop:]}", stop
    return line


def _names_a_value(kind: str) -> bool:
    """Whether a word before brackets is no class but what the numbers in them are."""
    lowered = kind.lower()
    is_one_word = kind[1:] == lowered[1:]
    return is_one_word and (
        is_metric(lowered) or lowered in SPLITS or lowered in {"epoch", "step", "iter", "iteration"}
    )


def _closed_at(line: str, start: int) -> int:
    """Where the bracket that was opened right before `start` is closed; the end of the line where it is not."""
    depth = 1
    for bracket in _BRACKET.finditer(line, start):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return len(line)
