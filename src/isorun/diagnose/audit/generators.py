"""Generators of random numbers: never seeded, seeded too late, or seeded from a clock or from entropy.

A generator of the whole process (Python's, NumPy's, torch's, TensorFlow's, Keras') is followed through the program in
the order of execution: who draws from it, who seeds it, and which comes first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from isorun.diagnose.audit.findings import AuditFinding, SourceEdit, Sure, edited, with_keyword
from isorun.diagnose.audit.flow import Flow, FlowStep
from isorun.diagnose.audit.program import keyword

__all__ = ["SEED_LINES", "generator_findings"]

_ALL: Final = ("random", "numpy", "torch")
_SEEDS: Final[dict[str, tuple[str, ...]]] = {
    "random.seed": ("random",),
    "numpy.random.seed": ("numpy",),
    "torch.manual_seed": ("torch",),
    "tensorflow.random.set_seed": ("tensorflow",),
    "tensorflow.set_random_seed": ("tensorflow",),
    "keras.utils.set_random_seed": (*_ALL, "tensorflow", "keras"),
    "lightning.seed_everything": _ALL,
    "transformers.set_seed": (*_ALL, "tensorflow"),
    "transformers.enable_full_determinism": (*_ALL, "tensorflow"),
    "transformers.Trainer": _ALL,
    "transformers.Seq2SeqTrainer": _ALL,
    "trl.SFTTrainer": _ALL,
    "accelerate.utils.set_seed": _ALL,
    "fastai.torch_core.set_seed": _ALL,
}
_SEEDS_BY_ITSELF: Final = frozenset(name for name in _SEEDS if name.endswith("Trainer"))
_OWN: Final = {
    "numpy.random.default_rng": ("seed",),
    "numpy.random.RandomState": ("seed",),
    "numpy.random.SeedSequence": ("entropy",),
    "numpy.random.PCG64": ("seed",),
    "numpy.random.MT19937": ("seed",),
    "numpy.random.Philox": ("seed",),
    "numpy.random.SFC64": ("seed",),
    "random.Random": ("x",),
}
_KEYS: Final = frozenset(("jax.random.PRNGKey", "jax.random.key", "flax.nnx.Rngs", "torch.Generator.manual_seed"))
_ALWAYS_FRESH: Final = {
    "torch.seed": "torch.manual_seed(0)",
    "torch.cuda.seed": "torch.cuda.manual_seed(0)",
    "torch.cuda.seed_all": "torch.cuda.manual_seed_all(0)",
    "tensorflow.random.Generator.from_non_deterministic_state": "tensorflow.random.Generator.from_seed(0)",
}
_CLOCKS: Final = re.compile(
    r"time\.(time|time_ns|perf_counter|perf_counter_ns|monotonic|monotonic_ns|process_time|clock)$"
    r"|datetime\.(now|utcnow|today)$|os\.(getpid|urandom|getrandom)$|uuid\.uuid[14]$|secrets\.\w+$|random\.SystemRandom"
    r"|id$|torch\.(seed|initial_seed)$"
)
_PYTHON_DRAWS: Final = re.compile(
    r"random\.(random|randint|randrange|choices?|shuffle|sample|uniform|gauss|normalvariate|betavariate|expovariate"
    r"|triangular|lognormvariate|vonmisesvariate|gammavariate|paretovariate|weibullvariate|getrandbits|randbytes)$"
)
_NOT_DRAWN: Final = frozenset(
    str.split(
        "seed get_state set_state default_rng RandomState Generator SeedSequence BitGenerator PCG64 PCG64DXSM "
        "MT19937 Philox SFC64 get_bit_generator set_bit_generator bit_generator mtrand"
    )
)
_TORCH_NOW: Final = re.compile(
    r"torch\.(rand|randn|randint|randperm|rand_like|randn_like|randint_like|normal|bernoulli|multinomial|poisson)$"
    r"|torch\.nn\.(Linear|Bilinear|LazyLinear|Embedding|EmbeddingBag|RNN|LSTM|GRU|RNNCell|LSTMCell|GRUCell|Transformer"
    r"|Multihead|(Lazy)?Conv)\w*$"
    r"|torch\.nn\.init\.(uniform|normal|trunc_normal|xavier|kaiming|orthogonal|sparse)\w*$"
    r"|torchvision\.models\.(?!.*(Weights|get_model_weights))[\w.]*$|timm\.create_model$|torch\.utils\.data\.random_split$"
    r"|transformers\.\w*For\w+\.(from_pretrained|from_config)$|torch_geometric\.nn\.\w+Conv$"
)
_TORCH_LATER: Final = re.compile(
    r"torch\.nn\.(Alpha|Feature)?Dropout\w*$|torch\.nn\.functional\.\w*dropout\w*$|torch\.distributions\."
    r"|torchvision\.transforms\.(Random|ColorJitter|AutoAugment|TrivialAugment|AugMix)\w*$"
    r"|torch\.utils\.data\.(RandomSampler|WeightedRandomSampler|SubsetRandomSampler)$"
)
_TENSOR_DRAWS: Final = frozenset(("normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_"))
_TF_DRAWS: Final = re.compile(
    r"tensorflow\.random\.(normal|uniform|truncated_normal|categorical|gamma|poisson|shuffle)$"
    r"|tensorflow\.image\.random_\w+$|tensorflow\.nn\.dropout$"
)
_KERAS_DRAWS: Final = re.compile(
    r"keras\.layers\.(Dense|EinsumDense|\w*Conv\w*|Embedding|LSTM|GRU|SimpleRNN|MultiHeadAttention|\w*Dropout\w*|Random\w+"
    r"|GaussianNoise)$|keras\.utils\.\w+_dataset_from_directory$|keras\.random\.(?!SeedGenerator)\w+$|keras\.applications\.\w+$"
)
_SKLEARN_DRAWS: Final = frozenset(
    str.split(
        "train_test_split ShuffleSplit StratifiedShuffleSplit GroupShuffleSplit RandomForestClassifier "
        "RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor GradientBoostingClassifier "
        "GradientBoostingRegressor AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor "
        "IsolationForest DecisionTreeClassifier DecisionTreeRegressor MLPClassifier MLPRegressor SGDClassifier "
        "SGDRegressor KMeans MiniBatchKMeans GaussianMixture BayesianGaussianMixture RandomizedSearchCV resample "
        "shuffle make_classification make_regression make_blobs make_moons make_circles TSNE TruncatedSVD "
        "GaussianRandomProjection SparseRandomProjection permutation_importance LinearSVC FastICA NMF "
        "RANSACRegressor RBFSampler Nystroem"
    )
)
_AGENTS: Final = frozenset(("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG"))
_SKLEARN_SHUFFLED: Final = frozenset(("KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold"))
_TOLD: Final = {
    "random": "Python's generator",
    "numpy": "NumPy's global generator",
    "torch": "torch's generator",
    "tensorflow": "TensorFlow's generator",
    "keras": "the generators of Keras",
}
SEED_LINES: Final = {
    "random": ("import random", "random.seed(0)"),
    "numpy": ("import numpy", "numpy.random.seed(0)"),
    "torch": ("import torch", "torch.manual_seed(0)"),
    "tensorflow": ("import tensorflow", "tensorflow.random.set_seed(0)"),
    "keras": ("import keras", "keras.utils.set_random_seed(0)"),
}
"""What seeds a generator of the whole process: an import and a line."""


class _Draw(NamedTuple):
    """A draw from a generator of the process. at_once: where it stands, not when what it makes is used."""

    family: str
    step: FlowStep
    at_once: bool


class _Seed(NamedTuple):
    family: str
    step: FlowStep


def generator_findings(flow: Flow) -> Iterator[AuditFinding]:
    """All that is open about generators."""
    draws = [draw for step in flow.steps for draw in _draws(flow, step)]
    seeds = [seed for step in flow.steps for seed in _seeds(step)]
    fresh = [step for step in flow.steps if _is_fresh(flow, step)]
    yield from (_fresh_seed(flow, step) for step in fresh)
    yield from _own_generators(flow)
    yield from _environments(flow)
    yield from _agents(flow)
    lines = {(step.source.shown, step.line) for step in fresh}
    found = [
        finding
        for family in _TOLD
        for finding in _of_family(
            flow,
            family,
            [draw for draw in draws if draw.family == family],
            [seed for seed in seeds if seed.family == family],
        )
        if (finding.file, finding.line) not in lines
    ]
    yield from _keras_once(flow, found)


def _keras_once(flow: Flow, found: list[AuditFinding]) -> Iterator[AuditFinding]:
    """One line seeds Keras and TensorFlow: where both lack it, the first draw of either stands for both."""
    both = [item for item in found if item.about in {"keras", "tensorflow"} and item.kind == "unseeded-generator"]
    order = {(step.source.shown, step.line): place for place, step in reversed(list(enumerate(flow.steps)))}
    first = min(both, key=lambda item: order.get((item.file, item.line), 0), default=None)
    yield from (item for item in found if item not in both or item is first)


def _of_family(flow: Flow, family: str, draws: list[_Draw], seeds: list[_Seed]) -> Iterator[AuditFinding]:
    if not draws:
        return
    first = draws[0].step
    if not seeds:
        if family == "keras" and _seeded_by_parts(flow):
            return
        sure = [draw.step for draw in draws if draw.step.is_sure]
        yield _unseeded(flow, family, sure[0] if sure else first, certain=bool(sure))
        return
    order = {id(step): place for place, step in enumerate(flow.steps)}
    begin = min(order[id(seed.step)] for seed in seeds)
    early = [draw.step for draw in draws if draw.at_once and not draw.step.later and order[id(draw.step)] < begin]
    seed = flow.steps[begin]
    if early and not seed.later:
        yield _late(family, early[0], seed)


def _draws(flow: Flow, step: FlowStep) -> Iterator[_Draw]:
    """What a call draws from. Calls that bring a generator or a seed of their own draw from no global one."""
    node = step.node
    if not isinstance(node, ast.Call) or step.elsewhere:
        return
    found = next(_drawn(flow, step, node), None)
    has_own = found is not None and keyword(node, "generator", "rng") is not None
    if found is not None and not has_own and not _is_pretrained(flow, step, node):
        yield found


def _drawn(flow: Flow, step: FlowStep, node: ast.Call) -> Iterator[_Draw]:
    """By the name of what is called, and the arguments that matter to it."""
    name, called = step.name, step.called
    if _PYTHON_DRAWS.match(name) and _is_module(step, "random"):
        yield _Draw("random", step, at_once=True)
    elif name.startswith("numpy.random.") and name.count(".") == 2 and called not in _NOT_DRAWN:
        yield _Draw("numpy", step, at_once=True)
    elif _TORCH_NOW.match(name) or (called in _TENSOR_DRAWS and flow.program.uses("torch")):
        yield _Draw("torch", step, at_once=True)
    elif _TORCH_LATER.match(name) or (name == "torch.utils.data.DataLoader" and _shuffles(flow, step)):
        yield _Draw("torch", step, at_once=False)
    elif _TF_DRAWS.match(name) and keyword(node, "seed") is None:
        yield _Draw("tensorflow", step, at_once=True)
    elif _KERAS_DRAWS.match(name) and keyword(node, "seed") is None:
        yield _Draw("keras", step, at_once=True)
    elif _is_unseeded_data(flow, step, node):
        yield _Draw("numpy" if flow.program.uses("datasets") else "tensorflow", step, at_once=False)
    elif _is_unseeded_estimator(flow, step):
        yield _Draw("numpy", step, at_once=called in {"train_test_split", "resample", "shuffle", "sample"})


def _is_unseeded_data(flow: Flow, step: FlowStep, call: ast.Call) -> bool:
    """Data sets that shuffle or split themselves: Hugging Face's with NumPy's generator, TensorFlow's with its own."""
    if keyword(call, "seed") is not None or not isinstance(call.func, ast.Attribute) or step.source.imported(call.func):
        return False
    if step.called not in {"shuffle", "train_test_split"} or "rng" in _receiver(step):
        return False
    if any(name in _OWN or _is_maker(name) for name, _ in flow.origins(call.func.value, step.frame)):
        return False  # a generator that shuffles something else
    if flow.program.uses("datasets"):
        return step.called == "train_test_split" or (step.called == "shuffle" and not call.args)
    return step.called == "shuffle" and bool(call.args) and flow.program.uses("tensorflow")


