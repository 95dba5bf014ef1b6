"""What the training's source says, which is parsed and never run: constants it seeds with, an option for the seed.

A generator that is built with a constant shows in no later call. Options are understood of argparse and what follows
its `add_argument`, click and typer, absl and TensorFlow flags, fire, dataclasses given to tyro, simple_parsing or
Hugging Face's parser. What a file says is kept between runs, with its hash: hundreds of files are read once.
"""

from __future__ import annotations

import ast
import functools
import re
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Pattern

from . import frameworks
from .fingerprint import Cache
from .usercode import started_in, variables_asked_for

MAX_SOURCE_BYTES = 2 * 2**20
_SEED_KEYWORDS = ("random_state", "seed", "random_seed")

# As they are tried: a script that has several is offered the plainest.
_OPTIONS = (
    "seed",
    "random_seed",
    "rng_seed",
    "manual_seed",
    "manualSeed",
    "seed_everything",
    "random_state",
    "rand_seed",
)
_DECLARING = ("add_argument", "add_option", "option", "Option")
_FLAGS = ("DEFINE_integer", "DEFINE_int", "DEFINE_string", "DEFINE_float")
_DATACLASS_READERS = ("cli", "HfArgumentParser", "parse", "add_arguments", "TrlParser")
_FUNCTION_READERS = ("Fire", "run", "command", "cli", "auto_cli", "CLI")


class SourceSeed(NamedTuple):
    """A constant seed in the source: the call as told to the user, the constant, and its lines.

    is_setting: the constant is a setting (`random_state=`) of something that may build a generator with it later.
    """

    call: str
    value: str
    line: int
    last_line: int
    is_setting: bool = False

    @property
    def is_native(self) -> bool:
        """Whether it goes to a library that draws its random numbers in code of its own, where no call is seen."""
        native = tuple(name for framework in frameworks.every() for name in framework.native)
        return self.is_setting and self.call.lower().startswith(native)


class SourceFacts(NamedTuple):
    """What one source file says. option: one for the seed, empty where it has none."""

    sha256: str
    variables: list[str]
    option: str
    seeds: list[SourceSeed]


# A file that changed just before it was read may change again with the same times: clocks of file systems are coarse.
_SETTLED_SECONDS = 2.0
_RULES = (Path(__file__), *(Path(frameworks.__file__).parent.glob("*.py")))


def facts_of(paths: Iterable[Path], folder: Path | None, origin: Path | None = None) -> dict[Path, SourceFacts]:
    """What these files say; those that cannot be read are left out. Kept for the folder that the training started in.

    A kept answer is that of the same inode, size and times, by the same rules. origin: the folder that `folder` is a
    copy of: what a file said there, it says here, if size and time are the same.
    """
    cache = Cache(f"sources-{sha256(str(origin or folder).encode(errors='surrogateescape')).hexdigest()[:16]}")
    rules = _rules()
    found = {path: _facts(path, _original(path, folder, origin), rules, cache) for path in paths}
    cache.save()
    return {path: facts for path, facts in found.items() if facts is not None}


@functools.lru_cache(maxsize=None)
def _rules() -> str:
    """Another isorun may find other things in the same file; this process has the rules that it loaded."""
    newest = max(path.stat().st_mtime_ns for path in _RULES)
    return f"{len(_RULES)}-{newest}"


def look_ahead() -> None:
    """In a fork server: find out what is the same for all that it forks, so that they need not, one by one."""
    facts_of((), started_in())
    _telling()


def _original(path: Path, folder: Path | None, origin: Path | None) -> Path:
    if origin is None or folder is None:
        return path
    try:
        first = origin / path.relative_to(folder)
        there, here = first.stat(), path.stat()
    except (ValueError, OSError):
        return path
    return first if (there.st_size, there.st_mtime_ns) == (here.st_size, here.st_mtime_ns) else path


def _facts(path: Path, original: Path, rules: str, cache: Cache) -> SourceFacts | None:
    try:
        stat = original.stat()
        stamp = f"{stat.st_ino}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ctime_ns}|{rules}"
        known = _from_json(cache.get(str(original), stamp))
        if known is not None:
            return known
        settled = time.time() - max(stat.st_mtime, stat.st_ctime) > _SETTLED_SECONDS
        facts = read_facts(path.read_bytes())
    except OSError:
        return None
    if settled:
        cache.put(str(original), stamp, facts)
    return facts


def _from_json(kept: Any) -> SourceFacts | None:
    """A cache is a file that anybody may have changed: what is no answer is none."""
    try:
        digest, variables, option, seeds = kept
        return SourceFacts(str(digest), [str(name) for name in variables], str(option), [_seed(item) for item in seeds])
    except (TypeError, ValueError):
        return None


def _seed(item: Any) -> SourceSeed:
    call, value, line, last_line, is_setting = item
    return SourceSeed(str(call), str(value), int(line), int(last_line), bool(is_setting))


