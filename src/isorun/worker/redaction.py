"""What may be recorded of environment, command line and output: known variables by name, no secret anywhere.

A value is withheld when its name says that it is a secret (`--password`, `HF_TOKEN`), when its shape does (`ghp_…`, a
login in an address, a PEM block), or when it is the value of a secret variable. Names that may mean something else
(`--key`, `--salt`, `-p`) count only with a value that is no ordinary word, number or path.
"""

from __future__ import annotations

import functools
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
    ONEDNN_MAX_CPU_ISA ONEDNN_PRIMITIVE_CACHE_CAPACITY OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS PJRT_NPROC PYTHONDEVMODE
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


# Names are looked at word by word ("--hub-token", "hubToken", "DB_PASS2"). Words that name a secret wherever they
# stand, also within a longer word; words that do so before "key", "token" and the like; words that do so at the end of
# a name ("--hub-token", "DB_PASS"; not "--tokenizer", "--key-dim", "--pin-memory").
_TELLING_PARTS = _words(
    """passwd password passphrase passkey secret credential apikey apitoken accesskey accesstoken bearer privatekey
    authtoken cookie connectionstring connstr webhookurl signingkey encryptionkey"""
)
_TELLING_BEFORE = {
    "key": _words(
        """access account admin aes anon api app auth client consumer decrypt deploy encryption fernet gpg hmac ingest
        integration license master private publishable rsa security server service session shared signing ssh
        storage subscription wandb write"""
    ),
    "token": _words(
        """access api auth bearer bot ci deploy gh github gitlab hf hub huggingface oauth refresh registration security
        session"""
    ),
    "string": _words("connection conn"),
    "str": _words("connection conn"),
    "url": _words("webhook sas"),
    "uri": _words("webhook sas"),
    "config": _words("auth"),
    "phrase": _words("pass seed recovery backup"),
    "code": _words("pin unlock recovery mfa otp"),
    "json": _words("account"),
}
_TELLING_ENDS = _words("pass pwd pw passcode auth oauth authorization cred dsn pat webhook jwt otp totp psk sas")
_DOUBTFUL_ENDS = _words("key token ak sk session sessionid salt sig signature nonce pin sid mnemonic mfa hmac license")
_DOUBTFUL_BEFORE = {"id": ("session",), "header": ("auth", "authorization"), "code": ("access",), "api": ("x",)}
# Ends of words that are written together ("HFTOKEN", "rootpw").
_TELLING_TAILS = ("pwd", "pass")
_DOUBTFUL_TAILS = ("token", "key", "pw")
# Under these a name with a number ("value1") is as good a secret as any; under the others it names something.
_NEVER_NAMED = frozenset(_words("salt nonce pin sid mnemonic p pw"))
_ORDINARY_WORDS = frozenset(
    _words(
        """compass bypass surpass overpass underpass trespass encompass lowpass highpass bandpass secretary secretariat
        passwordless monkey turkey hotkey donkey hockey"""
    )
)
# The word before "token", "key" or "pass" that makes it an ordinary setting ("--pad-token", "--sort-key").
_ORDINARY_BEFORE = {
    "token": _words(
        """pad eos bos unk sep cls mask stop start end special image video audio prompt per new max min prefix suffix
        decoder forced trigger placeholder separator language think first last next num n class register patch visual
        query memory total train eval text vision target source word sub multi tool"""
    ),
    "key": _words(
        """sort primary group partition cache dict json column label feature image text input output target metric
        monitor foreign index row order reward state obs batch prng rng query value answer question caption"""
    ),
    "pass": _words("low high band two single multi first second one n num per forward backward max min"),
}
_BETWEEN_WORDS = str.maketrans("-_.+", "    ")
_SWITCHED_OFF = frozenset(_words("no without disable skip"))
_PLACES = _words(
    """file path dir folder name sock type len length size format mode count port dim dropout ids rate ratio dataset
    sharing stdin env yaml yml toml ini txt md py"""
)
_HARMLESS = frozenset(("PWD", "OLDPWD", "XDG_SESSION_ID"))
_TELLING_START = "OP_SESSION_"  # 1Password's, with the name of an account behind it
_SHORTEST_SECRET = 6
_SHORTEST_PRINTED = 8
_SHORTEST_SHAPE = 12
_MOST_PASSES = 4
_SHORT = 120