def _is_maker(name: str) -> bool:
    return name.rpartition(".")[2] in {"Generator", "Random", "RandomState", "default_rng"}


def _is_pretrained(flow: Flow, step: FlowStep, call: ast.Call) -> bool:
    """Whether a network comes with weights, so that none are drawn for it."""
    if step.name.startswith("keras.applications."):
        return flow.value(keyword(call, "weights"), step.frame) != (True, None)
    given = keyword(call, "weights", "pretrained")
    known = flow.value(given, step.frame) if given is not None else (True, None)
    return step.name.startswith(("torchvision.models.", "timm.")) and known not in ((True, None), (True, False))


def _is_module(step: FlowStep, name: str) -> bool:
    """Whether a name is an imported module's, so that a generator called `random` is not taken for one."""
    node = step.node
    return isinstance(node, ast.Call) and step.source.imported(node.func).startswith(f"{name}.")


def _shuffles(flow: Flow, step: FlowStep) -> bool:
    assert isinstance(step.node, ast.Call)
    asked = keyword(step.node, "shuffle")
    return asked is not None and flow.truth(asked, step.frame) is not False


def _is_unseeded_estimator(flow: Flow, step: FlowStep) -> bool:
    node = step.node
    if not (step.name.startswith("sklearn.") or step.called in {"rvs", "sample"}):
        return False
    assert isinstance(node, ast.Call)
    given = keyword(node, "random_state", "seed")
    if given is not None and flow.value(given, step.frame) != (True, None):
        return False
    if step.name.startswith("sklearn."):
        shuffled = keyword(node, "shuffle")
        if step.called == "train_test_split":
            return not (shuffled is not None and flow.truth(shuffled, step.frame) is False)
        if step.called in _SKLEARN_SHUFFLED:
            return shuffled is not None and flow.truth(shuffled, step.frame) is True
        return step.called in _SKLEARN_DRAWS
    if step.called == "rvs" and flow.program.uses("scipy"):
        return True
    is_frame = step.called == "sample" and (keyword(node, "frac") or keyword(node, "n")) is not None
    return is_frame and flow.program.uses("pandas")