def read_facts(source: bytes) -> SourceFacts:
    """What the content of a file says. Most files do not even have a word that could be a seed, and are not parsed."""
    digest, variables = sha256(source).hexdigest(), sorted(variables_asked_for(source))
    tree = _tree(source) if _telling().search(source) else None
    if tree is None:
        return SourceFacts(digest, variables, "", [])
    return SourceFacts(digest, variables, seed_option([tree]), find_in_tree(tree))


@functools.lru_cache(maxsize=None)
def _telling() -> Pattern[bytes]:
    """What a source has at least one of, where there is anything to find in it."""
    calls = sorted({name for framework in frameworks.every() for name in framework.seeding_names})
    words = ["[Ss]eed", "random.state", "TrainingArguments", "LightningCLI", r"random\s*\.\s*key", *_calls(calls)]
    return re.compile("|".join(words).encode())


def _calls(names: Iterable[str]) -> Iterator[str]:
    return (rf"\b{re.escape(name)}\s*\(" for name in names)


def parsed(path: Path) -> ast.Module | None:
    """The tree of a source file; None for a file that is too large or no Python."""
    try:
        return _tree(path.read_bytes()) if path.stat().st_size <= MAX_SOURCE_BYTES else None
    except OSError:
        return None


def _tree(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source) if len(source) <= MAX_SOURCE_BYTES else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def find_in_tree(tree: ast.Module) -> list[SourceSeed]:
    """The constant seeds of one parsed source, in the order of its lines."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = [seed for call in calls for seed in _seeds_of(call)]
    return sorted(found, key=lambda seed: seed.line)


def _seeds_of(call: ast.Call) -> Iterator[SourceSeed]:
    name = _dotted(call.func)
    lines = (call.lineno, call.end_lineno or call.lineno)
    constant = _constant(call.args[0]) if call.args else None
    by_keyword = {word.arg: _constant(word.value) for word in call.keywords if word.arg in _SEED_KEYWORDS}
    told = _told_as(name)
    if constant is not None and told is not None:
        yield SourceSeed(told, constant, *lines)
    for keyword, value in by_keyword.items():
        if value is not None:
            called = f"{told or name or 'call'}({keyword}=)"
            yield SourceSeed(called, value, *lines, is_setting=told is None)


def _told_as(called: str) -> str | None:
    found = (framework.constant_seed(called) for framework in frameworks.every())
    return next((told for told in found if told is not None), None)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{_dotted(node.func)}()"
    return node.id if isinstance(node, ast.Name) else ""


def _constant(node: ast.expr) -> str | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if is_number or isinstance(value, (list, tuple)) else None


def seed_option(trees: Iterable[ast.AST]) -> str:
    """The option, such as "--seed"; the one of the first tree that has any, empty where none has."""
    for tree in trees:
        found = set(_options(tree))
        for name in _OPTIONS:
            spellings = [option for option in sorted(found) if option.lstrip("-").replace("-", "_") == name]
            if spellings:
                return spellings[0]
    return ""


def _options(tree: ast.AST) -> Iterator[str]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {_last(call.func) for call in calls}
    for call in calls:
        texts = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        if _last(call.func) in _DECLARING:
            yield from (text for text in texts if text.startswith("-"))
        elif _last(call.func) in _FLAGS and texts:
            yield f"--{texts[0]}"
    if "HfArgumentParser" in names or "TrlParser" in names:
        yield from ("--seed" for node in ast.walk(tree) if _is_named(node, "TrainingArguments"))
    if "seed_everything_default" in {word.arg for call in calls for word in call.keywords} or "LightningCLI" in names:
        yield "--seed_everything"
    yield from _parameters(tree, names)


def _parameters(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Fields and parameters that a library turns into options by their names."""
    handed_over = _handed_over(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not names.isdisjoint(_DATACLASS_READERS) and _is_dataclass(node):
            fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
            yield from (f"--{field.id}" for field in fields if isinstance(field, ast.Name))
        elif isinstance(node, ast.FunctionDef) and _is_command(node, handed_over):
            yield from (f"--{word.arg}" for word in (*node.args.args, *node.args.kwonlyargs))


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_last(decorator) == "dataclass" for decorator in node.decorator_list)


def _is_command(function: ast.FunctionDef, handed_over: set[str]) -> bool:
    """Whether a function's parameters are options: a typer command, or handed to `typer.run` or `fire.Fire`."""
    if any(isinstance(item, ast.Call) and _dotted_end(item.func) == "app.command" for item in function.decorator_list):
        return True
    return function.name in handed_over


def _handed_over(tree: ast.AST) -> set[str]:
    """The names that are given to a library which reads a function's parameters as options."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _reads_functions(node))
    return {word.id for call in calls for word in call.args if isinstance(word, ast.Name)}


def _reads_functions(call: ast.Call) -> bool:
    return _last(call.func) in _FUNCTION_READERS and _dotted_end(call.func) not in ("subprocess.run", "asyncio.run")


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and _last(node).endswith(name)


def _dotted_end(node: ast.expr) -> str:
    """The last two parts of a dotted name."""
    if isinstance(node, ast.Attribute):
        return f"{_last(node.value)}.{node.attr}"
    return _last(node)


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
