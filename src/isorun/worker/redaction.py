"""What may be recorded of environment, command line and output: known variables by name, no secret anywhere.

A value is withheld when its name says that it is a secret (`--password`, `HF_TOKEN`), when its shape does (`ghp_…`, a
login in an address, a PEM block), or when it is the value of a secret variable. Names that may mean something else
(`--key`, `--salt`, `-p`) count only with a value that is no ordinary word, number or path.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, List, Mapping, Match, Sequence, Set, Tuple

REDACTED = "<redacted>"


def _words(text: str) -> Tuple[str, ...]:
    """The words of a text, for lists that read better as prose."""
    return tuple(text.split())


# Exact names: a pattern would sooner or later let a secret through.
RECORDED_VARIABLES = frozenset(
    _words(
        """ATEN_CPU_CAPABILITY BLIS_NUM_THREADS CUBLAS_WORKSPACE_CONFIG CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING
    CUDA_MODULE_LOADING CUDA_VISIBLE_DEVICES CUDNN_DETERMINISTIC DNNL_DEFAULT_FPMATH_MODE DNNL_MAX_CPU_ISA
    GOMP_CPU_AFFINITY GOMP_SPINCOUNT GOMP_STACKSIZE HIP_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION ISORUN_LEVEL
    ISORUN_SEED JAX_DEFAULT_MATMUL_PRECISION JAX_ENABLE_X64 JAX_PLATFORMS JAX_THREEFRY_PARTITIONABLE KERAS_BACKEND
    KMP_AFFINITY KMP_BLOCKTIME KMP_DETERMINISTIC_REDUCTION KMP_SETTINGS LD_PRELOAD LOCAL_RANK LOCAL_WORLD_SIZE
    MALLOC_ARENA_MAX MKL_CBWR MKL_DEBUG_CPU_TYPE MKL_DOMAIN_NUM_THREADS MKL_DYNAMIC MKL_ENABLE_INSTRUCTIONS
    MKL_INTERFACE_LAYER MKL_NUM_THREADS MKL_SERVICE_FORCE_INTEL MKL_THREADING_LAYER MKL_VERBOSE NCCL_ALGO
    NCCL_PROTO NPY_DISABLE_CPU_FEATURES NUMBA_NUM_THREADS NUMEXPR_MAX_THREADS NUMEXPR_NUM_THREADS
    NVIDIA_TF32_OVERRIDE OMP_DYNAMIC OMP_MAX_ACTIVE_LEVELS OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND OMP_SCHEDULE
    OMP_STACKSIZE OMP_THREAD_LIMIT OMP_WAIT_POLICY ONEDNN_CPU_ISA_HINTS ONEDNN_DEFAULT_FPMATH_MODE
    ONEDNN_MAX_CPU_ISA ONEDNN_PRIMITIVE_CACHE_CAPACITY OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS PYTHONDEVMODE
    PYTHONHASHSEED PYTHONOPTIMIZE PYTORCH_CUDA_ALLOC_CONF PYTORCH_ENABLE_MPS_FALLBACK RANK ROCR_VISIBLE_DEVICES
    TF_CUDNN_DETERMINISTIC TF_CUDNN_USE_AUTOTUNE TF_DETERMINISTIC_OPS TF_ENABLE_ONEDNN_OPTS
    TF_FORCE_GPU_ALLOW_GROWTH TF_GPU_ALLOCATOR TF_GPU_THREAD_MODE TF_NUM_INTEROP_THREADS TF_NUM_INTRAOP_THREADS
    TF_USE_LEGACY_KERAS TF_XLA_FLAGS TORCHINDUCTOR_MAX_AUTOTUNE TORCH_ALLOW_TF32_CUBLAS_OVERRIDE
    TORCH_BLAS_PREFER_CUBLASLT TORCH_COMPILE_DISABLE TORCH_CUDNN_V8_API_DISABLED
    TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT VECLIB_MAXIMUM_THREADS WORLD_SIZE XLA_FLAGS"""
    )
)


class _Lazy:
    """A pattern that is compiled when it is first asked something: that takes as long as all else the worker does."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile("".join(self._parts))
        kinds = ("match", "fullmatch", "sub", "finditer")
        self.__dict__.update({kind: getattr(compiled, kind) for kind in kinds})
        return self.__dict__[name]


