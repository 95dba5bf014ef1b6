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
    "Philox": "numpy.random.Philox",
    "PRNGKey": "jax.random.PRNGKey",
    "set_seed": "set_seed",
    "set_random_seed": "set_random_seed",
    "seed_everything": "seed_everything",
    "SeedGenerator": "keras.random.SeedGenerator",
    "Random": "random.Random",
}
_SEED_KEYWORDS = ("random_state", "seed", "random_seed")
TORCH_CALL = "torch.manual_seed"


class SourceSeed(NamedTuple):
    """A constant seed in the source: the call as told to the user, the constant, and the line."""

    call: str
    value: str
    line: int


def find_in_file(path: Path) -> list[SourceSeed]:
    """The constant seeds of one source file; none for a file that is too large or no Python."""
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            return []
        return find(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []


def find(source: bytes) -> list[SourceSeed]:
    """The constant seeds of one source text, in the order of its lines."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    found = [seed for call in calls for seed in _seeds_of(call)]
    return sorted(found, key=lambda seed: seed.line)


def _seeds_of(call: ast.Call) -> Iterator[SourceSeed]:
    name = _dotted(call.func)
    last = name.rpartition(".")[2]
    constant = _constant(call.args[0]) if call.args else None
    by_keyword = {word.arg: _constant(word.value) for word in call.keywords if word.arg in _SEED_KEYWORDS}
    if constant is not None and (last in _CONSTRUCTORS or name.endswith("random.key")):
        yield SourceSeed(_CONSTRUCTORS.get(last, "jax.random.key"), constant, call.lineno)
    elif constant is not None and last == "manual_seed":
        yield SourceSeed(TORCH_CALL if name == TORCH_CALL else "torch.Generator.manual_seed", constant, call.lineno)
    for keyword, value in by_keyword.items():
        if value is not None:
            yield SourceSeed(f"{_CONSTRUCTORS.get(last, name or 'call')}({keyword}=)", value, call.lineno)


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
