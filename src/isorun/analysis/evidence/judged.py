"""The metric that runs are judged by, which direction is better, and what a metric's name tells of that.

A direction is declared, or guessed from the metric's name; where the name says nothing, what the training calls its
best value may. A verdict that rests on a guess says so, and without a direction there is none.

A wrong guess turns a verdict round, so that a word is in a table only when it tells the same direction wherever it is
used. Entropy, KL, coverage, distance, gain and rank are good in one place and bad in the next, and are in none. An
unknown direction only asks a question.

What a name says: which split it was measured on, what kind of number it is, which direction is better. The rules of
precedence, each stronger than those below it:

1. An arrow in the name is a declaration: `FID ↓`.
2. What stands after "@" or "at" only says where a metric was taken: `tpr@fpr=0.01` is a tpr.
3. What follows the last slash is judged by itself when it names a metric: `losses/explained_variance`.
4. Words that mean something else together are taken together, the longest first: `false_positive_rate`,
   `inception_score`, `negative_log_likelihood`. Whole words come before parts of words.
5. A word such as std, weight or time makes the name one of something else, whose direction is unknown: `acc_std`.
6. A loss word beats the name of a score before it (`accuracy_error`, `dice_loss`); the other way round
   (`error_detection_accuracy`) the two contradict each other.
7. Words that contradict each other tell nothing, and nor do words that are not in the tables. What is missed, lost or
   at a distance contradicts a score, and says nothing by itself: `hits_missed`, `success_distance`.
8. A negation turns the direction round where it can mean nothing else: `neg_mean_squared_error`, `1-acc`,
   `loss_reduction`. `neg_loss` may be the loss of negative examples, and is unknown.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.evidence import Condition

__all__ = [
    "ASSUMED",
    "DECLARED",
    "DIRECTION_CODES",
    "OF_A_CRITIC",
    "ORDER",
    "Direction",
    "JudgedMetric",
    "MetricKind",
    "Split",
    "critics_among",
    "direction_conditions",
    "direction_of",
    "direction_unknown",
    "first_choice",
    "how_to_declare",
    "is_bookkeeping",
    "is_class_series",
    "judged_column",
    "kind_of",
    "split_of",
]


def _named(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrased(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in text.split(","))


LOSSES: Final = _named(
    """loss losses error errors err errs logloss mlogloss merror cost costs misclassification misclassified mistakes
    mistake incorrect wrong inaccuracy"""
)
"""Nouns for what went wrong. They have the last word: `dice_loss` is a loss, `top5_error` an error."""

LOWER: Final = _named(
    """perplexity ppl mse rmse rmsle msle mae mape smape mase wmape wape mdape medae mdae mspe rmspe rmsse msse msis
    owa nrmse nmse rrse mphe sse rss ssr crps ncrps pinball wql nll negll nloglik negloglik brier ece mce wer cer eer
    hter mindcf actdcf fid fvd fad kid lpips niqe brisque piqe gmsd ergas mcd bpb bpc bpd bce xent xentropy xentlambda
    crossentropy kldiv kullback regret hausdorff hd95 assd chamfer levenshtein deviance residual residuals aic aicc bic
    looic fpr fnr fdr frr apcer bpcer mpjpe epe nme hinge logcosh davies toxicity hallucination hallucinations failure
    failures collision collisions violation violations forgetting distortion fallout"""
)
HIGHER: Final = _named(
    """f1 fbeta f05 f2 fscore fmeasure auc auroc auprc aupr aucpr prauc rocauc roc precision recall sensitivity
    specificity tpr tnr ppv npv mcc matthews kappa cohen wkappa jaccard iou miou giou dice kendall spearman spearmanr
    pearson pearsonr correlation corr corrcoef concordance cindex r2 rsquared ndcg dcg mrr hit hits bleu sacrebleu
    bleurt rouge rougel rougelsum rouge1 rouge2 chrf meteor sari comet bertscore mauve psnr ssim msssim vmaf snr sdr
    sisdr sisnr sisdri pesq stoi dnsmos reward rewards rew return returns elbo likelihood loglik loglikelihood llf
    determination
    similarity calinski homogeneity completeness informedness nmi mota hota idf1 amota pck oks success successes solved
    win wins winrate elo correct dprime uas las pfound ams mar purity fowlkes youden correctness helpfulness"""
)
ACCURACIES: Final = _named("acc accuracy accuracies accs top1 top5 top10")

LONE_LOWER: Final = _named("l1 l2 ter der mer ce poisson tweedie huber quantile expectile ade fde lsd emd rae rse")
"""Short or common words: they count only where nothing but splits, numbers and qualifiers stands beside them."""
LONE_HIGHER: Final = _named("map ap em pre score ari ami mos pq pass")
RANKED: Final = _named("pass")
"""Words that count only before "@": `pass@1` is a score, a pass is a round."""

PHRASES: Final = {
    "lower": _phrased(
        """false positive,false positives,false negative,false negatives,false alarm,false alarms,false discovery,
        false omission,false accept,false reject,false acceptance,false rejection,miss rate,missed detection,fall out,
        bits per byte,bits per character,bits per char,bits per dim,bits per dimension,bits per token,bits per word,
        cross entropy,kl div,kl divergence,kld divergence,js divergence,jensen shannon,leibler divergence,
        negative log likelihood,neg log likelihood,negative loglikelihood,neg loglikelihood,neg elbo,negative elbo,
        neg loglik,negative likelihood ratio,edit distance,edit rate,hamming distance,cosine distance,frechet distance,
        frechet inception distance,inception distance,kernel inception distance,hausdorff distance,
        wasserstein distance,chamfer distance,jaccard distance,dice distance,iou distance,correlation distance,
        earth mover,edit distances,info lost,perceptual similarity,
        image patch similarity,spectral angle mapper,structure and texture similarity,ranked probability,
        davies bouldin,mean rank,median rank,optimality gap,duality gap,generalization gap,generalisation gap,abs rel,
        sq rel,weighted quantile,log cosh,self bleu,num errors,number errors,n errors,error count,errors count,
        query soft max,pair logit,cross entropy lambda"""
    ),
    "higher": _phrased(
        """true positive,true positives,true negative,true negatives,inception score,explained variance,explained var,
        exact match,log likelihood,likelihood of prediction,positive likelihood ratio,negative predictive value,
        positive predictive value,evidence lower bound,average precision,mean reciprocal rank,reciprocal rank,
        mean rank index,discounted cumulative gain,normalized gini,mutual info,mutual information,v measure,f measure,
        f score,f beta,f 1,rand score,rand index,adjusted rand,r squared,r squ,r sq,adj rsquared,c index,hit rate,
        win rate,pass rate,solve rate,episode reward,ep rew,ep ret,ep return,episodic return,episode return,
        signal noise ratio,signal to noise ratio,signal distortion ratio,image quality index,information fidelity,
        success index,panoptic quality,speech quality,short time objective intelligibility,opinion score,
        quality no reference,quality with no reference,info preserved,dunn index,structural similarity,ms ssim,
        clip score,top 1,top 5,top 10,num correct,ents f,ents p,ents r,cats macro f,cats micro f,spans sc f,
        morph per feat f,sents f,sents p,sents r,average gain,intersection over union,log auc,silhouette score,
        distance intersection over union,brier skill,skill score,win loss,win loss ratio,
        silhouette coefficient,corr coef,io u,under the curve,under curve,operating characteristic curve,
        d2 absolute error,d2 pinball,d2 tweedie,d2 log loss,d2 brier"""
    ),
    "": _phrased(
        """policy loss,policy gradient loss,pg loss,actor loss,entropy loss,critic loss,g loss,d loss,loss g,loss d,
        gen loss,disc loss,generator loss,discriminator loss,adv loss,adversarial loss,gan loss,err g,err d,loss gen,
        loss disc,dis loss,loss gan,loss adv,alpha loss,ent coef loss,temperature loss,prev loss,previous loss,
        td error,td errors,standard error,standard errors,std err,std error,error bar,error bars,likelihood ratio,
        seasonal error,best score,max reward,return code,error code,win size,reward scale,hit count,success criterion,
        codebook perplexity,perplexity codebook,vq perplexity,
        noise contrastive,ll null,reward penalty,steps to,epochs to,episodes to,success steps"""
    ),
}
"""Words that mean something else together; the longest that fits is taken. "": they are known to tell nothing, as the
losses of two networks that train against each other, or of a policy, which fall and rise while it gets better."""

HARMLESS: Final = _phrased("scale invariant,multi scale,min max,short time")
"""Words of a kind that would spoil a name, but do not in this company."""

SPOILING: Final = _named(
    """std stdev stddev sd stderr var variance ci ci95 ci90 lower upper bound delta diff difference differences change
    changes slope grad grads gradient weight weights scale coef coeff lambda threshold thresholds thresh tolerance
    patience count num number time times seconds sec secs duration ms rank z no not non without since inverse inv
    reciprocal chosen rejected forget attack noise range spread smoothing fn func function type bar bars prior margin
    margins gap volatility membership mia tax mad skewness kurtosis null pvalue p confusion matmul clip buffer code
    curve unlearn variation df"""
)
"""Words after which a name is about something else: the spread of a loss, its weight, the time it took."""

AGAINST_SCORES: Final = _named("distance distances dist missed misses miss missing lost")
"""Words after which a score may as well be what is lacking of it; beside words of loss they change nothing."""

NEGATING: Final = _named("neg negative negated minus")
REDUCING: Final = _named("reduction reductions decrease drop degradation decline")
IMPROVING: Final = _named("improvement improvements improve")

NEUTRAL: Final = _named(
    """average avg mean median total overall final best last latest current running macro micro weighted balanced
    binary multiclass multilabel multi categorical sparse epoch epochs step steps batch iter ema top set dataset data
    per class classes small medium large s b m k none custom cv fold oof oob raw smoothed normalized rate metric
    metrics score scores value dev cats sum all max min result results primary secondary model at of the in on for by
    and log main global local retrieval iteration round worst group rollout charts ep episode bbox segm coco box mask
    pose keypoints"""
)

NOT_ITS_RESULT: Final = _named("initial init initially untrained before baseline")
"""Words of what was measured before the training, or what it is held against: `Initial loss: 2.77`, `Baseline MAE`."""

CLOCKS: Final = _named("latency runtime walltime elapsed")
SPEEDS: Final = _named("throughput fps sps ips qps tps wps")
BOOKKEEPING: Final = (
    _named(
        """epoch epochs step steps iter iters iteration iterations round rounds lr learning wd momentum time times
        seconds sec secs duration eta runtime memory mem grad grads norm batch num number count samples sample
        timesteps timestep updates flos flops params size length len seed version ms bytes"""
    )
    | CLOCKS
    | SPEEDS
)

MEASURED: Final = (
    _named("""time times timestamp second seconds sec secs minutes hours duration eta ms memory mem ram vram speed""")
    | CLOCKS
    | SPEEDS
)
"""Words of what is measured of the machine: it differs between runs that computed the very same."""

JOINED: Final = _named(
    """loss losses logloss error err acc accuracy auc auroc rmse mse mae mape nll ppl perplexity precision recall
    reward f1 iou dice ece brier crossentropy"""
)
"""Metric words that are also looked for inside a word: `valloss`, `testacc`."""
ENDINGS: Final = ("loss", "error", "accuracy", "crossentropy", "perplexity")
"""Words that are recognised at the end of an unknown one of some length: `focalloss`, `toperror`."""


class Split(enum.IntEnum):
    """The part of the data a metric was measured on, the one to judge by first."""

    TEST = 0
    EVALUATION = 1
    VALIDATION = 2
    UNNAMED = 3
    TRAINING = 4


class MetricKind(enum.IntEnum):
    """What kind of number a metric is, the one to judge by first. LOSS: all of which less is better."""

    ACCURACY = 0
    SCORE = 1
    LOSS = 2
    OTHER = 3


@dataclass(frozen=True, slots=True)
class Direction:
    """better: "higher", "lower", or "" where the name does not tell. word: the word of the name that told it."""

    better: str = ""
    word: str = ""
    kind: MetricKind = MetricKind.OTHER

    @property
    def known(self) -> bool:
        """Whether the name tells a direction."""
        return bool(self.better)


UNKNOWN: Final = Direction()


class _Strength(enum.IntEnum):
    """How much a word counts: weak ones only where no other speaks, nouns of loss against words before them."""

    WEAK = 0
    WORD = 1
    NOUN = 2


@dataclass(frozen=True, slots=True)
class _Term:
    """A known word or phrase in a name, and the place it ends at. lone: it counts only among neutral words."""

    word: str
    better: str
    strength: _Strength
    place: int
    lone: bool = False


_SPLITS: Final = {
    "test": Split.TEST,
    "testing": Split.TEST,
    "eval": Split.EVALUATION,
    "evaluation": Split.EVALUATION,
    "val": Split.VALIDATION,
    "valid": Split.VALIDATION,
    "validation": Split.VALIDATION,
    "validate": Split.VALIDATION,
    "vali": Split.VALIDATION,
    "dev": Split.VALIDATION,
    "heldout": Split.VALIDATION,
    "holdout": Split.VALIDATION,
    "v": Split.VALIDATION,
    "train": Split.TRAINING,
    "training": Split.TRAINING,
    "trn": Split.TRAINING,
    "learn": Split.TRAINING,
}
_LOWER: Final = LOSSES | LOWER | LONE_LOWER | CLOCKS
_HIGHER: Final = ACCURACIES | HIGHER | LONE_HIGHER | SPEEDS
_CHANGING: Final = SPOILING | NEGATING | REDUCING | IMPROVING
_PARTS: Final = NEUTRAL | _SPLITS.keys()
_KNOWN: Final = _LOWER | _HIGHER | _CHANGING | _PARTS
_PHRASES: Final = {words: better for better, phrases in PHRASES.items() for words in phrases}
_LONGEST_PHRASE: Final = max(map(len, _PHRASES))
_OTHER_WAY: Final = {"higher": "lower", "lower": "higher"}

_ARROWS: Final = {"↑": "higher", "⬆": "higher", "↓": "lower", "⬇": "lower"}
_CLASS_OR_SETTINGS: Final = re.compile(r"\[[^\[\]]*\]$|:\w+=.*$")
_PLACE: Final = re.compile(r"@|(?<=[a-z0-9])At(?=[A-Z])|(?<![^\W_])(?i:at)(?![^\W_])")
_ONE_MINUS: Final = re.compile(
    r"^\W*1(?:\.0)?\s*-\s*(?=[A-Za-z])|(?:^|[\W_])(?:1|one)[\s_-]*minus[\s_-]*", re.IGNORECASE
)
_CAMEL: Final = re.compile(r"[^\W\d_a-z]+(?![a-z])\d*|[^\W\d_]?[a-z]+\d*|\d+|[^\W_]+")
_SHORTEST_STEM: Final = 3
_LONGEST_JOINED: Final = 40
_REMEMBERED: Final = 4096
_EXPECTED_RECIPROCAL_RANK: Final = "ERR"
"""CatBoost's name of a score; a training that prints its error would hardly write it in capitals alone."""