def _seeds(step: FlowStep) -> Iterator[_Seed]:
    if step.elsewhere or not isinstance(step.node, ast.Call):
        return
    for family in _SEEDS.get(step.name, ()):
        yield _Seed(family, step)


def _seeded_by_parts(flow: Flow) -> bool:
    """Keras 3 draws the seeds of layers from Python's generator, and shuffles with NumPy's or the backend's."""
    called = {step.name for step in flow.steps}
    backends = {"tensorflow.random.set_seed", "torch.manual_seed"}
    return "random.seed" in called and not backends.isdisjoint(called)


def _seed_value(step: FlowStep) -> ast.expr | None:
    node = step.node
    assert isinstance(node, ast.Call)
    return node.args[0] if node.args else keyword(node, "seed", "a", "x", "entropy")


def _is_fresh(flow: Flow, step: FlowStep) -> bool:
    """Whether a generator is seeded with something that differs from run to run."""
    if not isinstance(step.node, ast.Call) or step.name in _SEEDS_BY_ITSELF:
        return False
    if step.name not in _SEEDS and step.name not in _OWN and step.name not in _KEYS and step.called != "manual_seed":
        return False
    value = _seed_value(step)
    if value is None:
        return False
    seeded = {"random": False, "numpy": False}
    for name, call in flow.origins(value, step.frame):
        if _CLOCKS.match(name) and not (step.elsewhere and name == "torch.initial_seed"):
            return True
        for family in seeded:
            if _drawn_from(name) == family and not _is_seeded_before(flow, family, call):
                return True
    return False


