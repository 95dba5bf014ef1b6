"""How the program lets its numbers be computed: autotuning, kernels that add in any order, TF32, memory, threads."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import Final

from isorun.diagnose.audit.findings import AuditFinding, SourceEdit, Sure, edited, with_keyword
from isorun.diagnose.audit.flow import Flow, FlowStep
from isorun.diagnose.audit.program import Source, keyword
from isorun.worker import frameworks
from isorun.worker.levels import THREAD_COUNTS

__all__ = ["HEAD_LINES", "kernel_findings", "threads_here"]

_CUDA_TEXT: Final = re.compile(r"cuda(:\d+)?$")
_NO_KERNEL: Final = frozenset(("torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.device_count"))
_ADDING: Final = frozenset(
    ("index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_")
)
_ADDING_NAMES: Final = frozenset(
    (
        "torch.histc",
        "torch.nn.functional.grid_sample",
        "torch.nn.functional.ctc_loss",
        "torch.nn.CTCLoss",
        "torch.nn.UpsamplingBilinear2d",
        "torch_scatter.scatter",
        "torch_scatter.scatter_add",
        "torch_scatter.scatter_mean",
        "torch_geometric.utils.scatter",
        "torch.nn.AvgPool3d",
        "torch.nn.FractionalMaxPool2d",
    )
)
_SMOOTH: Final = frozenset(("linear", "bilinear", "bicubic", "trilinear"))
_TAKES_GPU: Final = ("tensorflow", "keras", "jax")
_SET_THREADS: Final = {
    "torch": "torch.set_num_threads",
    "tensorflow": "tensorflow.config.threading.set_intra_op_parallelism_threads",
}
_LIMIT_THREADS: Final = "threadpoolctl.threadpool_limits"
_THREADED: Final = ("torch", "tensorflow", "keras", "lightning", "transformers")
THREADS_OF: Final = "threads of "
"""What an edit says that is to hold the threads of a framework: its name follows, none for libraries below NumPy."""
_EMPTY: Final = {
    "torch.empty": "zeros",
    "torch.empty_like": "zeros_like",
    "numpy.empty": "zeros",
    "numpy.empty_like": "zeros_like",
}
HEAD_LINES: Final = {
    "kernels": (
        "import os",
        "import torch",
        'os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")',
        "torch.use_deterministic_algorithms(True, warn_only=True)",
    ),
    "tensorflow-kernels": (
        "import tensorflow",
        "import keras",
        "keras.utils.set_random_seed(0)",
        "tensorflow.config.experimental.enable_op_determinism()",
    ),
    "jax-kernels": ("import os", 'os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"'),
}
"""What the head of a script has to hold: imports, then lines."""


def kernel_findings(flow: Flow) -> Iterator[AuditFinding]:
    """All that is open about kernels, memory and threads."""
    holds = {step.name: step for step in flow.steps if not step.elsewhere}
    yield from _autotune(flow)
    yield from _tf32(flow)
    gpu = _first_gpu(flow)
    deterministic = _is_deterministic(flow, holds)
    if gpu is not None and not deterministic:
        yield _torch_kernels(flow, *gpu)
    own = list(_own_gpu(flow, holds))
    yield from own
    taken = {finding.about for finding in own} | ({"torch"} if gpu is not None and not deterministic else set())
    yield from _atomics(flow, taken)
    yield from _uninitialised(flow)
    yield from _threads(flow)


def _set_to(flow: Flow, step: FlowStep, *names: str) -> bool | None:
    """The truth of what is set to one of these names; None for anything else."""
    if not isinstance(step.node, ast.Assign) or step.name not in names:
        return None
    return flow.truth(step.node.value, step.frame)


def _autotune(flow: Flow) -> Iterator[AuditFinding]:
    for step in flow.steps:
        value: ast.expr | None = None
        if _set_to(flow, step, "torch.backends.cudnn.benchmark") is True:
            value = step.node.value  # type: ignore[union-attr]
        elif isinstance(step.node, ast.Call) and step.name == "lightning.Trainer":
            given = keyword(step.node, "benchmark")
            value = given if given is not None and flow.truth(given, step.frame) is True else None
        if value is not None:
            yield AuditFinding(
                "cudnn-autotune",
                step.source.shown,
                step.line,
                "cuDNN times its kernels in every run and may choose another one, which sums in another order",
                "set it to False",
                Sure.where(step.certain),
                edits=edited(step.source, value, "False"),
            )


def _tf32(flow: Flow) -> Iterator[AuditFinding]:
    names = ("torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32")
    for step in flow.steps:
        value, instead = None, "False"
        if _set_to(flow, step, *names) is True:
            value = step.node.value  # type: ignore[union-attr]
        elif step.name == "torch.set_float32_matmul_precision" and isinstance(step.node, ast.Call) and step.node.args:
            known, asked = flow.value(step.node.args[0], step.frame)
            value, instead = (step.node.args[0], '"highest"') if known and asked in {"high", "medium"} else (None, "")
        if value is not None:
            yield AuditFinding(
                "tf32",
                step.source.shown,
                step.line,
                "products are rounded to 10 bits on GPUs that have TF32 and to 23 on others, so devices disagree",
                f"{'False' if instead == 'False' else instead}, or name the GPU with the result",
                Sure.MEDIUM,
                edits=edited(step.source, value, instead),
            )


def _first_gpu(flow: Flow) -> tuple[Source, int] | None:
    """Where the program first speaks of a GPU, in the order of its files and lines."""
    if not flow.program.uses("torch"):
        return None
    for source in flow.program.sources:
        lines = [
            node.lineno
            for node in source.of_type.get(ast.Constant, ())
            if isinstance(node.value, str) and _CUDA_TEXT.match(node.value)
        ]
        for call in source.of_type.get(ast.Call, ()):
            name = source.dotted(call.func)
            called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            own = ("torch.cuda.", "torch.accelerator.", "accelerate.Accelerator", "lightning.Fabric")
            if (name.startswith(own) and name not in _NO_KERNEL) or (called == "cuda" and not name.endswith("os.cuda")):
                lines.append(call.lineno)
        if lines:
            return source, min(lines)
    return None


def _is_deterministic(flow: Flow, holds: dict[str, FlowStep]) -> bool:
    step = holds.get("torch.use_deterministic_algorithms")
    if step is None or not isinstance(step.node, ast.Call):
        mode = holds.get("torch.set_deterministic_debug_mode")
        return mode is not None
    value = step.node.args[0] if step.node.args else keyword(step.node, "mode")
    return value is None or flow.truth(value, step.frame) is not False


def _torch_kernels(flow: Flow, source: Source, line: int) -> AuditFinding:
    name = "torch.backends.cudnn.deterministic"
    half = any(step.name == name and _set_to(flow, step, name) is not False for step in flow.steps)
    why = "kernels that add in whatever order threads finish may be used on a GPU: nothing asks for deterministic ones"
    if half:
        why = "cuDNN is held to deterministic kernels, all other kernels on a GPU are not"
    return AuditFinding(
        "nondeterministic-kernels",
        source.shown,
        line,
        why,
        "torch.use_deterministic_algorithms(True), with CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment",
        Sure.LOW if half else Sure.MEDIUM,
        about="torch",
        edits=(SourceEdit("", 0, 0, "kernels"),),
    )


def _atomics(flow: Flow, taken: set[str]) -> Iterator[AuditFinding]:
    """Operations that add in any order. taken: frameworks that may take a GPU, and are not held to an order."""
    for step in flow.steps:
        if not isinstance(step.node, ast.Call) or step.elsewhere:
            continue
        other = next((name for name in ("tensorflow", "jax") if name in taken and _adds_elsewhere(step, name)), "")
        if other:
            why = f"{step.called} adds with atomic operations on a GPU, in whatever order threads come"
            fix = "deterministic kernels, as for nondeterministic-kernels"
            yield AuditFinding("atomics", step.source.shown, step.line, why, fix, Sure.LOW, other)
        elif "torch" in taken and _adds(flow, step, step.node):
            yield AuditFinding(
                "atomics",
                step.source.shown,
                step.line,
                f"{step.called} adds with atomic operations on a GPU, in whatever order threads come",
                "torch.use_deterministic_algorithms(True), which takes another kernel or says that there is none",
                Sure.MEDIUM,
                about=step.called,
                edits=(SourceEdit("", 0, 0, "kernels"),),
            )


_SUMMED: Final = re.compile(r"(math\.(unsorted_)?segment_\w+|tensor_scatter_nd_add|scatter_nd|ops\.segment_sum)$")


def _adds_elsewhere(step: FlowStep, framework: str) -> bool:
    """Sums of TensorFlow and JAX by index: segments, scattered additions, `x.at[i].add(y)`."""
    if step.name.startswith(f"{framework}.") and _SUMMED.match(step.name, len(framework) + 1):
        return True
    function = step.node.func if isinstance(step.node, ast.Call) else None
    indexed = (
        function.value.value
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Subscript)
        else None
    )
    return framework == "jax" and step.called == "add" and isinstance(indexed, ast.Attribute) and indexed.attr == "at"


def _adds(flow: Flow, step: FlowStep, call: ast.Call) -> bool:
    if step.called in _ADDING and not step.name.startswith(("numpy.", "tensorflow.", "jax.")):
        return True
    if step.name in _ADDING_NAMES:
        return True
    if step.called == "bincount" and not step.name.startswith("numpy."):
        return keyword(call, "weights") is not None
    if step.called in {"index_put_", "index_put", "put_"}:
        added = keyword(call, "accumulate")
        return added is not None and flow.truth(added, step.frame) is not False
    if step.name in {"torch.nn.functional.interpolate", "torch.nn.functional.upsample", "torch.nn.Upsample"}:
        return flow.value(keyword(call, "mode"), step.frame)[1] in _SMOOTH
    return False


def _own_gpu(flow: Flow, holds: dict[str, FlowStep]) -> Iterator[AuditFinding]:
    """Frameworks that take a GPU by themselves where there is one."""
    for step in flow.steps:
        if isinstance(step.node, ast.Call) and step.name == "lightning.Trainer":
            yield from _of_trainer(
                flow, step, step.node, name="deterministic", wanted='"warn"', cpu=("accelerator", "cpu")
            )
        elif isinstance(step.node, ast.Call) and re.match(r"transformers\.(Seq2Seq)?TrainingArguments$", step.name):
            yield from _of_trainer(flow, step, step.node, name="full_determinism", wanted="True", cpu=("use_cpu", True))
    backend = flow.program.environ.get("KERAS_BACKEND") or _variable_set(flow, "KERAS_BACKEND")
    held = {"tensorflow.config.experimental.enable_op_determinism"} & set(holds) or _variable_set(
        flow, "TF_DETERMINISTIC_OPS"
    )
    for package in _TAKES_GPU:
        found = _first_import(flow, package)
        if found is None:
            continue
        if package == "jax" and "deterministic" not in _variable_set(flow, "XLA_FLAGS"):
            yield _framework_kernels(found, "jax", "XLA_FLAGS=--xla_gpu_deterministic_ops=true", "jax-kernels")
        elif package != "jax" and not held and backend in {"", "tensorflow"}:
            fix = "tf.config.experimental.enable_op_determinism(), with a seed set before"
            yield _framework_kernels(found, "tensorflow", fix, "tensorflow-kernels")
            held = {"told"}


def _framework_kernels(where: tuple[Source, int], about: str, fix: str, head: str) -> AuditFinding:
    source, line = where
    told = {"tensorflow": "TensorFlow", "jax": "JAX"}[about]
    why = f"{told} takes a GPU where there is one, and kernels there that add in any order"
    edits = (SourceEdit("", 0, 0, head),)
    return AuditFinding("nondeterministic-kernels", source.shown, line, why, fix, Sure.LOW, about=about, edits=edits)


def _of_trainer(
    flow: Flow, step: FlowStep, call: ast.Call, *, name: str, wanted: str, cpu: tuple[str, object]
) -> Iterator[AuditFinding]:
    given, device = keyword(call, name), keyword(call, cpu[0])
    if device is not None and flow.value(device, step.frame) == (True, cpu[1]):
        return
    if given is not None and flow.truth(given, step.frame) is not False:
        return
    yield AuditFinding(
        "nondeterministic-kernels",
        step.source.shown,
        step.line,
        "it takes a GPU where there is one, and kernels there that add in whatever order threads finish",
        f"{name}={wanted}",
        Sure.MEDIUM,
        about="torch",
        edits=with_keyword(step.source, call, f"{name}={wanted}") if given is None else (),
    )


def _first_import(flow: Flow, package: str) -> tuple[Source, int] | None:
    """Where a package is first imported: in the script if it is, else in the first module that does."""
    for source in flow.program.sources:
        lines = [
            node.lineno  # type: ignore[attr-defined]
            for node, names in source.imports.items()
            if any(name.partition(".")[0] == package for name in names)
        ]
        if lines:
            return source, min(lines)
    return None


def _variable_set(flow: Flow, name: str) -> str:
    """What the program, or the environment it is started in, sets a variable to; empty for nothing."""
    if name in flow.program.environ:
        return flow.program.environ[name]
    for step in flow.steps:
        key, value = _variable_and_value(step) if step.name.startswith("os.") else (None, None)
        if isinstance(key, ast.Constant) and key.value == name and value is not None:
            return str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)
    return ""


def _variable_and_value(step: FlowStep) -> tuple[ast.expr | None, ast.expr | None]:
    """Of `os.environ["A"] = b`, and of calls that do the same."""
    if isinstance(step.node, ast.Assign):
        target = step.node.targets[0] if step.name == "os.environ" else None
        return (target.slice if isinstance(target, ast.Subscript) else None), step.node.value
    if step.name in {"os.environ.setdefault", "os.putenv"} and len(step.node.args) > 1:
        return step.node.args[0], step.node.args[1]
    return None, None


def _uninitialised(flow: Flow) -> Iterator[AuditFinding]:
    for source in flow.program.sources:
        for call in source.of_type.get(ast.Call, ()):
            name = source.imported(call.func)
            if name in _EMPTY and _is_read_first(source, call):
                instead = _EMPTY[name]
                yield AuditFinding(
                    "uninitialised-memory",
                    source.shown,
                    call.lineno,
                    f"{name} gives memory with whatever was there before, and it is read before it is written",
                    f"{name.partition('.')[0]}.{instead}, or fill it first",
                    Sure.MEDIUM,
                    edits=edited(source, call.func, _renamed(call.func, instead)),
                )


def _renamed(function: ast.expr, name: str) -> str:
    return f"{ast.unparse(function.value)}.{name}" if isinstance(function, ast.Attribute) else ast.unparse(function)


def _is_read_first(source: Source, call: ast.Call) -> bool:
    """Whether what is made empty is surely read before anything writes into it.

    It is a parameter that no line of its class initialises, or part of a sum. All else gets the benefit of the doubt.
    """
    above = source.parents.get(call)
    if isinstance(above, ast.BinOp):
        return True
    wrapped = isinstance(above, ast.Call) and source.dotted(above.func) == "torch.nn.Parameter"
    assign = source.parents.get(above) if wrapped and above is not None else above
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1:
        return False
    target = ast.unparse(assign.targets[0])
    if isinstance(assign.targets[0], ast.Attribute) and wrapped:
        return _never_written(source, assign, target, source.home(assign).partition(".")[0])
    return isinstance(assign.targets[0], ast.Name) and _next_use_reads(source, assign, target)


def _never_written(source: Source, assign: ast.Assign, target: str, owner: str) -> bool:
    definition = source.definitions.get(owner)
    text = source.segment(definition) if definition is not None else source.text
    rest = (text or "").replace(source.segment(assign) or "", "", 1)
    name = re.escape(target)
    written = rf"init\.\w+\(\s*{name}|{name}(\.data)?(\[[^\]]*\])?\.\w+_\(|{name}(\.data)?(\[[^\]]*\])?\s*=[^=]"
    handed = rf"(\w+_|\w*(?:init|fill|reset|copy|normal|uniform)\w*)\(\s*{name}\b"
    general = (
        r"for \w+(, \w+)? in self\.(named_)?parameters\(|\.apply\(|load_state_dict"
        r"|super\(\)\.(?!__init__)\w*(init|reset)\w*\("
    )
    return re.search(f"{written}|{handed}|{general}", rest) is None


def _next_use_reads(source: Source, assign: ast.Assign, name: str) -> bool:
    """Whether the first use of a name after a line is a sum or a product with it."""
    uses = [
        node
        for node in source.nodes(ast.Name)
        if node.id == name
        and node.lineno > (assign.end_lineno or assign.lineno)
        and source.home(node) == source.home(assign)
    ]
    return bool(uses) and isinstance(uses[0].ctx, ast.Load) and isinstance(source.parents.get(uses[0]), ast.BinOp)


def thread_variables(framework: str) -> tuple[str, ...]:
    """The variables that a framework takes its number of threads from; for others those of libraries below it."""
    own = next((one.thread_variables for one in frameworks.every() if one.name == framework), ())
    return own[:1] or THREAD_COUNTS


def thread_lines(framework: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What holds the number of threads in a script: lines before all imports, and lines behind them."""
    if framework in _SET_THREADS:
        return (), (f"import {framework}", f"{_SET_THREADS[framework]}({threads_here()})")
    return ("import os", f'os.environ.setdefault("{thread_variables(framework)[0]}", "{threads_here()}")'), ()