@functools.lru_cache(maxsize=_REMEMBERED)
def direction_of(name: str) -> Direction:
    """Which direction is better, as far as the name tells."""
    if arrows := [sign for sign in name if sign in _ARROWS]:
        return _pointed(name, arrows)
    bare = _CLASS_OR_SETTINGS.sub("", name)
    if bare == _EXPECTED_RECIPROCAL_RANK:
        return UNKNOWN
    group, _, last = bare.rpartition("/")
    while "/" in group and _is_part(last):
        bare, (group, _, last) = group, group.rpartition("/")
    if not group or _names_a_part(group, last):
        return _told_without_group(bare)
    return _told_without_group(last)


@functools.lru_cache(maxsize=_REMEMBERED)
def split_of(name: str) -> Split:
    """The split that a part of the name stands for."""
    words = _words(name)
    named = (word for word, after in zip(words, [*words[1:], ""], strict=False) if (word, after) != ("v", "measure"))
    return next((_SPLITS[word] for word in named if word in _SPLITS), Split.UNNAMED)


def kind_of(name: str) -> MetricKind:
    """The kind of number: a LOSS is better when lower, an ACCURACY or SCORE when higher, OTHER is not judged by."""
    return direction_of(name).kind


def is_bookkeeping(name: str) -> bool:
    """Whether the name is that of a counter, a clock or a setting rather than of a result."""
    return kind_of(name) is MetricKind.OTHER and any(word in BOOKKEEPING for word in _words(name))


