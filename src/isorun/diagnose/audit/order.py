"""Orders that nothing fixes: of sets of text, of files in a folder, of what data-loading processes hand over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from isorun.diagnose.audit.findings import AuditFinding, Sure, edited
from isorun.diagnose.audit.flow import Flow, FlowStep
from isorun.diagnose.audit.program import Source, keyword

__all__ = ["order_findings"]

_ORDER_FREE: Final = frozenset(
    str.split(
        "sorted len set frozenset sum min max any all bool Counter isinstance print update union difference "
        "intersection isdisjoint issubset issuperset symmetric_difference difference_update intersection_update "
        "natsorted"
    )
)
_IN_ORDER: Final = frozenset(
    str.split("list tuple enumerate zip iter map filter array tensor join extend choice sample chain")
)
_SET_METHODS: Final = frozenset(("union", "intersection", "difference", "symmetric_difference"))
_LISTS: Final = frozenset(("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob", "os.fwalk"))
_LISTING_METHODS: Final = frozenset(("iterdir", "rglob", "glob"))
_TEXT: Final = re.compile(
    r"\.split\(|\.lower\(|\.upper\(|\.strip\(|findall\(|str\(|\.astype\(str\)|\bopen\(|\.read\(|\.read_text|tokeni[sz]e\("
    r"|\b(words?|tokens?|chars?|characters?|texts?|sentences?|names?|vocab(ulary)?|tags?|strings?|corpus)\b"
)
_NUMBERS: Final = re.compile(r"\brange\(|\.tolist\(|\bint\(|\b(ids?|indices|idx|indexes|numbers|targets?|y|ranks)\b")
_HARMLESS: Final = re.compile(
    r"(os\.(remove|unlink|rename)|shutil\.\w+|print|warnings\.warn|logg(er|ing)\.\w+|\w+\.(unlink|add|discard|remove|rmdir))$"
)


def order_findings(flow: Flow) -> Iterator[AuditFinding]:
    """All that is open about orders."""
    reached = {id(step.node) for step in flow.steps}
    for source in flow.program.sources:
        if "PYTHONHASHSEED" not in flow.program.environ:
            yield from _sets(source)
            yield from _hashes(source)
        yield from _listings(source, reached)
    yield from _loaders(flow)


def _sets(source: Source) -> Iterator[AuditFinding]:
    if "set(" not in source.text and not source.of_type.get(ast.Set) and not source.of_type.get(ast.SetComp):
        return
    names = _set_names(source)
    made = [node for kind in (ast.Set, ast.SetComp) for node in source.of_type.get(kind, ())]
    made += [call for call in source.of_type.get(ast.Call, ()) if _makes_set(source, call)]
    uses = [(node, node) for node in made]
    ends = {text.rpartition(".")[2] for _, text in names}  # few: to write every expression out takes long
    found = [node for node in source.of_type.get(ast.Name, ()) if node.id in ends]
    found += [node for node in source.of_type.get(ast.Attribute, ()) if node.attr in ends]
    uses += [(node, origin) for node in found for origin in _bound(source, node, names)]
    for node, origin in uses:
        if not _is_iterated(source, node):
            continue
        text = _elements(source, origin, names)
        if text or (text is False and _is_numbered(source, node)):
            yield AuditFinding(
                "hash-order",
                source.shown,
                node.lineno,
                "the order of a set of texts follows Python's hash seed, which is another one in every process",
                f"sorted({_short(node)}), or PYTHONHASHSEED=0 in the environment",
                Sure.MEDIUM if text else Sure.LOW,
                edits=edited(source, node, f"sorted({source.segment(node)})") if text else (),
            )


def _is_numbered(source: Source, node: ast.AST) -> bool:
    """Whether the elements are given numbers or partners: then the order matters whatever they are."""
    above = source.parents.get(node)
    return isinstance(above, ast.Call) and source.dotted(above.func) in {"enumerate", "zip"}


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 30 else "…"


def _makes_set(source: Source, call: ast.Call) -> bool:
    return source.dotted(call.func) in {"set", "frozenset"}


def _set_names(source: Source) -> dict[tuple[str, str], ast.AST]:
    """Names, with the function they belong to, that are only ever bound to sets; to what made the set."""
    found: dict[tuple[str, str], list[ast.AST]] = {}
    for kind in (ast.Assign, ast.AnnAssign):
        for assign in source.of_type.get(kind, ()):
            targets = assign.targets if isinstance(assign, ast.Assign) else [assign.target]
            for target in targets:
                if isinstance(target, (ast.Name, ast.Attribute)) and assign.value is not None:
                    found.setdefault(_key(source, target), []).append(assign.value)
    for node in (*source.of_type.get(ast.For, ()), *source.of_type.get(ast.comprehension, ())):
        for target in ast.walk(node.target):
            if isinstance(target, ast.Name):
                found.setdefault(_key(source, target), []).append(node.iter)
    return {key: values[0] for key, values in found.items() if all(_is_set(source, value) for value in values)}


def _key(source: Source, node: ast.Name | ast.Attribute) -> tuple[str, str]:
    """A name within its function; an attribute of `self` within its class."""
    home = source.home(node)
    return (home.partition(".")[0] if isinstance(node, ast.Attribute) else home), _text(node)


def _text(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _is_set(source: Source, node: ast.AST) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)):
        return _is_set(source, node.left) or _is_set(source, node.right)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _SET_METHODS:
            return _is_set(source, function.value)
        return _makes_set(source, node)
    return False


def _bound(source: Source, node: Any, names: dict[tuple[str, str], ast.AST]) -> Iterator[ast.AST]:
    """What made the set that a name stands for, here or in the module."""
    if not names or not isinstance(node.ctx, ast.Load):
        return
    text = _text(node)
    if not any(text == known for _, known in names):
        return
    key = _key(source, node)
    local = key in names
    if local or (("", text) in names and not any(known[1] == text and known[0] == key[0] for known in names)):
        yield names[key if local else ("", text)]


def _is_iterated(source: Source, node: ast.AST) -> bool:
    """Whether the order in which a set is gone through can be seen in what comes of it."""
    above = source.parents.get(node)
    if isinstance(above, ast.For):
        return above.iter is node and not _is_harmless(source, above.body)
    if isinstance(above, ast.comprehension):
        made = source.parents.get(above)
        return above.iter is node and not isinstance(made, ast.SetComp) and not _is_swallowed(source, made)
    if isinstance(above, ast.Starred):
        made = source.parents.get(above)
        return isinstance(made, (ast.List, ast.Tuple)) and not _is_swallowed(source, made)
    if isinstance(above, ast.Call) and node in above.args:
        name = source.dotted(above.func).rpartition(".")[2] or _attribute(above)
        return name in _IN_ORDER and not _is_swallowed(source, above)
    return False


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_swallowed(source: Source, node: ast.AST | None) -> bool:
    """Whether what is made in any order goes straight to something that does not care: a sum, a length, a sorting."""
    above = source.parents.get(node) if node is not None else None
    if isinstance(above, ast.keyword):
        return False
    if isinstance(above, ast.Call) and node in above.args:
        name = source.dotted(above.func).rpartition(".")[2] or _attribute(above)
        return name in _ORDER_FREE or (name in _IN_ORDER and _is_swallowed(source, above))
    if isinstance(above, (ast.Assign, ast.AnnAssign)):
        target = above.targets[0] if isinstance(above, ast.Assign) else above.target
        return _is_sorted_later(source, above, ast.unparse(target))
    if isinstance(above, ast.comprehension):
        made = source.parents.get(above)
        return isinstance(made, ast.SetComp) or _is_swallowed(source, made)
    if isinstance(above, ast.For) and above.iter is node:
        return _is_harmless(source, above.body)
    return isinstance(above, (ast.Compare, ast.If, ast.UnaryOp, ast.Assert, ast.While, ast.FormattedValue))


def _is_sorted_later(source: Source, assign: ast.AST, name: str) -> bool:
    """Whether a name is sorted in the lines after, or only ever used where the order does not matter."""
    uses = [
        node
        for kind in (ast.Name, ast.Attribute)
        for node in source.nodes(kind)
        if isinstance(node.ctx, ast.Load) and node.lineno > assign.lineno and ast.unparse(node) == name  # type: ignore[attr-defined]
    ]
    for use in uses:
        above = source.parents.get(use)
        if isinstance(above, ast.Attribute) and above.attr == "sort":
            return True
        if isinstance(above, ast.Call) and source.dotted(above.func).rpartition(".")[2] in {"sorted", "natsorted"}:
            return True
    return bool(uses) and all(_is_swallowed(source, use) for use in uses)


def _is_harmless(source: Source, body: list[ast.stmt]) -> bool:
    """Whether a loop only checks, tells, removes files, or fills sets: none of which has an order."""
    for statement in body:
        if isinstance(statement, (ast.Raise, ast.Assert, ast.Pass, ast.Continue)):
            continue
        if isinstance(statement, ast.If):
            if not _is_harmless(source, [*statement.body, *statement.orelse]):
                return False
        elif isinstance(statement, ast.Assign):
            if not all(isinstance(target, ast.Name) for target in statement.targets):
                return False
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if not _HARMLESS.match(ast.unparse(statement.value.func)):
                return False
        else:
            return False
    return True


def _elements(source: Source, origin: ast.AST, names: dict[tuple[str, str], ast.AST]) -> bool | None:
    """Whether a set surely or likely holds texts; False where that is open, None where it holds numbers."""
    if isinstance(origin, ast.Set):
        kinds = {type(item.value) for item in origin.elts if isinstance(item, ast.Constant)}
        return str in kinds or None if kinds else False
    text = ast.unparse(origin)
    added = [ast.unparse(call) for call in source.of_type.get(ast.Call, ()) if _fills(source, call, origin, names)]
    whole = " ".join([text, *added])
    if _TEXT.search(whole):
        return True
    return None if _NUMBERS.search(whole) else False


def _fills(source: Source, call: ast.Call, origin: ast.AST, names: dict[tuple[str, str], ast.AST]) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"add", "update"}:
        return False
    return (
        any(found is origin for found in _bound(source, call.func.value, names)) if _is_name(call.func.value) else False
    )


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def _hashes(source: Source) -> Iterator[AuditFinding]:
    if "hash(" not in source.text or "hash" in source.names:
        return
    for call in source.of_type.get(ast.Call, ()):
        if isinstance(call.func, ast.Name) and call.func.id == "hash" and call.args:
            if source.home(call).endswith("__hash__"):
                continue
            text = _TEXT.search(ast.unparse(call.args[0])) or isinstance(call.args[0], (ast.JoinedStr, ast.Constant))
            why = "hash() of a text is another number in every process"
            fix = "zlib.crc32(text.encode()), or PYTHONHASHSEED=0 in the environment"
            sure = Sure.MEDIUM if text else Sure.LOW
            yield AuditFinding("hash-order", source.shown, call.lineno, why, fix, sure)


def _listings(source: Source, reached: set[int]) -> Iterator[AuditFinding]:
    for call in source.of_type.get(ast.Call, ()):
        name, method = source.imported(call.func), _attribute(call)
        is_path = method in _LISTING_METHODS and not name and "pathlib" in source.text
        if not (name in _LISTS or is_path) or id(call) not in reached:
            continue
        is_walk = name in {"os.walk", "os.fwalk"}
        if _is_swallowed(source, call) or (is_walk and _sorts_within(source, call)) or _sorts_afterwards(source, call):
            continue
        wrapped = f"sorted({source.segment(call)})"
        yield AuditFinding(
            "file-order",
            source.shown,
            call.lineno,
            f"{name or method} gives files in the order of the file system, which differs between machines and copies",
            "sort the folders and files" if is_walk else "sorted(…)",
            Sure.MEDIUM,
            edits=() if is_walk or name == "os.scandir" else edited(source, call, wrapped),
        )


def _sorts_within(source: Source, call: ast.Call) -> bool:
    loop = source.parents.get(call)
    if not isinstance(loop, ast.For):
        return False
    text = ast.unparse(loop)
    return "sorted(" in text or ".sort(" in text


def _sorts_afterwards(source: Source, call: ast.Call) -> bool:
    """Whether the function that lists files sorts something after it: the benefit of the doubt."""
    home = source.definitions.get(source.home(call))
    if home is None:
        return False
    return any(
        _attribute(other) == "sort" or (isinstance(other.func, ast.Name) and other.func.id == "sorted")
        for other in ast.walk(home)
        if isinstance(other, ast.Call) and other.lineno > call.lineno
    )


def _loaders(flow: Flow) -> Iterator[AuditFinding]:
    for step in flow.steps:
        if not isinstance(step.node, ast.Call):
            if _is_order_option(step.name) and flow.program.uses("tensorflow"):
                yield from _in_any_order(flow, step, step.node.value)
            continue
        if step.name == "torch.utils.data.DataLoader":
            yield from _worker_count(flow, step, step.node)
        elif step.called in {"map", "interleave", "batch"} and flow.program.uses("tensorflow"):
            yield from _in_any_order(flow, step, keyword(step.node, "deterministic"))


def _is_order_option(name: str) -> bool:
    """Options of a data set, not an attribute of something else that is called so."""
    owner, _, own = name.rpartition(".")
    return own in {"deterministic", "experimental_deterministic"} and "opt" in owner.rpartition(".")[2].lower()


def _worker_count(flow: Flow, step: FlowStep, call: ast.Call) -> Iterator[AuditFinding]:
    value = keyword(call, "num_workers")
    counted = [name for name, _ in flow.origins(value, step.frame) if "cpu_count" in name] if value is not None else []
    if value is not None and counted:
        yield AuditFinding(
            "loader-workers",
            step.source.shown,
            step.line,
            "the machine decides how many processes load data; each draws from a stream of its own",
            "a fixed number of workers",
            Sure.MEDIUM,
            edits=edited(step.source, value, "2"),
        )


def _in_any_order(flow: Flow, step: FlowStep, value: ast.expr | None) -> Iterator[AuditFinding]:
    if value is not None and flow.value(value, step.frame) == (True, False):
        yield AuditFinding(
            "loader-workers",
            step.source.shown,
            value.lineno,
            "elements are handed over as they are ready, in another order in every run",
            "deterministic=True",
            Sure.where(step.certain),
            edits=edited(step.source, value, "True"),
        )