_ORDINARY_VALUE = _Lazy(
    r"(?i)true|false|none|null|yes|no|on|off|auto|default|disabled|enabled|anonymous|required|missing|invalid|unset",
    r"|empty|dummy|example|placeholder|your[-_][a-z_-]{1,40}|x{3,}",
    r"|[-+]?[\d_,.]{1,7}(?:e[-+]?\d+)?|[-+]?\d*\.\d+(?:e[-+]?\d+)?",  # a few digits: too short to keep anything
    r"|[<\[]\W?[a-z][a-z0-9_-]{1,20}\W?[>\]]",  # <pad>, [SEP], <|end|>
    r"|[*\u2022.]{3,}",  # masked already
)
_WORDS = _Lazy(
    r"[a-z]{1,20}(?:[ _.,:/-][a-z]{1,20}){0,6}|[A-Z][a-z]{1,20}(?:[ _-][A-Z]?[a-z]{1,20}){0,6}",
    r"|[A-Z]{1,12}(?:_[A-Z]{1,12}){0,4}",
)
_PATH = _Lazy(r"(?:~|\.{1,2})?/(?:[\w.@%+-]*/)+[\w.@%+-]*|(?:~|\.{1,2})/[\w.@%+-]+|/[a-z][\w.-]*")
_REFERENCE = _Lazy(r"\$[{(]|\$[A-Z_][A-Z0-9_]*(?:/|\Z)")  # to a variable, not its value
# What people call things: words and small numbers ("val/acc_top1", "resnet50-v1.5", "2024-05-01"), and any number.
_NAMED_WORD = (
    r"(?:[a-z]{1,20}(?:\d{1,4}[a-z]?)?|(?:[A-Z][a-z]{2,19}){1,4}\d{0,4}|[A-Z][a-z]?\d{0,4}|[A-Z]{2,12}\d{0,4}"
    r"|v?\d{1,8}[A-Za-z]{0,2}(?:x\d{1,5}){0,3})"
)
_NAMED = _Lazy(rf"{_NAMED_WORD}(?:[ _.,:;/@|-]{_NAMED_WORD}){{0,11}}|[-+]?[\d_,.]+(?:[eE][-+]?\d+)?[A-Za-z]?")