def is_of_the_machine(name: str) -> bool:
    """Whether the name is that of a time, a speed or a use of memory: no part of what a training computes."""
    return kind_of(name) is MetricKind.OTHER and any(word in MEASURED for word in _words(name))


def _is_part(text: str) -> bool:
    """Whether the text only says which part was measured: a split, an average, a number."""
    return all(word in _PARTS or word.isdigit() for word in _words(text))


def _names_a_part(group: str, last: str) -> bool:
    """Whether what follows the last slash is only a part of what its group names: `Loss/train`, `wer/clean`.

    It is not where it names a metric itself (`losses/explained_variance`), and under losses and rewards anything may
    stand (`losses/entropy`, `rewards/margins`).
    """
    if _is_part(last):
        return True
    words = _words(last)
    holds_anything = any(word in ("loss", "losses", "reward", "rewards") for word in _words(group))
    return not holds_anything and all(term.strength is _Strength.WEAK for term in _terms(words)[0])


def _told_without_group(name: str) -> Direction:
    told = _told_by(_measured_words(_ONE_MINUS.sub(" ", name)), at_rank="@" in name)
    return _one_minus(told) if _ONE_MINUS.search(name) else told


def _pointed(name: str, arrows: Sequence[str]) -> Direction:
    """The direction that the arrows in a name show, and the kind its words say where they agree."""
    better = _ARROWS[arrows[0]]
    if any(_ARROWS[arrow] != better for arrow in arrows):
        return UNKNOWN
    plain = direction_of("".join(sign for sign in name if sign not in _ARROWS))
    return Direction(better, arrows[0], plain.kind if plain.better == better else _kind(better, arrows[0]))


