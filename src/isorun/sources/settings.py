"""What was set, told from what came out: a training prints both, often in the same words.

A line is one of settings by its words, and a block of lines by its names: two that only settings have ("lr: 0.1",
"batch_size: 32") say that "loss: 1.0" between them was set, too. That holds before the training has begun. Where
nothing else is printed, the same lines are what came out beside what was set.
"""

from __future__ import annotations

import re

from isorun.sources.messages import message_of
from isorun.sources.rows import Row, word_set

__all__ = [
    "SettingsBlock",
    "is_about_loading",
    "is_about_settings",
    "is_an_aim",
    "lists_settings",
    "names_settings",
    "says_it_was_set",
]

_SETTINGS = re.compile(r"\s*(?:\w*Namespace|\w*Config|\w*Arguments|args|hparams|params|parameters)\b\s*[:=]?\s*[({]")
# What was set, or what a training starts from; before it has begun this is no result of it.
_ABOUT_SETTINGS = re.compile(
    r"""\s*(?:[=\-]+>\s*)?(?:the\s+|using\s+|run\s+|training\s+|model\s+)?
        (?:(?:config(?:uration)?|args|arguments|hyper-?\s?param(?:eter)?s|hparams|settings|options|flags)\s*[:=]
          |(?P<loading>loading|loaded|resuming|resumed|restoring|restored)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_SETTING_KEY = re.compile(
    r"""['"](?:lr|learning_rate|batch_size|seed|(?:num_|max_|n_)?(?:epochs|steps|iters)|weight_decay|momentum|optimizer
        |num_workers|dropout|device|hidden_(?:size|dim)|warmup_steps)['"]\s*:""",
    re.VERBOSE,
)
_ASSIGNED = re.compile(
    r"(?<![\w.])(?:lr|learning_rate|batch(?:_size)?|bs|seed|(?:n_|num_|max_)?epochs|weight_decay|wd|momentum|optimizer"
    r"|dropout|hidden(?:_size|_dim)?)=",
    re.IGNORECASE,
)
_KEYS_AT_LEAST = 2
_AIM = re.compile(r"(?:target|goal|desired|required)[_\- ]|[\w.\- ]+[_\- ](?:goal|target)$", re.IGNORECASE)
_SET = re.compile(r"=(?:True|False|None)\b")
_SETTINGS_AT_LEAST = 3


def lists_settings(line: str) -> bool:
    """Whether the line prints what was set ("amp=False, augment=False, iou=0.7, save=True"), not what came out."""
    return bool(_SETTINGS.match(line)) or ("=" in line and len(_SET.findall(line)) >= _SETTINGS_AT_LEAST)


def is_about_settings(line: str, row: Row) -> bool:
    """Whether a line tells what was set or loaded; an object does by two keys that only settings have, or by an aim."""
    if _ABOUT_SETTINGS.match(message_of(line)) or names_settings(line) or all(is_an_aim(v.name) for v in row.values):
        return True
    keys = len(_SETTING_KEY.findall(line)) if "{" in line else 0
    return keys >= _KEYS_AT_LEAST or (keys > 0 and any(is_an_aim(value.name) for value in row.values))


def says_it_was_set(line: str) -> bool:
    """Whether a line begins with a word for settings ("hyperparameters: lr0=0.01, iou_t=0.2"): all in it was set."""
    found = _ABOUT_SETTINGS.match(message_of(line))
    return found is not None and found["loading"] is None


def is_about_loading(line: str) -> bool:
    """Whether a line tells what another training left ("=> loaded checkpoint (epoch 5, best_acc 0.88)")."""
    found = _ABOUT_SETTINGS.match(message_of(line))
    return found is not None and found["loading"] is not None


def names_settings(line: str) -> bool:
    """Whether two names of a line are those of settings, and no bracket says whose ("lr=0.1 acc=0.9 batch=32")."""
    return "{" not in line and len(_ASSIGNED.findall(line)) >= _KEYS_AT_LEAST


def is_an_aim(name: str) -> bool:
    """Whether a name says what is to be reached, which no training gave."""
    return _AIM.match(name) is not None


_OF_SETTINGS = word_set(
    """lr learning_rate batch batch_size bs seed epochs n_epochs num_epochs max_epochs n_steps num_steps max_steps iters
    max_iters weight_decay wd momentum optimizer num_workers workers dropout device hidden hidden_size hidden_dim
    warmup_steps"""
)
# A name and at most one value: "lr: 0.1", "  betas: [0.9, 0.999]", "model:", "- adam". A second name is another form.
_ENTRY = re.compile(
    r"(?P<indent>\s*)(?P<item>-\s+)?(?P<name>[A-Za-z_][\w.\-/]{0,60})\s*[:=]\s*(?P<value>\S+(?:\s+[^\s:=]+)*+)?\s*$"
    r"|\s*-\s+\S+\s*$"
)
_BETWEEN = re.compile(r"[\s\-=*#_~+]*$")  # an empty line, or a rule
_MOST_NAMES = 500


class SettingsBlock:
    """Names with a value each, below each other: YAML, or options as scripts list them.

    A block has each name once in each of its parts: where one comes again, another block begins.
    """

    def __init__(self) -> None:
        self._above: list[tuple[int, str]] = []
        self._names: set[str] = set()
        self._settings: set[str] = set()
        self._items = 0
        self._told_before: set[str] = set()

    @property
    def open(self) -> bool:
        """Whether the last line is one of a block."""
        return bool(self._names)

    @property
    def was_set(self) -> bool:
        """Whether that block tells what was set."""
        return len(self._settings) >= _KEYS_AT_LEAST

    def follow(self, line: str) -> bool:
        """Take the next line, which goes on with the block or ends it; whether a block of settings is told again."""
        message = message_of(line)
        entry = _ENTRY.match(message)
        if entry is None:
            if not _BETWEEN.match(message):
                self._end()
            return False
        if entry["name"] is None:
            return False
        name = self._path_of(entry)
        if name in self._names or len(self._names) >= _MOST_NAMES:
            self._end()
            name = self._path_of(entry)
        self._names.add(name)
        if entry["value"] and (last := re.split(r"[./]", name.replace("-", "_"))[-1]) in _OF_SETTINGS:
            self._settings.add(last)
        return name in self._told_before

    def _path_of(self, entry: re.Match[str]) -> str:
        """A name with those that it stands below; each item of a list is a part of its own."""
        indent = len(entry["indent"]) + len(entry["item"] or "")
        self._above = [(place, name) for place, name in self._above if place < indent]
        if entry["item"]:
            self._items += 1
            self._above.append((indent - 1, str(self._items)))
        path = "/".join([*(name for _, name in self._above), entry["name"].lower()])
        if entry["value"] is None:
            self._above.append((indent, entry["name"].lower()))
        return path

    def _end(self) -> None:
        if self.was_set:
            self._told_before |= self._names
        self._above, self._names, self._settings = [], set(), set()