def _framework_of_threads(flow: Flow) -> str:
    """Who says how many threads there are; Keras computes with TensorFlow where nobody says otherwise."""
    if flow.program.uses("torch"):
        return "torch"
    if flow.program.uses("keras") and not flow.program.uses("tensorflow"):
        return _variable_set(flow, "KERAS_BACKEND") or "tensorflow"
    return "tensorflow" if flow.program.uses("tensorflow") else ""


def _are_threads_set(flow: Flow, framework: str) -> bool:
    """By a variable of the environment, or one that the script sets before it imports what reads it; or by a call.

    Libraries below torch and NumPy read theirs when they are imported, TensorFlow and JAX when they first compute.
    """
    variables, script = thread_variables(framework), flow.program.script
    if any(flow.program.environ.get(name) for name in variables) or "torchrun" in flow.program.words[0]:
        return True
    calls = (_SET_THREADS[framework],) if framework in _SET_THREADS else ()
    calls = calls if framework == "tensorflow" else (*calls, _LIMIT_THREADS)
    imports = {"torch": _THREADED, "": (*_THREADED, "numpy", "scipy", "sklearn")}.get(framework, ())
    readers = [where[1] for package in imports if (where := _first_import(flow, package)) and where[0] is script]
    for step in flow.steps:
        key, value = _variable_and_value(step) if step.name.startswith("os.") else (None, None)
        in_time = step.frame.source is not script or all(line > step.node.lineno for line in readers)
        if isinstance(key, ast.Constant) and key.value in variables and value is not None and in_time:
            return True
        if step.name in calls and isinstance(step.node, ast.Call):
            value = step.node.args[0] if step.node.args else keyword(step.node, "limits")
            counted = value is not None and any("cpu_count" in name for name, _ in flow.origins(value, step.frame))
            if not counted:
                return True
    return False