def _kind(better: str, word: str) -> MetricKind:
    if word in CLOCKS or word in SPEEDS or not better:
        return MetricKind.OTHER
    if better == "lower":
        return MetricKind.LOSS
    return MetricKind.ACCURACY if word in ACCURACIES or word.startswith("top ") else MetricKind.SCORE


def _told_by(words: Sequence[str], *, at_rank: bool) -> Direction:
    """at_rank: the name goes on with "@", after which short words can mean nothing else: `cosine_map@5`."""
    terms, rest = _terms(words)
    if any(word in SPOILING for word in rest) or not all(term.better for term in terms):
        return UNKNOWN
    if "best" in words and any(word in ("epoch", "step", "iteration", "round") for word in words):
        return UNKNOWN
    if improving := [word for word in rest if word in IMPROVING]:
        return Direction("higher", improving[0], MetricKind.SCORE)
    alone = _is_alone(rest)
    counted = (term for term in terms if at_rank or not term.lone or (alone and term.word not in RANKED))
    decisive = _decisive(list(counted))
    if decisive is None or (decisive.better == "higher" and any(word in AGAINST_SCORES for word in rest)):
        return UNKNOWN
    told = Direction(decisive.better, decisive.word, _kind(decisive.better, decisive.word))
    return _turned(told, words, [word for word in rest if word in NEGATING or word in REDUCING])


