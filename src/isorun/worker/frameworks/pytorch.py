"""torch: seeds for all devices, deterministic kernels, and digests of the weights without a change to the training."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, FrozenSet, Mapping

from .. import answering, reaching, seeding
from ..levels import Settings
from ..recorder import Recorder, guarded
from .base import NVIDIA, Framework, Hash, InTurns, Watch, framed

if TYPE_CHECKING:
    from ..auditing import Sight
    from ..streams import Streams
    from ..watching import Watcher

_WORKSPACE = ":4096:8"
_STRICT_WORKSPACES = (_WORKSPACE, ":16:8")
# Precisions: the function that sets one, and what it is told as.
_PRECISIONS = {
    "_set_cublas_allow_tf32": "torch.backends.cuda.matmul.allow_tf32",
    "_set_cudnn_allow_tf32": "torch.backends.cudnn.allow_tf32",
    "_set_float32_matmul_precision": "torch.set_float32_matmul_precision",
    "_set_fp32_precision_setter": "torch.backends fp32_precision",
    "_set_cublas_allow_fp16_reduced_precision_reduction": "torch.backends.cuda.matmul fp16 reductions",
    "_set_cublas_allow_bf16_reduced_precision_reduction": "torch.backends.cuda.matmul bf16 reductions",
}
_NONDETERMINISTIC = "does not have a deterministic implementation"
_DEVICES = ("cuda", "xpu", "mps")
# As MKL counts them (mkl_types.h), as far as a switch asks for them.
_MKL_BRANCHES = {1: "off", 2: "auto", 3: "compatible", 10: "avx2", 12: "avx512"}
_MKL_STRICT = 0x10000
_MKL_ALL = -1
_DRAWS = frozenset(
    (
        *(
            "rand",
            "randn",
            "randint",
            "randperm",
            "normal",
            "normal_",
            "uniform_",
            "random_",
            "bernoulli",
            "bernoulli_",
        ),
        *("multinomial", "native_dropout", "exponential_", "poisson", "rand_like", "randn_like", "randint_like"),
        *("cauchy_", "geometric_", "log_normal_", "_fused_dropout"),
    )
)
# Operations that add with atomics on a GPU, as torch documents them.
_ADDING = frozenset(
    (
        *("index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "histc"),
        *("upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward"),
        *("upsample_trilinear3d_backward", "grid_sampler_2d_backward", "grid_sampler_3d_backward"),
        *("_ctc_loss_backward", "nll_loss2d_forward", "_adaptive_avg_pool2d_backward", "avg_pool3d_backward"),
        *("_adaptive_avg_pool3d_backward", "adaptive_max_pool2d_backward", "fractional_max_pool2d_backward"),
        *("max_pool3d_with_indices_backward", "max_unpool2d", "reflection_pad1d_backward", "put_", "kthvalue"),
        *("reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward"),
        *("replication_pad2d_backward", "replication_pad3d_backward", "_embedding_bag_dense_backward"),
    )
)


class Torch(Framework):
    """torch, and what stands on it."""

    name = "torch"
    safe_to_preload = ("torch", "torchvision")
    preload = ("numpy", "numpy.random", "torch", "torch.optim", "torch._dynamo", "torch._inductor.config")
    has_generators = True
    global_seed_calls = ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
    watched_seed_call = "torch.manual_seed"
    undigested = (
        "no optimizer made a step in this process, before which and after which weights are digested, and the script "
        "holds no weights with gradients at its end; isorun.digest does any"
    )
    seeding_names: ClassVar[Mapping[str, str]] = {"set_seed": "set_seed", "seed_everything": "seed_everything"}
    told_variables = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
    libraries = f"libtorch_cpu|libtorch_cuda|{NVIDIA}"
    generated_files = ("_remote_module_",)
    generated_folders = ("torchinductor_",)
    cache_folders = ("torch_compile_debug",)
    cache_variables = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")

    def variables(self, cpu_flags: FrozenSet[str]) -> dict[str, str]:
        """CuBLAS gives the same sums with a workspace of its own; ATen takes the widest path that all machines have."""
        path = {"ATEN_CPU_CAPABILITY": "avx2"} if "avx2" in cpu_flags else {}
        return {"CUBLAS_WORKSPACE_CONFIG": _WORKSPACE, **path}

    def is_as_strict(self, name: str, value: str) -> bool:
        """Either of cuBLAS's workspaces."""
        return name == "CUBLAS_WORKSPACE_CONFIG" and value in _STRICT_WORKSPACES

    def switch_variables(self, asked: Mapping[str, str]) -> dict[str, str]:
        """ATen's widest path; what it calls `default` is the least that any processor has."""
        path = {"baseline": "default"}.get(asked.get("cpu", ""), asked.get("cpu", ""))
        sums = {"CUBLAS_WORKSPACE_CONFIG": _WORKSPACE} if asked.get("kernels") == "deterministic" else {}
        return {**sums, **({"ATEN_CPU_CAPABILITY": path} if path in {"default", "avx2", "avx512"} else {})}

    def switch(self, module: ModuleType, asked: Mapping[str, str]) -> None:
        """OneDNN, TF32 and cuDNN are settings of torch's own; a level that fixes kernels sets its own after these."""
        backends = module.backends
        if "onednn" in asked:
            backends.mkldnn.set_flags(asked["onednn"] == "on")
        if "tf32" in asked:
            backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = asked["tf32"] == "on"
        if "cudnn" in asked:
            backends.cudnn.enabled = asked["cudnn"] != "off"
            backends.cudnn.benchmark = asked["cudnn"] == "benchmark"
        if "kernels" in asked:
            fixed = asked["kernels"] == "deterministic"
            module.use_deterministic_algorithms(fixed, warn_only=fixed)
            backends.cudnn.deterministic = fixed

    def answers(self, module: ModuleType) -> dict[str, str]:
        """What it has at the end, whoever set it; of the devices only once the training has started them."""
        backends, started = module.backends, module.cuda.is_initialized()
        enabled = getattr(module._C, "_get_mkldnn_enabled", backends.mkldnn.is_available)()  # noqa: SLF001
        capability = backends.cpu.get_cpu_capability().lower()
        found = {
            "threads": str(module.get_num_threads()),
            "onednn": "on" if enabled and backends.mkldnn.is_available() else "off",
            "cpu": {"default": "baseline"}.get(capability, capability),
            "device": "cuda" if started else "cpu",
            "mkl": _mkl_branch(module),
            "kernels": "deterministic" if module.are_deterministic_algorithms_enabled() else "free",
        }
        parted = sys.modules.get(f"{__package__.rpartition('.')[0]}.streams")
        if parted is not None and parted.active() is not None:
            found["streams"] = parted.active().answer()
        if started:
            rounds = {backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32}
            found["tf32"] = "in part" if len(rounds) > 1 else "on" if rounds == {True} else "off"
            found["cudnn"] = "off" if not backends.cudnn.enabled else "benchmark" if backends.cudnn.benchmark else "on"
        return {name: value for name, value in found.items() if value}

    def constant_seed(self, called: str) -> str | None:
        """`manual_seed` of the module, or of a generator."""
        if called.rpartition(".")[2] == "manual_seed":
            return self.watched_seed_call if called == self.watched_seed_call else "torch.Generator.manual_seed"
        return super().constant_seed(called)

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach the generators of all devices and generators of one's own, also where they ask for fresh entropy."""
        kind = seeding.Kind("torch", constant)
        for owner in (module, module.random):
            reaching.take_calls(owner, "manual_seed", "torch.manual_seed", kind)
            reaching.take_fresh(owner, "seed", "torch.seed", kind, module.manual_seed)
        for device in _DEVICES:
            part = getattr(module, device, None)
            for call in ("manual_seed", "manual_seed_all"):
                reaching.take_calls(part, call, f"torch.{device}.{call}", kind)
            for call in ("seed", "seed_all"):
                reseed = getattr(part, f"manual_{call}", None)
                reaching.take_fresh(part, call, f"torch.{device}.{call}", kind, reseed)
        generator = module.Generator
        reaching.take_method(generator, "manual_seed", "torch.Generator.manual_seed", kind)
        reaching.take_fresh_method(generator, "seed", "torch.Generator.seed", kind, "manual_seed")

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch:  # noqa: ARG002
        """Set what the level says; the watch that sees the weights and the seed until the training ends."""
        if settings.seed is not None:
            module.manual_seed(settings.seed)
            seeding.seed_processes("torch.manual_seed", module.manual_seed, settings.seed)
        elif settings.warm:
            module.seed()
        if settings.fixes_kernels:
            _fix_kernels(module, settings, recorder)
        elif settings.switches:
            guarded(recorder.folder, "answering torch's settings", _answer_switches)(module, settings, recorder)
        guarded(recorder.folder, "following torch.save", _follow_saves)(module)
        watch = TorchWatch(module, recorder)
        if recorder.rank == 0:
            watch.follow_optimizers()
        return watch

    def part_streams(self, name: str, module: ModuleType, streams: Streams) -> None:  # noqa: ARG002
        """Part the generators of all devices, and those that a training makes."""
        from .torch_draws import TorchDraws  # only trainings whose streams are parted need it

        module.manual_seed(streams.request.kept_seed)
        TorchDraws(module, streams).install()

    def effective(self, module: ModuleType) -> dict[str, Any]:
        """Threads, CPU path, and the settings that levels fix."""
        from hashlib import sha256

        built = module.__config__.show()
        return {
            "version": str(module.__version__),
            "threads": module.get_num_threads(),
            "interop_threads": module.get_num_interop_threads(),
            "cpu_capability": module.backends.cpu.get_cpu_capability(),
            "mkldnn": module.backends.mkldnn.is_available(),
            "mkl": module.backends.mkl.is_available(),
            "deterministic_algorithms": module.are_deterministic_algorithms_enabled(),
            "cudnn_deterministic": module.backends.cudnn.deterministic,
            "cudnn_benchmark": module.backends.cudnn.benchmark,
            "float32_matmul_precision": module.get_float32_matmul_precision(),
            "default_dtype": str(module.get_default_dtype()),
            "build": sha256(built.encode()).hexdigest(),
            "blas": _blas_of(built),
        }

    def look(self, name: str, module: ModuleType, sight: Sight) -> None:  # noqa: ARG002
        """See every operation, loader and step of an optimizer."""
        _see_operations(sight)
        loader = getattr(getattr(module.utils, "data", None), "DataLoader", None)
        if loader is not None:
            _see_loaders(loader, sight)
        self.follow_steps(module, sight.stepped)

    def follow_steps(self, module: ModuleType, stepped: Callable[[], None]) -> None:  # noqa: ARG002
        """By the hook of all optimizers; torch older than 2.0 has none."""
        optimizer = importlib.import_module("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if register is not None:
            register(lambda *_: stepped())

    def settle(self, module: ModuleType) -> None:
        """Kernels are only queued when their calls return; while a graph is captured nothing may be waited for."""
        if module.cuda.is_initialized() and not module.cuda.is_current_stream_capturing():
            module.cuda.synchronize()

    def devices(self, module: ModuleType) -> dict[str, Any]:
        """The GPUs, once the training has started them."""
        if not module.cuda.is_initialized():
            return {}
        return {
            "cuda": module.version.cuda,
            "cudnn": module.backends.cudnn.version(),
            "tf32_matmul": module.backends.cuda.matmul.allow_tf32,
            "devices": [module.cuda.get_device_name(index) for index in range(module.cuda.device_count())],
        }

    def left_open(self, module: ModuleType) -> list[str]:
        """Settings of the level that do not hold at the end, however that came."""
        held = {
            "deterministic algorithms are off": module.are_deterministic_algorithms_enabled(),
            "torch.backends.cudnn.benchmark is on": not module.backends.cudnn.benchmark,
            "torch.backends.cudnn.deterministic is off": module.backends.cudnn.deterministic,
        }
        return [f"torch: {what}" for what, holds in held.items() if not holds]

    def children(self, value: Any) -> dict[Any, Any] | None:
        """The state of a module or an optimizer."""
        return dict(value.state_dict()) if callable(getattr(value, "state_dict", None)) else None

    def array(self, value: Any) -> Any | None:
        """A tensor's numbers; bfloat16, which NumPy does not have, as float32."""
        if not hasattr(value, "detach"):
            return None
        plain = value.detach().cpu()
        return (plain.float() if plain.is_floating_point() else plain).numpy()

    def probe(self, module: ModuleType, model: Any, watcher: Watcher) -> Any | None:
        """Hooks for the steps that are sampled; nothing where torch is too old to have hooks for all optimizers."""
        if not isinstance(model, module.nn.Module):
            return None
        from .probes.pytorch import TorchProbe  # only watched trainings need it

        return TorchProbe(module, model, watcher)

    def hash_array(self, update: Hash, name: str, value: Any) -> bool:
        """Memory as it lies: works for bfloat16 and without NumPy, and copies nothing."""
        if not hasattr(value, "detach") or not hasattr(value, "data_ptr"):
            return False
        tensor = value.to_local() if hasattr(value, "to_local") else value
        if tensor.is_sparse or tensor.is_quantized:
            raise TypeError(f"{name or 'the tensor'} is sparse or quantized; dense tensors have a digest")
        if callable(getattr(tensor, "__tensor_flatten__", None)):
            return self._hash_made_of_others(update, name, tensor)
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        size = plain.numel() * plain.element_size()
        framed(update, name, str(plain.dtype), str(tuple(plain.shape)))
        if size:
            import ctypes

            address = plain.data_ptr()
            if not address:  # freed, or a tensor that only stands for others: to read there would end the training
                raise TypeError(f"{name or 'the tensor'} has no memory of its own; dense tensors have a digest")
            update((ctypes.c_char * size).from_address(address))
        return True

    def _hash_made_of_others(self, update: Hash, name: str, tensor: Any) -> bool:
        """A tensor of a class of its own that computes with others, as quantized weights do: these, by their names."""
        parts = sorted(tensor.__tensor_flatten__()[0])
        framed(update, name, type(tensor).__name__, str(tuple(tensor.shape)), *parts)
        return all(self.hash_array(update, f"{name}.{part}", getattr(tensor, part)) for part in parts)


def constant(value: Any) -> int | None:
    """A seed that torch takes: a number of 64 bits, with or without a sign."""
    number = seeding.whole_number(value)
    return number if number is not None and -(2**63) <= number < 2**64 else None


def _blas_of(config: str) -> str:
    lines = [line.strip(" -") for line in config.splitlines()]
    return next((line for line in lines if "Math Kernel Library" in line or line.startswith("LAPACK")), "")


def _mkl_branch(torch: ModuleType) -> str:
    """The branch of conditional reproducibility that MKL really takes: on processors of others it is not the asked."""
    import ctypes
    from pathlib import Path

    if not torch.backends.mkl.is_available():
        return ""
    try:
        asked = ctypes.CDLL(str(Path(str(torch.__file__)).parent / "lib" / "libtorch_cpu.so")).mkl_serv_cbwr_get
    except (OSError, AttributeError):  # a build whose MKL lies elsewhere
        return ""
    found = asked(_MKL_ALL)
    branch = _MKL_BRANCHES.get(found & 0xFFFF, "")
    return f"{branch}-strict" if branch and found & _MKL_STRICT else branch


def _follow_saves(module: ModuleType) -> None:
    """Whoever calls `torch.save` tells: the file is opened in code of torch's own."""
    from ..touched import telling  # which stands on this room

    saving: Any = module.serialization
    if not hasattr(saving.save, "tells_isorun"):
        saving.save = telling(saving.save)
        setattr(module, "save", saving.save)  # noqa: B010  of any module, for all that mypy knows


def _fix_kernels(torch: ModuleType, settings: Settings, recorder: Recorder) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    _note_nondeterministic_operations(recorder)
    guarded(recorder.folder, "answering torch's settings", _answer_settings)(torch, settings, recorder)


def _answer_settings(torch: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """From now on the training's own settings against the level are answered with the level's.

    Both the C functions, which context managers call, and the properties of `torch.backends.cudnn`, which hold on to
    them, are reached. Stricter settings than the level's are left as they are: they are not against it.
    """
    answers = answering.Answers(recorder)
    _answer_cudnn(torch, answers, "benchmark", wanted=False)
    _answer_kernels(torch, answers)
    if settings.threads is not None:
        trains = os.getpid()

        def is_a_helpers(module: str) -> bool:
            """A loader's worker takes one thread, and so may who forks: more of them wait for each other for good."""
            return os.getpid() != trains or module.startswith("torch.utils.data.")

        answers.answer(torch, "set_num_threads", "torch.set_num_threads", settings.threads, is_a_helpers)
    answers.tell(torch, "set_num_interop_threads", "torch.set_num_interop_threads")
    for name, told in _PRECISIONS.items():
        # The compiler asks for "none", which is what is there, on its own behalf.
        answers.tell(torch._C, name, told, lambda *given: given[-1:] != ("none",))  # noqa: SLF001
    _answer_property(torch, "allow_tf32", getattr(torch._C, "_set_cudnn_allow_tf32", None))  # noqa: SLF001


def _answer_switches(torch: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Kernels and autotuning that a switch asks for are held against the training's own settings, as by the level."""
    answers = answering.Answers(recorder)
    if settings.switches.get("cudnn") == "on":
        _answer_cudnn(torch, answers, "benchmark", wanted=False)
    if settings.switches.get("kernels") == "deterministic":
        _note_nondeterministic_operations(recorder)
        _answer_kernels(torch, answers)


def _answer_kernels(torch: ModuleType, answers: answering.Answers) -> None:
    """Operations without a deterministic kernel run all the same, and are told."""
    _answer_cudnn(torch, answers, "deterministic", wanted=True)
    told = "torch.use_deterministic_algorithms"
    answers.answer(torch._C, "_set_deterministic_algorithms", told, True, warn_only=True)  # noqa: SLF001
    answers.answer(torch, "use_deterministic_algorithms", told, True, warn_only=True)


def _answer_cudnn(torch: ModuleType, answers: answering.Answers, name: str, *, wanted: bool) -> None:
    answers.answer(torch._C, f"_set_cudnn_{name}", f"torch.backends.cudnn.{name}", wanted)  # noqa: SLF001
    _answer_property(torch, name, getattr(torch._C, f"_set_cudnn_{name}", None))  # noqa: SLF001


def _answer_property(torch: ModuleType, name: str, setter: Callable[..., Any] | None) -> None:
    held: Any = type(torch.backends.cudnn).__dict__.get(name)
    if setter is not None and hasattr(held, "setter"):
        held.setter = setter


def _note_nondeterministic_operations(recorder: Recorder) -> None:
    """Operations without a deterministic kernel run all the same, with a warning: keep it in the record."""
    show = warnings.showwarning

    def showwarning(message: Any, *args: Any, **kwargs: Any) -> None:
        text = str(message)
        if _NONDETERMINISTIC in text:
            told = text.partition(_NONDETERMINISTIC)[0] + _NONDETERMINISTIC
            recorder.note("nondeterministic-operation", told)
            recorder.left_open(told)
        show(message, *args, **kwargs)

    warnings.showwarning = showwarning


def _see_operations(sight: Sight) -> None:
    dispatch = importlib.import_module("torch.utils._python_dispatch")

    class Onlooker(dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
        """Sees every operation, also those of backward passes."""

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            name = getattr(getattr(function, "overloadpacket", None), "__name__", "")
            if name in _DRAWS and (kwargs or {}).get("generator") is None:
                sight.note("draw", f"torch.{name}", once="torch", family="torch")
            elif name in _ADDING or _adds(name, args, kwargs or {}):
                device = next((str(item.device.type) for item in args if hasattr(item, "device")), "cpu")
                sight.note("operation", name, device=device)
            return result

    Onlooker().__enter__()


def _adds(name: str, args: Any, kwargs: Any) -> bool:
    """Whether an operation adds for these arguments: indices with `accumulate`, counts with weights."""
    if name in ("index_put", "index_put_", "_index_put_impl_"):
        return bool(kwargs.get("accumulate", args[3] if len(args) > 3 else False))
    if name == "bincount":
        return kwargs.get("weights", args[1] if len(args) > 1 else None) is not None
    return False


def _see_loaders(loader: Any, sight: Sight) -> None:
    original = loader.__init__

    @functools.wraps(original)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        sight.note("loader", "torch.utils.data.DataLoader", workers=self.num_workers)

    loader.__init__ = initialise


class TorchWatch(Watch):
    """Digests the weights at the first and after the last optimizer step, and sees whether the seed was set anew.

    Optimizers are kept alive until the end, because the model may be gone by then: the last two, and those that still
    make steps when others have come.
    """

    def __init__(self, torch: ModuleType, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._seed = torch.initial_seed()
        self._optimizers = InTurns(_parameters, _first_parameter)

    def follow_optimizers(self) -> None:
        """Ask torch to tell before each optimizer step; torch older than 2.0 cannot."""
        optimizer = importlib.import_module("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_pre_hook", None)
        if register is None:
            self._recorder.note("no-digest", "this torch has no hooks for all optimizers: call isorun.digest")
        else:
            register(self._before_step)

    def seed_set(self) -> int | None:
        """The seed that the training gave to torch by itself; None when it gave none, or the one already set."""
        now: int = self._torch.initial_seed()
        return now if now != self._seed else None

    def finish(self) -> None:
        """Digest the final weights, unless the training did."""
        told = self._optimizers.told()
        if told:
            self._recorder.trained("torch", told if told[1:] else told[0])
        elif kept_by_script := _moved_by_hand(self._torch):
            self._recorder.trained("torch", kept_by_script)

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._optimizers.holds(optimizer):
            return
        if not self._recorder.is_forked_child:
            guarded(self._recorder.folder, "digest of the initial weights", self._first_step)(optimizer)

    def _first_step(self, optimizer: Any) -> None:
        self._optimizers.comes(optimizer, optimizer)
        self._recorder.started(_parameters(optimizer))


def _moved_by_hand(torch: ModuleType) -> dict[str, Any]:
    """What the script itself holds at its end and took gradients by, without any optimizer: by the names it has there.

    A module counts where a parameter of it has a gradient, since one that only predicts has none; a tensor of the
    script's own that asks for gradients counts as it is, since people take the gradient away after each step.
    """
    modules, tensor = importlib.import_module("torch.nn").Module, torch.Tensor
    kept: dict[str, Any] = {}
    for name, value in sorted(vars(sys.modules["__main__"]).items()):
        if issubclass(type(value), modules):
            parameters = list(value.parameters())
            if any(parameter.grad is not None for parameter in parameters):
                kept[name] = parameters
        elif issubclass(type(value), tensor) and value.is_leaf and value.requires_grad:
            kept[name] = value
    return kept


def _parameters(optimizer: Any) -> list[Any]:
    return [group["params"] for group in optimizer.param_groups]


def _first_parameter(optimizer: Any) -> Any:
    return next((parameter for group in _parameters(optimizer) for parameter in group), optimizer)


FRAMEWORKS = (Torch(),)