# Names are looked at word by word. Words that name a secret wherever they stand, also within a longer word; words that
# do so before "key", "token" and the like; words that do so at the end of a name ("--hub-token", "DB_PASS"; not
# "--tokenizer", "--key-dim", "--pin-memory").
_TELLING_PARTS = _words(
    """passwd password passphrase secret credential apikey apitoken accesskey accesstoken bearer privatekey authtoken
    cookie connectionstring webhookurl signingkey encryptionkey"""
)
_TELLING_BEFORE = {
    "key": _words(
        """access account admin api app auth consumer deploy encryption gpg hmac ingest integration license master
        private project publishable rsa security server service session shared signing ssh storage
        subscription wandb write"""
    ),
    "token": _words("access api auth registration security session"),
    "string": _words("connection conn"),
    "str": _words("conn"),
    "url": _words("webhook"),
    "config": _words("auth"),
}
_TELLING_ENDS = _words("pass pwd pw passcode token auth creds cred dsn pat webhook jwt otp sas license")
_ENDING_LIKE_PASS = _words("compass bypass surpass overpass underpass trespass encompass lowpass highpass bandpass")
_DOUBTFUL_ENDS = _words("key keys salt sig signature nonce pin sid mnemonic")
# The word before "token" or "key" that makes it an ordinary setting ("--pad-token", "--sort-key").
_ORDINARY_BEFORE = {
    "token": _words(
        """pad eos bos unk sep cls mask stop start end special image video audio prompt per new max min prefix suffix
        decoder forced trigger placeholder separator language no think first last next num n"""
    ),
    "key": _words(
        """sort primary group partition cache dict json column label feature image text input output target metric
        monitor foreign index row order reward state obs batch prng rng query value answer question caption"""
    ),
}
_PLACES = _words("file path dir folder name sock type len length size format mode")
_HARMLESS = frozenset(("PWD", "OLDPWD"))
_SHORTEST_SECRET = 6

_ORDINARY_VALUE = _Lazy(
    r"(?i)true|false|none|null|yes|no|on|off|auto|default|disabled|enabled",
    r"|[-+]?[\d_,.]{1,7}(?:e[-+]?\d+)?|[-+]?\d*\.\d+(?:e[-+]?\d+)?",  # a few digits: too short to keep anything
    r"|[<\[]\W?[a-z_]{2,12}\W?[>\]]",  # <pad>, [SEP], <|end|>
)
_WORDS = _Lazy(
    r"[a-z]{1,20}(?:[ _.,:/-][a-z]{1,20}){0,6}|[A-Z][a-z]{1,20}(?:[ _-][A-Z]?[a-z]{1,20}){0,6}",
    r"|[A-Z]{1,12}(?:_[A-Z]{1,12}){0,4}",
)
_PATH = _Lazy(r"(?:~|\.{1,2})?/(?:[\w.@%+-]*/)+[\w.@%+-]*|(?:~|\.{1,2})/[\w.@%+-]+|/[a-z][\w.-]*")