def _is_alone(rest: Sequence[str]) -> bool:
    return all(word in _PARTS or word.isdigit() for word in rest)


def _decisive(terms: Sequence[_Term]) -> _Term | None:
    """The term that tells the direction: the strongest ones where they agree, None where they contradict."""
    strong = [term for term in terms if term.strength is not _Strength.WEAK] or list(terms)
    nouns = [term for term in strong if term.strength is _Strength.NOUN]
    scores = [term for term in strong if term.better == "higher"]
    if nouns and scores:
        return nouns[-1] if all(_yields(score, nouns[-1]) for score in scores) else None
    agree = len({term.better for term in strong}) == 1
    return (nouns or strong)[-1] if agree else None


def _yields(score: _Term, noun: _Term) -> bool:
    """Whether the noun beats the score: `dice_loss` and `loss_dice`, but not `error_recall` or `loss_accuracy`."""
    is_kind_of_loss = noun.word.startswith("loss") and score.word not in ACCURACIES
    return score.place < noun.place or is_kind_of_loss


def _turned(told: Direction, words: Sequence[str], turning: Sequence[str]) -> Direction:
    """What is told once a word turns it round: of a reduction always, of a negation where it can mean nothing else."""
    if not turning:
        return told
    if len(turning) > 1:
        return UNKNOWN
    word = f"{turning[0]} … {told.word}"
    if turning[0] in REDUCING:
        better = _OTHER_WAY[told.better]
        return Direction(better, word, _kind(better, word))
    # "neg_loss" may be the loss of negative examples, and "neg_acc" how many of them are told.
    next_word = words[words.index(turning[0]) + 1 :][:1]
    is_plain = next_word == [told.word] and told.word in LOSSES
    return UNKNOWN if told.better == "higher" or is_plain else Direction("higher", word, MetricKind.SCORE)