def _threads(flow: Flow) -> Iterator[AuditFinding]:
    framework = _framework_of_threads(flow)
    if _are_threads_set(flow, framework):
        return
    found = [where for package in _THREADED for where in [_first_import(flow, package)] if where is not None]
    about = framework or "torch"
    if not found and _multiplies(flow):
        found = [where for where in [_first_import(flow, "numpy")] if where is not None]
        about = "numpy"
    if found:
        order = {id(source): place for place, source in enumerate(flow.program.sources)}
        source, line = min(found, key=lambda where: (order[id(where[0])], where[1]))
        yield AuditFinding(
            "thread-count",
            source.shown,
            line,
            "the machine decides on how many threads sums are divided, and another number gives other bits",
            _held_threads(framework),
            Sure.LOW,
            about=about,
            edits=(SourceEdit("", 0, 0, f"{THREADS_OF}{framework}"),),
        )


def threads_here() -> int:
    """How many threads libraries take on this machine, unless they are told."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _held_threads(framework: str) -> str:
    """The number of this machine, in the words of the framework that the program uses itself."""
    count = threads_here()
    held = f"{thread_variables(framework)[0]}={count} in the environment"
    return f"{held}, or {_SET_THREADS[framework]}({count})" if framework in _SET_THREADS else held


def _multiplies(flow: Flow) -> bool:
    """Whether matrices are multiplied with NumPy."""
    names = ("numpy.dot", "numpy.matmul", "numpy.einsum", "numpy.tensordot", "numpy.linalg.")
    if any(
        isinstance(node.op, ast.MatMult)
        for source in flow.program.sources
        for node in source.of_type.get(ast.BinOp, ())
    ):
        return flow.program.uses("numpy")
    return any(step.name.startswith(names) for step in flow.steps)