# Beginnings that say that what follows is a token. Those in the second list count only with a digit in what follows:
# they begin ordinary words, too.
_SURE_STARTS = _words(
    """hf_ api_org_ sk- sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_
    glpat- gldt- glrt- glsa_ xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- AKIA ASIA AIza ya29. GOCSPX- npm_
    pypi- dop_v1_ doo_v1_ dor_v1_ SG. shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- EAACEdEose0cBA gsk_ pplx-
    lsv2_pt_ lsv2_sk_ pcsk_ nvapi- dckr_pat_ dckr_oat_ ATATT3 ATCTT3 lin_api_ figd_ PMAK- AGE-SECRET-KEY-1 NRAK-
    dp.pt. dp.st. CFPAT- rubygems_ tskey- sntrys_ sntryu_ FLWSECK sb_secret_ sbp_ tvly- wandb_v1_
    ops_eyJ bedrock-api-key- glcbt- glffct- glft- glimt- glagent- gloas- glptt- glsoat- GR1348941 HRKU- pnu_ rdme_
    sm_aat_ sm_pat_ sm_sat_ shippo_live_ shippo_test_ pscale_tkn_ pscale_pw_ pscale_oauth_ dnkey- NRJS-
    ZXlKaGJHY2lPaU eyJrIjoi dt0c01. duffel_live_ duffel_test_ FLWPUBK fio-u- xkeysib- sntrya_ sgp_
    sha256~ xoxd- xoxe."""
)
_LIKELY_STARTS = _words(
    """ABIA ACCA ATBB r8_ xai- ntn_ secret_ dapi hvb. hvs. hvr. key- phc_ phx_ rnd_ fo1_ bkua_ CLOJARS_ oy2 EZAK EZTK
    waka_ jina_ fw_ csk- sq0idp- NRII- AKCp cmVmd ABSK glc_ pul- tk-us- ico- p8e- LTAI EAAC EAAM fm1a_ fm1r_ fm2_
    s-s4t2 squ_ sqp_ zpka_"""
)
# What a secret looks like otherwise, each kind with what must be in a text, in lower case, for it to be found: patterns
# are compiled only then. `kept` is what stays of a match. Only words that always name a secret count within a text:
# "key = …" is ordinary code there. All repetitions are bounded, or a long argument would take minutes.
_KINDS = (
    (("eyj",), _Lazy(r"eyJ(?<![\w-]eyJ)[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?")),
    (
        ("-----begin",),
        _Lazy(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?",
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            r"|-----BEGIN (?:PGP|OPENSSH|RSA|DSA|EC|ENCRYPTED|SSH2) [\s\S]+",
        ),
    ),
    ((":aa",), _Lazy(r"(?<![\w:])\d{8,10}:AA[\w-]{30,}")),
    (("q~",), _Lazy(r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])")),
    ((".atlasv1.", "_mmk"), _Lazy(r"(?i)\b[a-z0-9]{14}\.atlasv1\.[\w=-]{60,70}|\b[a-z0-9]{6}_[a-z0-9]{29}_mmk\b")),
    (("discord", "bot"), _Lazy(r"(?<![\w.])[MNO][\w-]{22,27}\.[\w-]{5,7}\.[\w-]{26,}")),
    (
        ("hooks.slack", "/webhook"),
        _Lazy(
            r"(?P<kept>hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/webhookb2/)",
            r"[\w@/-]{20,}",
        ),
    ),
    (
        _words("bearer basic authorization x- private-token apikey"),
        _Lazy(
            r"(?P<kept>(?i:(?:bearer|basic)\s{1,9}|authorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?:\w{1,20}\s{1,9})?",
            r"|(?:x-[\w-]{1,30}-(?:key|token|secret|auth)|private-token|x-api-key|apikey)[\"']?\s{0,9}:\s{0,9}[\"']?))",
            r"(?=[^\s\"']{0,60}[\d+/=._-]|[^\s\"']{16})[\w.~+/=-]{8,}",
        ),
    ),
    (
        ("?", "&"),
        _Lazy(
            r"(?P<kept>[?&](?i:sig|signature|token|access_token|auth_token|id_token|refresh_token|api_?key|key|password",
            r"|passwd|pwd|secret|client_secret|code|auth|jwt|sas|x-amz-(?:signature|credential|security-token)",
            r"|x-goog-signature|subscription-key|hmac|session|sessionid|private_token|job_token)=)[^\s&#\"'<>]{4,}",
        ),
    ),
    (
        _words("passwd password passphrase secret credential key token cookie"),
        _Lazy(
            r"(?P<kept>(?i:passwd|password|passphrase|secret|credential|(?:api|access|private|account)[_.-]?key",
            r"|(?:auth|access|refresh|bot|hub|hf|api)[_.-]?token|cookie)",
            r"(?![\w.-]{0,40}(?:file|path|dir|folder|name|type|len|length|size)\b)[\w.-]{0,64}[\"']?\s{0,9}[:=]\s{0,9})",
            r"(?:\"(?P<double>[^\"]{1,999})\"|'(?P<single>[^']{1,999})'|(?P<bare>[^\s\"'&;,(){}\[\]<>]{4,}))",
        ),
    ),
    (
        _words("_token _key _pass _pwd _pat _dsn _auth _session"),
        _Lazy(
            r"(?P<kept>\b(?:[A-Z][A-Z0-9_]{1,60}_(?:TOKEN|KEY|PASS|PWD|PAT|DSN|AUTH)|_\w+_session)[\"']?\s{0,3}[:=]\s{0,3})",
            r"(?P<doubtful>[^\s\"'&;,(){}\[\]<>]{8,})",
        ),
    ),
    (
        _words("accountkey= sharedaccess pwd= password="),
        _Lazy(r"(?P<kept>(?i:AccountKey|SharedAccessKey|SharedAccessSignature|Pwd|Password)=)[^;\s\"']{4,}"),
    ),
    (
        ("login", "npm_config__auth"),
        _Lazy(
            r"(?P<kept>(?i:wandb login|huggingface-cli login --token|docker login -p|npm_config__auth)[ =]",
            r"(?:--\w+[ =])?)[\w+/=-]{8,}",
        ),
    ),
)
_URL_LOGIN = _Lazy(r"(?i)(?P<scheme>[a-z][a-z0-9+.-]{0,31}://)(?P<login>[^/@\s\"'<>]{1,500})@")
_USER_OPTIONS = frozenset(("-u", "--user", "--login", "--basic-auth", "--proxy-user", "--auth", "--userpwd", "-U"))
_DOUBTFUL_OPTIONS = frozenset(("-p", "-P"))
_OPTION = _Lazy(r"(?s)--[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*(?:=.*)?|--[A-Za-z_]+(?:=.*)?|-[A-Za-z]")