def _drawn_from(name: str) -> str:
    if _PYTHON_DRAWS.match(name):
        return "random"
    return "numpy" if name.startswith("numpy.random.") and name.rpartition(".")[2] not in _NOT_DRAWN else ""


def _is_seeded_before(flow: Flow, family: str, draw: ast.Call) -> bool:
    for step in flow.steps:
        if step.node is draw:
            return False
        if family in _SEEDS.get(step.name, ()):
            return True
    return False


def _fresh_seed(flow: Flow, step: FlowStep) -> AuditFinding:
    value = _seed_value(step)
    assert value is not None
    origin = next((name for name, _ in flow.origins(value, step.frame) if _CLOCKS.match(name) or _drawn_from(name)), "")
    return AuditFinding(
        "fresh-seed",
        step.source.shown,
        step.line,
        f"{step.name} is given what {origin} answers, which is another number in every run",
        "seed with a constant, or with an option that has one as its default",
        Sure.where(step.is_sure),
        edits=(*edited(step.source, value, "0"), *_before_draw(origin)),
    )


def _before_draw(origin: str) -> tuple[SourceEdit, ...]:
    """A seed that is drawn from another generator: that one has to be seeded as well."""
    return (SourceEdit("", 0, 0, _drawn_from(origin)),) if _drawn_from(origin) else ()


def _own_generators(flow: Flow) -> Iterator[AuditFinding]:
    for step in flow.steps:
        if not isinstance(step.node, ast.Call) or not (step.name in _OWN or step.name in _SEEDS):
            if step.name in _ALWAYS_FRESH:
                yield _without_seed(step, _ALWAYS_FRESH[step.name], step.certain)
            continue
        value = _seed_value(step)
        if step.name in _SEEDS_BY_ITSELF or step.name == "lightning.seed_everything":
            continue
        known, constant = flow.value(value, step.frame) if value is not None else (True, None)
        if known and constant is None and not step.node.keywords[1:]:
            yield _without_seed(step, "", step.certain)


