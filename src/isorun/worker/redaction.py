"""What may be recorded of the environment and the command line: known variables by name, no secret anywhere."""

from __future__ import annotations

import re
from typing import Mapping, Sequence

REDACTED = "<redacted>"

# Exact names: a pattern would sooner or later let a secret through.
RECORDED_VARIABLES = frozenset(
    (
        "ATEN_CPU_CAPABILITY",
        "BLIS_NUM_THREADS",
        "CUBLAS_WORKSPACE_CONFIG",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_MODULE_LOADING",
        "CUDA_VISIBLE_DEVICES",
        "CUDNN_DETERMINISTIC",
        "DNNL_DEFAULT_FPMATH_MODE",
        "DNNL_MAX_CPU_ISA",
        "GOMP_CPU_AFFINITY",
        "GOMP_SPINCOUNT",
        "GOMP_STACKSIZE",
        "HIP_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION",
        "ISORUN_LEVEL",
        "ISORUN_SEED",
        "JAX_DEFAULT_MATMUL_PRECISION",
        "JAX_ENABLE_X64",
        "JAX_PLATFORMS",
        "JAX_THREEFRY_PARTITIONABLE",
        "KERAS_BACKEND",
        "KMP_AFFINITY",
        "KMP_BLOCKTIME",
        "KMP_DETERMINISTIC_REDUCTION",
        "KMP_SETTINGS",
        "LD_PRELOAD",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MALLOC_ARENA_MAX",
        "MKL_CBWR",
        "MKL_DEBUG_CPU_TYPE",
        "MKL_DOMAIN_NUM_THREADS",
        "MKL_DYNAMIC",
        "MKL_ENABLE_INSTRUCTIONS",
        "MKL_INTERFACE_LAYER",
        "MKL_NUM_THREADS",
        "MKL_SERVICE_FORCE_INTEL",
        "MKL_THREADING_LAYER",
        "MKL_VERBOSE",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NPY_DISABLE_CPU_FEATURES",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_DYNAMIC",
        "OMP_MAX_ACTIVE_LEVELS",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "OMP_SCHEDULE",
        "OMP_STACKSIZE",
        "OMP_THREAD_LIMIT",
        "OMP_WAIT_POLICY",
        "ONEDNN_CPU_ISA_HINTS",
        "ONEDNN_DEFAULT_FPMATH_MODE",
        "ONEDNN_MAX_CPU_ISA",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
        "OPENBLAS_CORETYPE",
        "OPENBLAS_NUM_THREADS",
        "PYTHONDEVMODE",
        "PYTHONHASHSEED",
        "PYTHONOPTIMIZE",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ENABLE_MPS_FALLBACK",
        "RANK",
        "ROCR_VISIBLE_DEVICES",
        "TF_CUDNN_DETERMINISTIC",
        "TF_CUDNN_USE_AUTOTUNE",
        "TF_DETERMINISTIC_OPS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_GPU_ALLOCATOR",
        "TF_GPU_THREAD_MODE",
        "TF_NUM_INTEROP_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_USE_LEGACY_KERAS",
        "TF_XLA_FLAGS",
        "TORCHINDUCTOR_MAX_AUTOTUNE",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "TORCH_BLAS_PREFER_CUBLASLT",
        "TORCH_COMPILE_DISABLE",
        "TORCH_CUDNN_V8_API_DISABLED",
        "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT",
        "VECLIB_MAXIMUM_THREADS",
        "WORLD_SIZE",
        "XLA_FLAGS",
    )
)

# Words that name a secret wherever they stand, and words that do so at the end of a name ("--hub-token", "DB_PASS",
# but not "--tokenizer", "--key-dim" or "--pin-memory").
_SECRET_NAME = re.compile(
    r"(?i)passwd|password|passphrase|secret|credential|api[_.-]?key|access[_.-]?key|private[_.-]?key|auth[_.-]?token|"
    r"bearer|cookie|(^|[^a-z])(pass|pwd|token|keys?|auth|creds?|dsn|pat|webhook(_?url)?|salt|connection_?string)$"
)
_SECRET_SHAPE = re.compile(
    r"^(hf_|sk-|sk_live_|sk_test_|rk_live_|pk_live_|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|"
    r"ya29\.|npm_|pypi-|dop_v1_|SG\.|eyJ[A-Za-z0-9_-]+\.|-----BEGIN )"
)
_URL_LOGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/@\s]+@", re.IGNORECASE)
_SHORTEST_SECRET = 6
_HARMLESS = frozenset(("PWD", "OLDPWD"))


def recorded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say how the training computed; no other is ever looked at for the record."""
    return {name: environ[name] for name in sorted(RECORDED_VARIABLES) if name in environ}


def redacted_argv(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line without values that look secret.

    They do so by their option's name, by their shape, or by being the value of a secret-looking variable.
    """
    secrets = {value for name, value in environ.items() if _is_secret_variable(name, value)}
    redacted: list[str] = []
    value_follows = False
    for argument in map(str, argv):
        is_option = argument.startswith("-") and len(argument) > 1
        if value_follows and not is_option:
            redacted.append(REDACTED)
            value_follows = False
            continue
        redacted.append(_redacted_argument(argument, secrets))
        value_follows = is_option and "=" not in argument and names_secret(argument)
    return redacted


def _is_secret_variable(name: str, value: str) -> bool:
    return name not in RECORDED_VARIABLES and len(value) >= _SHORTEST_SECRET and names_secret(name)


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret, by the look of it."""
    return name not in _HARMLESS and _SECRET_NAME.search(name) is not None


def _redacted_argument(argument: str, secrets: set[str]) -> str:
    name, equals, value = argument.partition("=")
    if equals and (names_secret(name) or _SECRET_SHAPE.match(value)):
        return f"{name}={REDACTED}"
    if _SECRET_SHAPE.match(argument):
        return REDACTED
    for secret in secrets:
        argument = argument.replace(secret, REDACTED)
    return _URL_LOGIN.sub(rf"\g<scheme>{REDACTED}@", argument)