def _one_minus(told: Direction) -> Direction:
    """One minus a score is an error; one minus a loss is more likely the loss of something numbered 1."""
    return Direction("lower", f"1 - {told.word}", MetricKind.LOSS) if told.better == "higher" else UNKNOWN


def _terms(words: Sequence[str]) -> tuple[list[_Term], list[str]]:
    """The known words and phrases in the name, and the words that are part of none."""
    terms: list[_Term] = []
    rest: list[str] = []
    place = 0
    while place < len(words):
        phrase = _phrase_at(words, place)
        if phrase in HARMLESS:
            place += len(phrase)
            continue
        term = _phrase_term(phrase, place) if phrase else _word_term(words[place], place)
        if term is None:
            rest.append(words[place])
        else:
            terms.append(term)
        place += len(phrase) or 1
    return terms, rest


def _phrase_at(words: Sequence[str], place: int) -> tuple[str, ...]:
    for length in range(min(_LONGEST_PHRASE, len(words) - place), 1, -1):
        phrase = tuple(words[place : place + length])
        if phrase in _PHRASES or phrase in HARMLESS:
            return phrase
    return ()


def _phrase_term(phrase: tuple[str, ...], place: int) -> _Term:
    strength = _Strength.WEAK if phrase[0] == "top" else _Strength.WORD
    return _Term(" ".join(phrase), _PHRASES[phrase], strength, place)


def _word_term(word: str, place: int) -> _Term | None:
    if word not in _LOWER and word not in _HIGHER:
        return None
    is_weak = word == "score" or word.startswith("top")
    strength = _Strength.NOUN if word in LOSSES else (_Strength.WEAK if is_weak else _Strength.WORD)
    lone = word in LONE_LOWER or word in LONE_HIGHER
    return _Term(word, "lower" if word in _LOWER else "higher", strength, place, lone)


def _measured_words(name: str) -> list[str]:
    """The words of the name, without those that only say where it was taken (`precision@5`, `fpr_at_95_tpr`).

    Those that make it something else stay (`acc@1_std`).
    """
    before, *after = (_words(part) for part in _PLACE.split(name, maxsplit=1))
    if all(word in _PARTS for word in before):
        return _words(name)
    return before + [word for words in after for word in words if word in SPOILING]


