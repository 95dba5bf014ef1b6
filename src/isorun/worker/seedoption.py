"""Does a training have an option for its seed? Read in its source, which is parsed and never run.

Understood: argparse and what follows its `add_argument`, click and typer, absl and TensorFlow flags, fire, dataclasses
given to tyro, simple_parsing or Hugging Face's parser.
"""

from __future__ import annotations

import ast
from typing import Iterable, Iterator

# As they are tried: a script that has several is offered the plainest.
_NAMES = (
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


def seed_option(trees: Iterable[ast.AST]) -> str:
    """The option, such as "--seed"; the one of the first tree that has any, empty where none has."""
    for tree in trees:
        found = set(_options(tree))
        for name in _NAMES:
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
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not names.isdisjoint(_DATACLASS_READERS) and _is_dataclass(node):
            fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
            yield from (f"--{field.id}" for field in fields if isinstance(field, ast.Name))
        elif isinstance(node, ast.FunctionDef) and _is_command(node, tree):
            yield from (f"--{word.arg}" for word in (*node.args.args, *node.args.kwonlyargs))


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_last(decorator) == "dataclass" for decorator in node.decorator_list)


def _is_command(function: ast.FunctionDef, tree: ast.AST) -> bool:
    """Whether a function's parameters are options: a typer command, or handed to `typer.run` or `fire.Fire`."""
    if any(isinstance(item, ast.Call) and _dotted_end(item.func) == "app.command" for item in function.decorator_list):
        return True
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _reads_functions(node))
    return any(isinstance(word, ast.Name) and word.id == function.name for call in calls for word in call.args)


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