# Beginnings that say that what follows is a token. Those in the second list count only with a digit in what follows:
# they begin ordinary words, too.
_SURE_STARTS = _words(
    """hf_ api_org_ sk-ant- sk-or- sk-proj- sk-svcacct- sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_ gho_ ghp_
    ghr_ ghs_ ghu_ github_pat_ glpat- gldt- glrt- glsa_ xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- AIza ya29.
    GOCSPX- npm_ pypi- dop_v1_ doo_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- EAACEdEose0cBA gsk_ pplx-
    lsv2_pt_ lsv2_sk_ pcsk_ nvapi- dckr_pat_ dckr_oat_ ATATT3 ATCTT3 lin_api_ figd_ PMAK- AGE-SECRET-KEY-1 NRAK-
    dp.pt. dp.st. CFPAT- rubygems_ tskey- sntrys_ sntryu_ FLWSECK sb_secret_ sbp_ tvly- wandb_v1_ ops_eyJ
    bedrock-api-key- glcbt- glffct- glft- glimt- glagent- gloas- glptt- glsoat- GR1348941 HRKU- pnu_ rdme_ sm_aat_
    sm_pat_ sm_sat_ shippo_live_ shippo_test_ pscale_tkn_ pscale_pw_ pscale_oauth_ dnkey- NRJS- ZXlKaGJHY2lPaU
    eyJrIjoi dt0c01. duffel_live_ duffel_test_ FLWPUBK fio-u- xkeysib- sntrya_ sgp_ vercel_blob_rw_ sha256~ xoxd-
    xoxe. isorun_token_ isorun_setup_"""
)
_LIKELY_STARTS = _words(
    """sk- SG. AKIA ASIA ABIA ACCA ATBB r8_ xai- ntn_ secret_ dapi hvb. hvs. hvr. key- phc_ phx_ rnd_ fo1_ bkua_
    CLOJARS_ oy2 EZAK EZTK waka_ jina_ fw_ csk- sq0idp- NRII- AKCp cmVmd ABSK glc_ pul- tk-us- ico- p8e- LTAI EAAC
    EAAM fm1a_ fm1r_ fm2_ s-s4t2 squ_ sqp_ zpka_"""
)
# What a secret looks like otherwise, each kind with what must be in a text, in lower case, for it to be found: patterns
# are compiled only then. `kept` is what stays of a match; a match stays as it is where its `name` is no secret's or its
# value an ordinary one. All repetitions are bounded, or a long argument would take minutes.
_VALUE = (
    r"(?:[bru]{1,2}(?=[\"']))?(?:\\{0,2}\"(?P<double>[^\"\n\\]{1,999})\\{0,2}\"|'(?P<single>[^'\n]{1,999})'"
    r"|(?P<bare>[^\s\"'`&;,(){}\[\]<>|]{4,}))"
)
_SPOKEN = r"(?i:password|passwd|passphrase|secret|token|api[ _]?key)"
_HEADER = r"(?i:authorization[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?"
_SIGNS = _words("pass pwd secret cred token key cookie auth dsn jwt webhook conn _pat pw session sas")
_KINDS = (
    (("eyj",), _Lazy(r"eyJ(?<![\w-]eyJ)[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?")),
    (
        ("-----begin",),
        _Lazy(
            r"-----BEGIN [A-Za-z0-9 ]*(?:PRIVATE KEY|Static key)[A-Za-z0-9 ]*-----[\s\S]*?",
            r"(?:-----END [A-Za-z0-9 ]*(?:PRIVATE KEY|Static key)[A-Za-z0-9 ]*-----|\Z)",
            r"|-----BEGIN (?:PGP|OPENSSH|RSA|DSA|EC|ENCRYPTED|SSH2) [\s\S]+",
        ),
    ),
    ((":aa",), _Lazy(r"(?<![\w:])(?:bot)?\d{8,10}:AA[\w-]{30,}")),
    (("q~",), _Lazy(r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])")),
    ((".atlasv1.", "_mmk"), _Lazy(r"(?i)\b[a-z0-9]{14}\.atlasv1\.[\w=-]{60,70}|\b[a-z0-9]{6}_[a-z0-9]{29}_mmk\b")),
    (("discord", "bot", ".run("), _Lazy(r"(?<![\w.])[MNO][\w-]{22,27}\.[\w-]{5,7}\.[\w-]{26,}")),
    (("sk",), _Lazy(r"\bSK[0-9a-f]{32}\b")),
    (("pat",), _Lazy(r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b")),
    (("eaa",), _Lazy(r"\bEAA[A-Za-z0-9]{60,}")),
    (("v1.0-",), _Lazy(r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}")),
    (
        ("hooks.slack", "/webhook"),
        _Lazy(
            r"(?P<kept>hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/",
            r"|webhook\.office\.com/webhookb2/)[\w@/-]{20,}",
        ),
    ),
    (
        ("authorization", "bearer"),
        _Lazy(
            rf"(?P<kept>{_HEADER}))(?i:digest|aws4-hmac-sha256|hawk|oauth) [^\n]{{8,}}",
            rf"|(?P<header>{_HEADER}(?:\w{{1,20}}[ \t]{{1,9}})?|bearer\s{{1,9}}))(?P<doubtful>[\w.~+/=-]{{8,}})",
        ),
    ),
    (("basic ",), _Lazy(r"(?P<kept>(?i:basic) )(?=\S{0,99}\d)(?=\S{0,99}[A-Z])[A-Za-z0-9+/]{12,}={0,2}(?![\w./-])")),
    (
        ("?", "&"),
        _Lazy(
            r"(?P<kept>[?&](?i:token|access_token|auth_token|id_token|refresh_token|api_?key|password|passwd|pwd|secret",
            r"|sig|client_secret|jwt|sas|x-amz-(?:signature|credential|security-token)|x-goog-signature",
            r"|subscription-key|hmac|private_token|job_token)=)[^\s&#\"'<>]{4,}",
            r"|(?P<header>[?&](?i:signature|key|code|auth|session|sessionid)=)(?P<doubtful>[^\s&#\"'<>]{8,})",
        ),
    ),
    (
        _SIGNS,
        _Lazy(
            rf"(?P<name>(?i:{'|'.join(_SIGNS)})[\w.-]{{0,64}})[\\\"']{{0,3}}",
            r"(?:[ \t]{0,9}(?:[:=|]|\u2502)[ \t]{0,9}|>(?=[^<\n]{4,200}</))",
            _VALUE,
        ),
    ),
    (
        _SIGNS,
        _Lazy(
            rf"(?P<name>--[A-Za-z][\w.-]{{0,40}}?(?i:{'|'.join(_SIGNS)})[\w.-]{{0,40}})",
            r"(?:[ =]|[\"'],[ \t]?(?=[\"']))",
            _VALUE,
        ),
    ),
    (
        ("password",),
        _Lazy(
            r"(?P<header>(?:^|\n)[ \t]*password[ \t]+|\blogin[ \t]+\S{1,99}[ \t]+password[ \t]+)(?P<doubtful>[^\s:=]+)"
        ),
    ),
    (
        ("password", "passwd", "passphrase", "secret", "token", "api key", "api_key", "apikey"),
        _Lazy(  # in words: "your password is …", "bad token '…'", "token -> …", ("password", "…"), or on the next line
            rf"(?P<header>\b{_SPOKEN} (?:is|was|->|=>)[ \t]{{1,4}}[\"']?|\b{_SPOKEN} [\"']"
            rf"|[\"'][\w.-]{{0,40}}{_SPOKEN}[\"'], ?b?[\"']|{_SPOKEN}[\"']?:[ \t]{{0,9}}\r?\n[ \t]{{0,40}})",
            r"(?=[^\s\"']{0,200}\d)(?=[^\s\"']{0,200}[A-Za-z])(?P<doubtful>[A-Za-z0-9_.~+/@#$%^&*!-]{8,})(?![=:(\[])",
        ),
    ),
    (
        ("mysql", "mariadb"),
        _Lazy(r"(?P<header>\b(?:mysql|mariadb)[\w-]{0,12}(?: [^\s|;]{1,99}){0,9}? -p)(?P<doubtful>[^\s\"'=]{8,})"),
    ),
    (('"username"',), _Lazy(r"(?P<kept>\"username\": ?\"[^\"\n]{1,60}\", ?\"key\": ?\")[0-9a-f]{32}")),
    ((":5432:",), _Lazy(r"(?P<header>[\w.*-]{1,99}:5432:[\w*-]{1,60}:[\w*-]{1,60}:)(?P<doubtful>\S{4,})")),
    (
        ("sharedaccess", ";pwd="),
        _Lazy(r"(?P<kept>(?i:SharedAccessKey|SharedAccessSignature|;Pwd)=)[^;\s\"']{4,}"),
    ),
    (
        ("login", "sshpass", "npm_config__auth"),
        _Lazy(
            r"(?P<kept>(?i:wandb login|huggingface-cli login --token|npm_config__auth)[ =](?:--\w+[ =])?)[\w+/=-]{8,}",
            r"|(?P<header>\b(?:login|sshpass) (?:[^\n|;]{0,120}? )?-p[ =])(?P<doubtful>\S{4,})",
        ),
    ),
    (
        ("-u ", "--user", "-user ", "auth=("),
        _Lazy(
            r"(?P<header>(?:-[uU]|--user|--proxy-user)[ =][\"']?[\w.@+-]{1,60}:",
            r"|\bauth=\([\"'][^\"'\n]{0,60}[\"'], ?[\"'])(?P<doubtful>[^\s\"'/][^\s\"']{3,})",
        ),
    ),
)
_COLOUR = _Lazy(r"\x1b\[[0-9;:]{0,40}[mK]")
_CONNECTION_KEY = _Lazy(r"(?i:accountkey|sharedaccesskey|sharedaccesssignature|password|pwd)=(?P<key>[^;\s]{8,999})")
# The password of a login may hold "@"; one with "/" is told from a port and a path.
_URL_LOGIN = _Lazy(
    r"(?i)(?P<scheme>[a-z][a-z0-9+.-]{0,31}://)(?P<login>",
    r"[^/:@\s\"'<>?#\[]{0,99}:(?!\d{1,5}[/?#])(?:(?!://)[^\s\"'<>]){1,300}|[^/\s\"'<>?#]{1,500})@(?=[\w.\[-])",
)
_USER_OPTIONS = frozenset(("-u", "--user", "--login", "--basic-auth", "--proxy-user", "--auth", "--userpwd", "-U"))
_DOUBTFUL_OPTIONS = frozenset(("-p", "-P"))
_OPTION = _Lazy(r"(?s)--[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*(?:=.*)?|--[A-Za-z_]+(?:=.*)?|-[A-Za-z]")


def recorded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say how the training computed; no other is ever looked at for the record."""
    return {name: environ[name] for name in sorted(RECORDED_VARIABLES) if name in environ}


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret, by the look of it."""
    return _names_clearly(name) or _names_doubtfully(name)


@functools.lru_cache(maxsize=1024)  # runs mostly have the same variables, of which each is looked at several times
def holds_secret(name: str, value: str) -> bool:
    """Whether a value is a secret: by its name, unless it is an ordinary word, number or path, or by its shape."""
    if _names_clearly(name):
        return len(value) >= _SHORTEST_SECRET and not _is_plain(value)
    if _names_doubtfully(name):
        return not is_ordinary(value) and (_is_never_named(name) or not _NAMED.fullmatch(value))
    return _has_secret_shape(value)


def redacted_argv(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line without values that look secret.

    They do so by their option's name, by their shape, or by being the value of a secret-looking variable. What is
    redacted already stays as it is: the same command read back is the same command.
    """
    secrets = sorted(secret_values(environ), key=len, reverse=True)
    words = list(map(str, argv))
    for _ in range(_MOST_PASSES):  # what is taken out of a word may leave a name before what stands behind it
        before, words = words, _redacted_words(words, lambda argument: _redacted_argument(argument, secrets))
        if words == before:
            break
    return words


def secret_values(environ: Mapping[str, str]) -> Set[str]:
    """The values of the variables that hold secrets, and the logins in the addresses that any variable holds."""
    values = set()
    for name, value in environ.items():
        if name not in RECORDED_VARIABLES and holds_secret(name, value):
            values.add(value)
            values.update(found["key"] for found in _CONNECTION_KEY.finditer(value))
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
    """The text without what has the shape of a secret, wherever it stands; where one had colours, without those too."""
    if "\x1b[" not in text:
        return _without_shapes(text)
    plain = without_colours(text)
    masked = _without_shapes(plain)
    return text if masked == plain else masked


def _without_shapes(text: str) -> str:
    return _short_without_shapes(text) if len(text) <= _SHORT else _looked_through(text)


@functools.lru_cache(maxsize=1024)  # the words of commands, and lines that all runs of a study print
def _short_without_shapes(text: str) -> str:
    return _looked_through(text)


def _looked_through(text: str) -> str:
    if "://" in text and "@" in text:
        text = _URL_LOGIN.sub(_login_replacement, text)
    for start in _SURE_STARTS + _LIKELY_STARTS:
        if start in text:
            text = re.sub(_token_pattern(start), _token_replacement, text)
    lowered = text.lower()
    for signs, pattern in _KINDS:
        if any(sign in lowered for sign in signs):
            text = pattern.sub(_replacement, text)
    return text


def without_colours(text: str) -> str:
    """The text as it reads: a colour may begin within a name or a value."""
    return str(_COLOUR.sub("", text))


def _token_pattern(start: str) -> str:
    """The start of a token comes first, which the matcher finds quickly, and then that nothing stands before it.

    Where a word and "_", "=", "." or "/" follow, it starts the name of something: "hf_model_name", "npm_config=…".
    """
    start_ = re.escape(start) + ("(?!transfer|xet)" if start == "hf_" else "")  # names of its own library
    rest = r"[\w.+/=-]{12,}" if start in _SURE_STARTS else r"(?=[\w.+/=-]{0,60}\d)(?P<likely>[\w.+/=-]{16,})"
    return rf"{start_}(?<![A-Za-z0-9_-]{re.escape(start)})(?![a-z]{{2,}}\d{{0,3}}[_=./]){rest}"


def _login_replacement(found: Match[str]) -> str:
    """A user's name alone ("ssh://git@host") stays; what is longer, or no word, is a token."""
    return found[0] if re.fullmatch("[a-z]{1,12}", found["login"]) else f"{found['scheme']}{REDACTED}@"


def _token_replacement(found: Match[str]) -> str:
    likely = found.groupdict().get("likely")
    return found[0] if likely is not None and _NAMED.fullmatch(likely.partition("=")[0].strip("-_.")) else REDACTED


def _has_secret_shape(value: str) -> bool:
    """Whether a value begins with a secret: none is as short as a word, or begins as a path does."""
    may_have = len(value) >= _SHORTEST_SHAPE and value[0] not in "/.~$"
    return may_have and not value.startswith(REDACTED) and without_secrets(value).startswith(REDACTED)


def _replacement(found: Match[str]) -> str:
    groups = found.groupdict()
    doubtful = groups.get("doubtful")
    if doubtful is not None:
        return found[0] if _is_unlikely(doubtful) else f"{groups['header']}{REDACTED}"
    if groups.get("name"):
        return _pair_replacement(found)
    return f"{groups.get('kept') or ''}{REDACTED}"


def _pair_replacement(found: Match[str]) -> str:
    """What stays of `name = value` in a text: "key = …" is ordinary there, "api_key = …" and "MY_KEY=…" are not."""
    kind = next(kind for kind in ("double", "single", "bare") if found[kind] is not None)
    start, value = found.start("name"), found[kind]
    before = re.search(r"[\w.-]*\Z", found.string[max(0, start - 64) : start])
    name = (before[0] if before else "") + found["name"]
    is_code = kind == "bare" and found.string[found.end() : found.end() + 1] in ("(", "[")
    if is_code or value.startswith(REDACTED):
        return found[0]
    in_table = found.string[found.end("name") : found.start(kind)].strip("\"' \t") in ("|", "\u2502")
    if not _is_printed_secret(name, value, in_table):
        return found[0]
    start, end = found.start(kind) - found.start(), found.end(kind) - found.start()
    return f"{found[0][:start]}{REDACTED}{found[0][end:]}"


def _is_printed_secret(name: str, value: str, in_table: bool) -> bool:
    """Whether a value is a secret by the name before it in a text, where less is certain than in a command."""
    if _names_surely(_name_words(name)) and _names_clearly(name) and not in_table:
        return not _is_plain(value)
    counts = _names_clearly(name) or (name.upper() == name and _names_doubtfully(name))
    return counts and not _is_unlikely(value)


def _is_unlikely(value: str) -> bool:
    """Whether a printed value is too short for a secret, or what people call things."""
    value = value.rstrip(".,;:!?)")
    return len(value) < _SHORTEST_PRINTED or is_ordinary(value) or _NAMED.fullmatch(value) is not None


def _name_words(name: str) -> List[str]:
    """The words of a name in lower case, without the digits that number them: "hfToken2" is hf, token."""
    if not (name.islower() or name.isupper()):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    words = [word.rstrip("0123456789") for word in name.lower().translate(_BETWEEN_WORDS).split()]
    return [word for word in words if word] or [""]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _is_ordinary_name(words: List[str]) -> bool:
    last = _singular(words[-1])
    if words[0] in _SWITCHED_OFF or last in _ORDINARY_WORDS:
        return True
    return len(words) > 1 and words[-2] in _ORDINARY_BEFORE.get(last, ())


def _names_surely(words: List[str]) -> bool:
    """Whether there is a word that names nothing but secrets, or two that do so together."""
    together = " ".join(word for word in words if word not in _ORDINARY_WORDS)
    if any(part in together for part in _TELLING_PARTS):
        return True
    return any(_tells_after(words, place) for place in range(1, len(words)))


def _tells_after(words: List[str], place: int) -> bool:
    return words[place - 1] in _TELLING_BEFORE.get(_singular(words[place]), ())


def _names_clearly(name: str) -> bool:
    words = _name_words(name)
    if name in _HARMLESS or _is_ordinary_name(words):
        return False
    if words == ["token"] or name.startswith(_TELLING_START):
        return True
    if len(words) > 1 and _tells_after(words, len(words) - 1):
        return True
    last = words[-1]
    if last in _PLACES:
        return False
    return _singular(last) in _TELLING_ENDS or last.endswith(_TELLING_TAILS) or _names_surely(words)


def _names_doubtfully(name: str) -> bool:
    if name in _DOUBTFUL_OPTIONS:
        return True
    words = _name_words(name)
    if name in _HARMLESS or _is_ordinary_name(words) or words[-1] in _PLACES:
        return False
    if "token" in words and name[:2].isupper():  # POETRY_PYPI_TOKEN_PYPI; of options "--token-dim" is more likely
        return True
    last = _singular(words[-1])
    if len(words) > 1 and words[-2] in _DOUBTFUL_BEFORE.get(last, ()):
        return True
    return last in _DOUBTFUL_ENDS or last.endswith(_DOUBTFUL_TAILS)


def _is_never_named(name: str) -> bool:
    """Whether a name with a number in it would be a strange value here."""
    return _name_words(name)[-1] in _NEVER_NAMED


def _is_plain(value: str) -> bool:
    """Whether a value is no secret under any name: a switch, a few digits, or where a shell finds the secret."""
    return _ORDINARY_VALUE.fullmatch(value) is not None or _REFERENCE.match(value) is not None


def is_ordinary(value: str) -> bool:
    """Whether a value is a word, a number, a path or too short: nothing that anybody would call a secret."""
    if len(value) < _SHORTEST_SECRET or _is_plain(value) or _PATH.fullmatch(value):
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
        # A word that holds its value already ("--password:…") takes no other, before it is redacted or after.
        is_option = word.startswith("-") and len(word) > 1 and "=" not in word and REDACTED not in redacted[-1]
        option = word if is_option and _may_take(word) else ""
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
        return word if password.startswith(REDACTED) or password.isdigit() else f"{user}:{REDACTED}"
    if names_secret(option) and (
        word.startswith(REDACTED) or holds_secret(option, word) or _is_short_secret(option, word)
    ):
        return word if word.startswith(REDACTED) else REDACTED
    return redacted_word(word)


def _is_short_secret(name: str, value: str) -> bool:
    """Under a name that always means a secret even a short value is withheld, unless it is a number or a switch."""
    return _names_clearly(name) and bool(value) and not _is_plain(value)


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
    counts = (name.startswith("-") or name.isupper() or _names_clearly(name)) and not value.startswith(("(", "[", "{"))
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
    return value == REDACTED or holds_secret(name, value) or _is_short_secret(name, value)


def _attached_password(argument: str) -> str:
    """The form "-pSecret1" of database clients; "" for any other argument."""
    value = argument[2:].lstrip("=")
    is_attached = argument[:2] == "-p" and len(value) >= _SHORTEST_SECRET and not is_ordinary(value)
    return f"-p{REDACTED}" if is_attached and re.search(r"\d", value) and value.isprintable() else ""