def _words(name: str) -> list[str]:
    """The words of a name in lower case: split at signs and at capitals, and within words that run together."""
    text = name.replace("IoU", "Iou").replace("²", "2")
    return [word for chunk in re.split(r"[\W_]+", text) if chunk for word in _words_in(chunk)]


def _words_in(chunk: str) -> Iterator[str]:
    whole = _known_form(chunk.lower())
    if whole:
        yield whole
        return
    for piece in _CAMEL.findall(chunk):
        known = _known_form(piece.lower())
        yield from [known] if known else _joined_words(piece.lower())


def _known_form(word: str) -> str:
    """The word as the tables have it, with or without its number (`f1`, but `err1` as `err`); "" when it is new."""
    if word in _KNOWN:
        return word
    plain = word.rstrip("0123456789")
    return plain if plain in _KNOWN and len(plain) > 1 else ""


def _joined_words(word: str) -> list[str]:
    """The known words that a word is made of without a gap (`valloss`); else the one it ends with, or itself."""
    found = _cover(word) if len(word) <= _LONGEST_JOINED else ()
    if any(part in JOINED for part in found):
        return list(found)
    ending = next((end for end in ENDINGS if word.endswith(end)), "")
    return [ending] if ending and len(word) - len(ending) >= _SHORTEST_STEM else [word]


@functools.lru_cache(maxsize=_REMEMBERED)
def _cover(word: str) -> tuple[str, ...]:
    """The words that make up the whole word, the longest first; empty when some of it is left over."""
    for length in range(len(word), 1, -1):
        start, rest = word[:length], word[length:]
        if start in JOINED or (start in _PARTS and length >= _SHORTEST_STEM):
            following = _cover(rest)
            if following or not rest:
                return (start, *following)
    return ()


DECLARED: Final = "declared"
OF_A_CRITIC: Final = "of a critic"
_POLICY: Final = re.compile(
    r"(?:policy|pg|actor)(?:_gradient)?[_ ]?loss|(?<![a-z\d])(?:q_?values?|td_?loss)(?![a-z])", re.IGNORECASE
)
_EXPLAINED: Final = re.compile(r"explained[_ ]?var", re.IGNORECASE)
DIRECTION_CODES: Final = ("direction-guessed", "direction-unknown")
ASSUMED: Final = Condition(
    "direction-guessed",
    "that higher is better is assumed: a list of numbers has no name that could tell",
    'say it: direction="higher" or direction="lower"',
)


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """A metric the runs are compared by.

    direction: "higher" or "lower" is better; "" when it is not declared and the name does not tell.
    direction_from: how the direction became known ("declared", "guessed from 'err'", "seen from what the training
    calls best"), "" when it is not.
    scale: "fraction" for accuracies in [0, 1], "percent" for accuracies in [0, 100], "" for any other number.
    chance_from: how chance became known ("declared", "10 classes"), "" when it is not.
    chosen_because: why this metric was taken, "" when the study declares it.
    """

    name: str
    direction: str
    scale: str
    chance: float | None = None
    chance_from: str = ""
    chosen_because: str = ""
    direction_from: str = DECLARED

    @property
    def declared(self) -> bool:
        """Whether the study names this metric."""
        return not self.chosen_because

    @property
    def perfect(self) -> float | None:
        """The best possible value, where the scale tells it."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.scale) if self.direction == "higher" else None


def judged_column(name: str, direction: str = "") -> JudgedMetric:
    """A metric with its direction as declared, which always wins, else as far as the name tells."""
    if direction:
        return JudgedMetric(name, direction, "")
    told = direction_of(name)
    source = f"guessed from {told.word!r}" if told.known else ""
    return JudgedMetric(name, told.better, "", direction_from=source)


def direction_conditions(metric: JudgedMetric) -> tuple[Condition, ...]:
    """What a reader has to know about the metric's direction; nothing where it was declared."""
    if metric.direction_from == OF_A_CRITIC:
        message = f"{metric.name} tells how the critic of a policy does and not the policy, so no claim is made by it"
        next_step = f"log what an episode brings (its return), or say it: {how_to_declare(metric)}"
        return (Condition("direction-unknown", message, next_step, voids=True),)
    if not metric.direction:
        message = f"the name {metric.name!r} does not tell which direction is better, so no claim is made by it"
        return (Condition("direction-unknown", message, f"say it: {how_to_declare(metric)}", voids=True),)
    if metric.direction_from == DECLARED:
        return ()
    by_name = " in its name" if direction_of(metric.name).known else ""
    message = f"that {metric.direction} {metric.name} is better is {metric.direction_from}{by_name}, not declared"
    return (Condition("direction-guessed", message, f"confirm or correct it: {how_to_declare(metric)}"),)