def recorded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say how the training computed; no other is ever looked at for the record."""
    return {name: environ[name] for name in sorted(RECORDED_VARIABLES) if name in environ}


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret, by the look of it."""
    return _names_clearly(name) or _names_doubtfully(name)


def holds_secret(name: str, value: str) -> bool:
    """Whether a value is a secret: by its name, unless it is an ordinary word, number or path, or by its shape."""
    if _names_clearly(name):
        return len(value) >= _SHORTEST_SECRET and not _ORDINARY_VALUE.fullmatch(value)
    if _names_doubtfully(name):
        return not is_ordinary(value)
    return _has_secret_shape(value)


def redacted_argv(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line without values that look secret.

    They do so by their option's name, by their shape, or by being the value of a secret-looking variable.
    """
    secrets = sorted(secret_values(environ), key=len, reverse=True)
    return _redacted_words(list(map(str, argv)), lambda argument: _redacted_argument(argument, secrets))


def secret_values(environ: Mapping[str, str]) -> Set[str]:
    """The values of the variables that hold secrets, and the logins in the addresses that any variable holds."""
    values = set()
    for name, value in environ.items():
        if name not in RECORDED_VARIABLES and holds_secret(name, value):
            values.add(value)
        if "://" in value:
            values.update(_logins(value))
    return {value for value in values if not value.startswith(REDACTED)}


def withheld_values(argv: Sequence[str], environ: Mapping[str, str]) -> Set[str]:
    """What `redacted_argv` takes out of a command line: the same values are masked where a training prints them."""
    values: Set[str] = set()
    for before, after in zip(map(str, argv), redacted_argv(argv, environ)):
        if before != after:
            values.update(_taken_out(before, after))
            values.update(_logins(before))
    return values


def without_secrets(text: str) -> str:
    """The text without what has the shape of a secret, wherever it stands."""
    for start in _SURE_STARTS + _LIKELY_STARTS:
        if start in text:
            text = re.sub(_token_pattern(start), REDACTED, text)
    lowered = text.lower()
    for signs, pattern in _KINDS:
        if any(sign in lowered for sign in signs):
            text = pattern.sub(_replacement, text)
    if "://" in text and "@" in text:
        text = _URL_LOGIN.sub(rf"\g<scheme>{REDACTED}@", text)
    return text


def _token_pattern(start: str) -> str:
    """The start of a token comes first, which the matcher finds quickly, and then that nothing stands before it."""
    start_ = re.escape(start) + ("(?!hub_|transfer|xet)" if start == "hf_" else "")  # names of its own library
    rest = r"[\w.+/=-]{12,}" if start in _SURE_STARTS else r"(?=[\w.+/=-]{0,60}\d)[\w.+/=-]{16,}"
    return rf"{start_}(?<![A-Za-z0-9_-]{re.escape(start)}){rest}"


def _has_secret_shape(value: str) -> bool:
    return without_secrets(value).startswith(REDACTED)


def _replacement(found: Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("doubtful") is not None and is_ordinary(groups["doubtful"]):
        return found[0]
    named = groups.get("double") or groups.get("single") or groups.get("bare")
    if named is not None and (_ORDINARY_VALUE.fullmatch(named) or named.startswith(REDACTED)):
        return found[0]
    return f"{groups.get('kept') or ''}{REDACTED}"


def _name_words(name: str) -> List[str]:
    return name.lower().replace("-", "_").replace(".", "_").replace("+", "_").strip("_").split("_")


def _is_ordinary_name(words: List[str]) -> bool:
    return len(words) > 1 and words[-2] in _ORDINARY_BEFORE.get(words[-1].rstrip("s"), ())


def _names_clearly(name: str) -> bool:
    words = _name_words(name)
    if name in _HARMLESS or words[-1] in _PLACES or _is_ordinary_name(words):
        return False
    if words[-1] in _TELLING_ENDS or any(part in word for word in words for part in _TELLING_PARTS):
        return True
    if words[-1].endswith(("pwd", "pass")) and words[-1] not in _ENDING_LIKE_PASS:
        return True
    if "token" in words and name[:2].isupper():  # POETRY_PYPI_TOKEN_PYPI; of options "--token-len" is more likely
        return True
    places = range(1, len(words))
    return any(words[place - 1] in _TELLING_BEFORE.get(words[place], ()) for place in places)


def _names_doubtfully(name: str) -> bool:
    words = _name_words(name)
    return name in _DOUBTFUL_OPTIONS or (words[-1] in _DOUBTFUL_ENDS and not _is_ordinary_name(words))


def is_ordinary(value: str) -> bool:
    """Whether a value is a word, a number, a path or too short: nothing that anybody would call a secret."""
    if len(value) < _SHORTEST_SECRET or _ORDINARY_VALUE.fullmatch(value) or _PATH.fullmatch(value):
        return True
    return _WORDS.fullmatch(value) is not None


def _logins(text: str) -> Iterable[str]:
    """The passwords in the addresses of a text, and the whole logins."""
    for found in _URL_LOGIN.finditer(text):
        login = found["login"]
        password = login.partition(":")[2]
        yield from (login, password) if password else (login,)


def _taken_out(before: str, after: str) -> List[str]:
    """The pieces of `before` that a redaction replaced: what stands between the pieces that it left."""
    pieces = [re.escape(piece) for piece in re.split(rf"{re.escape(REDACTED)}(?:~[0-9a-f]{{4}})?", after)]
    found = re.fullmatch("([\\s\\S]+?)".join(pieces), before)
    return [value.strip("\"' ") for value in found.groups()] if found else []


def _redacted_words(words: Sequence[str], redacted_word: Callable[[str], str]) -> list[str]:
    """The words, without those that follow a secret-looking option, and each of the others as `redacted_word` says."""
    redacted: list[str] = []
    option = ""
    for word in words:
        if option and _belongs_to(option, word):
            redacted.append(_redacted_option_value(option, word, redacted_word))
            option = ""
            continue
        redacted.append(redacted_word(word))
        option = word if word.startswith("-") and len(word) > 1 and "=" not in word and _may_take(word) else ""
    return redacted


def _may_take(option: str) -> bool:
    return names_secret(option) or option in _USER_OPTIONS


def _belongs_to(option: str, word: str) -> bool:
    """Whether a word is the value of the option before it, also one that starts with "-" and reads like no option."""
    if not word.startswith("-") or len(word) == 1:
        return True
    return _names_clearly(option) and _OPTION.fullmatch(word) is None


def _redacted_option_value(option: str, word: str, redacted_word: Callable[[str], str]) -> str:
    user, colon, password = word.partition(":")
    if option in _USER_OPTIONS and colon and password and "/" not in user and not password.startswith("//"):
        return word if password.startswith(REDACTED) else f"{user}:{REDACTED}"
    if names_secret(option) and (
        word.startswith(REDACTED) or holds_secret(option, word) or _is_short_secret(option, word)
    ):
        return word if word.startswith(REDACTED) else REDACTED
    return redacted_word(word)


def _is_short_secret(name: str, value: str) -> bool:
    """Under a name that always means a secret even a short value is withheld, unless it is a number or a switch."""
    return _names_clearly(name) and bool(value) and not _ORDINARY_VALUE.fullmatch(value)


def _redacted_argument(argument: str, secrets: Sequence[str]) -> str:
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
    """A word of a text: `key=…` is ordinary code there, `api_key=…` and `--key=…` are not."""
    name, equals, value = word.partition("=")
    counts = name.startswith("-") or name.isupper() or _names_clearly(name)
    return f"{name}={REDACTED}" if equals and counts and _is_secret_pair(name, value) else word


def _redacted_value(argument: str) -> str:
    name, equals, value = argument.partition("=")
    if equals and _has_secret_shape(value):
        return f"{name}={REDACTED}"
    if equals and value and _is_secret_pair(name, value):
        return f"{name}={REDACTED}"
    attached = _attached_password(argument)
    if attached:
        return attached
    return REDACTED if _has_secret_shape(argument) else without_secrets(argument)


def _is_secret_pair(name: str, value: str) -> bool:
    return value.startswith(REDACTED) or holds_secret(name, value) or _is_short_secret(name, value)


def _attached_password(argument: str) -> str:
    """The form "-pSecret1" of database clients; "" for any other argument."""
    value = argument[2:]
    is_attached = argument[:2] == "-p" and len(value) >= _SHORTEST_SECRET and not is_ordinary(value)
    return f"-p{REDACTED}" if is_attached and re.search(r"\d", value) and value.isprintable() else ""