def _without_seed(step: FlowStep, instead: str, certain: bool) -> AuditFinding:
    node = step.node
    assert isinstance(node, ast.Call)
    value = _seed_value(step)
    if instead:
        edits = edited(step.source, node, instead)
    elif value is not None:
        edits = edited(step.source, value, "0")
    else:
        edits = edited(step.source, node, f"{step.source.segment(node.func)}(0)")
    return AuditFinding(
        "unseeded-generator",
        step.source.shown,
        step.line,
        f"{step.name} has no seed here, and takes fresh entropy in every run",
        "give it a constant, or an option of the program",
        Sure.where(certain and not step.later),
        edits=edits,
    )


def _unseeded(flow: Flow, family: str, step: FlowStep, *, certain: bool) -> AuditFinding:
    skipped = [name for name in flow.program.options.declared if "seed" in name.lower()]
    option = next((name for name in skipped if flow.program.options.value(name) == (True, None)), "")
    is_left = f"; --{option} would seed it, and is not given" if option else ""
    half = family == "keras" and any(each.name == "tensorflow.random.set_seed" for each in flow.steps)
    why = f"{step.name or step.called} draws from {_TOLD[family]}, which the program does not seed{is_left}"
    if half:
        why = f"{step.name} draws its seed from Python's generator in Keras 3; only TensorFlow's is seeded"
    return AuditFinding(
        "unseeded-generator",
        step.source.shown,
        step.line,
        why,
        f"{SEED_LINES[family][1]} before the first draw" if not option else f"--{option} 0, or a default for it",
        Sure.where(certain and not half),
        about=family,
        edits=(SourceEdit("", 0, 0, family),),
    )


def _late(family: str, drawn: FlowStep, seed: FlowStep) -> AuditFinding:
    drawing = f"{drawn.name or drawn.called} at {drawn.source.shown}:{drawn.line}"
    return AuditFinding(
        "late-seed",
        seed.source.shown,
        seed.line,
        f"{drawing} has drawn from {_TOLD[family]} before it is seeded here",
        f"seed before {drawn.source.shown}:{drawn.line}",
        Sure.where(drawn.certain and seed.certain),
        about=family,
        edits=(SourceEdit("", 0, 0, family),),
    )


def _environments(flow: Flow) -> Iterator[AuditFinding]:
    """Environments of reinforcement learning draw from generators of their own."""
    if not any(step.name.startswith("gymnasium.") for step in flow.steps):
        return
    asked = [step for step in flow.steps if step.called in {"reset", "seed", "sample"}]
    calls = [step for step in asked if isinstance(step.node, ast.Call) and "env" in _receiver(step)]
    seeded = any(
        (step.called in {"reset", "seed"} and (keyword(step.node, "seed") or step.called == "seed"))  # type: ignore[arg-type]
        for step in calls
    )
    made = [step.node for step in flow.steps if isinstance(step.node, ast.Call) and step.called.startswith("make")]
    seeded = seeded or any(keyword(call, "seed") is not None for call in made)
    first = next((step for step in calls if step.called == "reset"), None)
    if first is not None and not seeded:
        yield _of_environment(first, "env.reset(seed=…) the first time")
    spaces = [step for step in calls if "action_space" in _receiver(step)]
    drawn = next((step for step in spaces if step.called == "sample"), None)
    if drawn is not None and not any(step.called == "seed" for step in spaces):
        yield _of_environment(drawn, "env.action_space.seed(…) before it is drawn from")


def _agents(flow: Flow) -> Iterator[AuditFinding]:
    """Agents of Stable-Baselines3 seed everything, if they are told to."""
    for step in flow.steps:
        is_agent = step.name.startswith("stable_baselines3.") and step.called in _AGENTS
        if is_agent and isinstance(step.node, ast.Call) and keyword(step.node, "seed") is None:
            why = "the agent, its environment and its actions draw from generators that nothing seeds"
            sure = Sure.where(step.is_sure)
            edits = with_keyword(step.source, step.node, "seed=0")
            place = (step.source.shown, step.line)
            yield AuditFinding("unseeded-generator", *place, why, "seed=0", sure, "environment", edits)


def _receiver(step: FlowStep) -> str:
    function = step.node.func if isinstance(step.node, ast.Call) else None
    return ast.unparse(function.value).lower() if isinstance(function, ast.Attribute) else ""


def _of_environment(step: FlowStep, fix: str) -> AuditFinding:
    why = "the environment draws from a generator of its own, which is never given a seed"
    sure = Sure.where(step.is_sure)
    return AuditFinding("unseeded-generator", step.source.shown, step.line, why, fix, sure, about="environment")
