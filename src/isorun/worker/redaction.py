"""What may be recorded of the environment and the command line: known variables by name, no secret anywhere."""

from __future__ import annotations

import re
import zlib
from typing import Callable, Mapping, Sequence

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
_TELLING_WORDS = (
    r"passwd|password|passphrase|secret|credential|api[_.-]?key|access[_.-]?key|private[_.-]?key|auth[_.-]?token|"
    r"bearer|cookie"
)
_SECRET_NAME = re.compile(
    rf"(?i){_TELLING_WORDS}|(^|[^a-z])(pass|pwd|token|keys?|auth|creds?|dsn|pat|webhook(_?url)?|salt|connection_?string)$"
)
_TELLING_STARTS = (
    r"(?:hf_|sk-|sk_live_|sk_test_|rk_live_|pk_live_|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|"
    r"ya29\.|npm_|pypi-|dop_v1_|SG\.|eyJ[A-Za-z0-9_-]+\.|-----BEGIN )"
)
_SECRET_SHAPE = re.compile(rf"^{_TELLING_STARTS}")
_TELLING_NAME = re.compile(rf"(?i){_TELLING_WORDS}")
_AMBIGUOUS_NAME = re.compile(r"(?i)(^|[^a-z])(keys?|token)$")
# Secrets inside a longer text, such as code given by `-c` or a header. Only the words that always name a secret count
# here: "key = …" is ordinary code. All repetitions are bounded, or a long argument would take minutes.
_SECRET_INSIDE = re.compile(
    rf"(?<![A-Za-z0-9]){_TELLING_STARTS}[\w.+/=-]{{12,}}"
    r"|-----BEGIN [\s\S]+"
    r"|(?P<header>(?i:bearer|authorization:\s{0,9}\w{1,20})\s{1,9})[\w.~+/=-]{8,}"
    rf"|(?P<name>(?i:{_TELLING_WORDS})[\w.-]{{0,64}}[\"']?\s{{0,9}}[:=]\s{{0,9}})"
    r"(?:\"[^\"]{1,999}\"|'[^']{1,999}'|[^\s\"'&;,(){}\[\]]{4,})"
)
_URL_LOGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,31}://)[^/@\s]+@", re.IGNORECASE)
_SHORTEST_SECRET = 6
_HARMLESS = frozenset(("PWD", "OLDPWD"))


def recorded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say how the training computed; no other is ever looked at for the record."""
    return {name: environ[name] for name in sorted(RECORDED_VARIABLES) if name in environ}


def redacted_argv(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line without values that look secret.

    They do so by their option's name, by their shape, or by being the value of a secret-looking variable.
    """
    secrets = secret_values(environ)
    return _redacted_words(list(map(str, argv)), lambda argument: _redacted_argument(argument, secrets))


def secret_values(environ: Mapping[str, str]) -> set[str]:
    """The values of the variables that hold secrets, by the look of their names."""
    return {value for name, value in environ.items() if _is_secret_variable(name, value)}


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret, by the look of it."""
    return name not in _HARMLESS and _SECRET_NAME.search(name) is not None


def without_secrets(text: str) -> str:
    """The text without what has the shape of a secret, wherever it stands."""
    text = _SECRET_INSIDE.sub(lambda found: f"{found['header'] or found['name'] or ''}{REDACTED}", text)
    return _URL_LOGIN.sub(rf"\g<scheme>{REDACTED}@", text)


def _is_secret_variable(name: str, value: str) -> bool:
    return name not in RECORDED_VARIABLES and len(value) >= _SHORTEST_SECRET and names_secret(name)


def _redacted_words(words: Sequence[str], redacted_word: Callable[[str], str]) -> list[str]:
    """The words, without those that follow a secret-looking option, and each of the others as `redacted_word` says."""
    redacted: list[str] = []
    secret_option = ""
    for word in words:
        is_option = word.startswith("-") and len(word) > 1
        is_secret = secret_option and not is_option
        redacted.append(_stand_in(secret_option, word) if is_secret else redacted_word(word))
        secret_option = word if is_option and "=" not in word and names_secret(word) else ""
    return redacted


def _stand_in(name: str, value: str) -> str:
    """What is recorded in place of the value of a secret-looking option; what stands there already stays.

    Where the name may be that of an ordinary setting ("--sort-key"), 16 bits tell two values apart: far too few to
    find a token by, and without them two commands would count as one and the second would never be run.
    """
    if value.startswith(REDACTED):
        return value
    is_clear = _TELLING_NAME.search(name) or not _AMBIGUOUS_NAME.search(name)
    return REDACTED if is_clear else f"{REDACTED}~{zlib.crc32(value.encode(errors='surrogateescape')) & 0xFFFF:04x}"


def _redacted_argument(argument: str, secrets: set[str]) -> str:
    for secret in secrets:
        argument = argument.replace(secret, REDACTED)
    return _redacted_text(argument) if _is_text(argument) else _redacted_value(argument)


def _is_text(argument: str) -> bool:
    """Whether this is code or a shell command: of those only the secrets may go, or two of them would look alike."""
    return re.search(r"\s", argument.partition("=")[0] if argument.startswith("-") else argument) is not None


def _redacted_text(text: str) -> str:
    pieces = re.split(r"(\s+)", text)
    pieces[::2] = _redacted_words(pieces[::2], _redacted_piece)
    return without_secrets("".join(pieces))


def _redacted_piece(word: str) -> str:
    """A word of a text: `key=…` is ordinary code there, `api_key=…` is not."""
    name, equals, value = word.partition("=")
    is_secret = names_secret(name) if name.startswith("-") else _TELLING_NAME.search(name)
    return f"{name}={_stand_in(name, value)}" if equals and is_secret else word


def _redacted_value(argument: str) -> str:
    name, equals, value = argument.partition("=")
    if equals and _SECRET_SHAPE.match(value):
        return f"{name}={REDACTED}"
    if equals and names_secret(name):
        return f"{name}={_stand_in(name, value)}"
    return REDACTED if _SECRET_SHAPE.match(argument) else without_secrets(argument)
