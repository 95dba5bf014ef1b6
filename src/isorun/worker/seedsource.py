"""Find seeds fixed in the training's source: generators that are built with a constant, which no call shows later.

The source is parsed and never run.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, NamedTuple

MAX_SOURCE_BYTES = 2 * 2**20

# Last part of the called name: what it is told as. A constant first argument (or seed=) makes it a fixed generator.
_CONSTRUCTORS = {
    "default_rng": "numpy.random.default_rng",
    "RandomState": "numpy.random.RandomState",
    "SeedSequence": "numpy.random.SeedSequence",
    "PCG64": "numpy.random.PCG64",
    "MT19937": "numpy.random.MT19937",
    "PCG64DXSM": "numpy.random.PCG64DXSM",
    "Philox": "numpy.random.Philox",
    "SFC64": "numpy.random.SFC64",
    "PRNGKey": "jax.random.PRNGKey",
    "set_seed": "set_seed",
    "set_random_seed": "set_random_seed",
    "seed_everything": "seed_everything",
    "SeedGenerator": "keras.random.SeedGenerator",
    "Random": "random.Random",
    "Rngs": "flax.nnx.Rngs",
    "from_seed": "tensorflow.random.Generator.from_seed",
}
_SEED_KEYWORDS = ("random_state", "seed", "random_seed")
_NATIVE = ("xgb", "lgb", "lightgbm", "catboost")
TORCH_CALL = "torch.manual_seed"


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
        return self.is_setting and self.call.lower().startswith(_NATIVE)


def find_in_file(path: Path) -> list[SourceSeed]:
    """The constant seeds of one source file; none for a file that is too large or no Python."""
    tree = parsed(path)
    return [] if tree is None else find_in_tree(tree)


def parsed(path: Path) -> ast.Module | None:
    """The tree of a source file; None for a file that is too large or no Python."""
    try:
        return ast.parse(path.read_bytes()) if path.stat().st_size <= MAX_SOURCE_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def find(source: bytes) -> list[SourceSeed]:
    """The constant seeds of one source text, in the order of its lines."""
    return find_in_tree(ast.parse(source))


def find_in_tree(tree: ast.Module) -> list[SourceSeed]:
    """The constant seeds of one parsed source, in the order of its lines."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = [seed for call in calls for seed in _seeds_of(call)]
    return sorted(found, key=lambda seed: seed.line)


def _seeds_of(call: ast.Call) -> Iterator[SourceSeed]:
    name = _dotted(call.func)
    last = name.rpartition(".")[2]
    lines = (call.lineno, call.end_lineno or call.lineno)
    constant = _constant(call.args[0]) if call.args else None
    by_keyword = {word.arg: _constant(word.value) for word in call.keywords if word.arg in _SEED_KEYWORDS}
    if constant is not None and (last in _CONSTRUCTORS or name.endswith("random.key")):
        yield SourceSeed(_CONSTRUCTORS.get(last, "jax.random.key"), constant, *lines)
    elif constant is not None and last == "manual_seed":
        yield SourceSeed(TORCH_CALL if name == TORCH_CALL else "torch.Generator.manual_seed", constant, *lines)
    for keyword, value in by_keyword.items():
        if value is not None:
            told = f"{_CONSTRUCTORS.get(last, name or 'call')}({keyword}=)"
            yield SourceSeed(told, value, *lines, is_setting=last not in _CONSTRUCTORS)


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