def direction_unknown(name: str) -> str:
    """What stands in a sentence in place of what needs a direction."""
    return f"direction unknown: give --metric {name}:lower or higher"


def how_to_declare(metric: JudgedMetric) -> str:
    """The two ways to declare the metric, with the direction as far as it is known."""
    better = metric.direction or "lower"
    other = "" if metric.direction else " (or higher)"
    return f'--metric {metric.name}:{better}{other}, or [metrics."{metric.name}"] direction = "{better}" in the study'


ORDER: Final = (
    "accuracies before other scores before losses, and scores of test, eval or val before those of no named split; "
    "of each, test before eval before val before unnamed, and the largest or smallest of several after their mean; "
    "training values last, after them values of before the training or of a baseline (initial, untrained, dummy), and "
    "then names that do not tell which direction is better"
)


def first_choice(names: Iterable[str]) -> str | None:
    """Which of the metrics a study is judged by that declares none: the first in ORDER, classes' own left aside."""
    candidates = [name for name in names if not is_bookkeeping(name) and not is_class_series(name)]
    critics = critics_among(candidates)
    return min(candidates, key=lambda name: (name in critics, _rank(name)) if critics else _rank(name), default=None)


def critics_among(names: Iterable[str]) -> frozenset[str]:
    """What is told of a policy's critic: it says nothing of the policy, whose returns are what a training is for.

    Losses and explained variances beside the loss of a policy, or beside the values of actions that stand for one, as a
    DQN's do; nothing where no policy is trained.
    """
    known = tuple(names)
    if not any(_POLICY.search(name) for name in known):
        return frozenset()
    return frozenset(name for name in known if kind_of(name) is MetricKind.LOSS or _EXPLAINED.search(name))


def is_class_series(name: str) -> bool:
    """Whether it is the metric of one class: "accuracy[cat]"."""
    return name.endswith("]") and "[" in name


_EXTREMES: Final = _named("max min maximum minimum highest lowest")
_OVER_A_RANGE: Final = re.compile(r"(?:@|map)0?\.?50?[-:]0?\.?95", re.IGNORECASE)
"""mAP50-95, AP@0.50:0.95: the mean over all thresholds, which detectors are ranked by, and not that at one of them."""
_AVERAGE_RECALL: Final = re.compile(r"(?:^|_)AR@")
_WHOLE: Final = re.compile(r"(?:^|[_/])total(?=[_/ ]loss)", re.IGNORECASE)


def _rank(name: str) -> tuple[bool | int | str, ...]:
    split, kind, words = split_of(name), kind_of(name), set(_words(name))
    is_no_result = any(word in NOT_ITS_RESULT or word.startswith("dummy") for word in words)
    is_score = kind in (MetricKind.ACCURACY, MetricKind.SCORE)
    return (
        kind is MetricKind.OTHER,
        is_no_result,
        split is Split.TRAINING,
        not is_score,
        not words.isdisjoint(_EXTREMES),
        is_score and split is Split.UNNAMED,
        kind,
        split,
        _AVERAGE_RECALL.search(name) is not None,
        _OVER_A_RANGE.search(name) is None,
        len(_WHOLE.sub("", name)),
        name,
    )
