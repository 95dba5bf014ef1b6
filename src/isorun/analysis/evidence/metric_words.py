"""The words that metrics are named with, and which direction each of them tells.

A wrong guess turns a verdict round, so that a word is in a table only when it tells the same direction wherever it is
used. Entropy, KL, coverage, distance, gain and rank are good in one place and bad in the next, and are in none.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACCURACIES",
    "BOOKKEEPING",
    "CLOCKS",
    "ENDINGS",
    "HARMLESS",
    "HIGHER",
    "IMPROVING",
    "JOINED",
    "LONE_HIGHER",
    "LONE_LOWER",
    "LOSSES",
    "LOWER",
    "NEGATING",
    "NEUTRAL",
    "PHRASES",
    "RANKED",
    "REDUCING",
    "SPEEDS",
    "SPOILING",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in text.split(","))


LOSSES: Final = _words(
    """loss losses error errors err errs logloss mlogloss merror cost costs misclassification misclassified mistakes
    mistake incorrect wrong inaccuracy"""
)
"""Nouns for what went wrong. They have the last word: `dice_loss` is a loss, `top5_error` an error."""

LOWER: Final = _words(
    """perplexity ppl mse rmse rmsle msle mae mape smape mase wmape wape mdape medae mdae mspe rmspe rmsse msse msis
    owa nrmse nmse rrse mphe sse rss ssr crps ncrps pinball wql nll negll nloglik negloglik brier ece mce wer cer eer
    hter mindcf actdcf fid fvd fad kid lpips niqe brisque piqe gmsd ergas mcd bpb bpc bpd bce xent xentropy xentlambda
    crossentropy kldiv kullback regret hausdorff hd95 assd chamfer levenshtein deviance residual residuals aic aicc bic
    looic fpr fnr fdr frr apcer bpcer mpjpe epe nme hinge logcosh davies toxicity hallucination hallucinations failure
    failures collision collisions violation violations forgetting distortion fallout"""
)
HIGHER: Final = _words(
    """f1 fbeta f05 f2 fscore fmeasure auc auroc auprc aupr aucpr prauc rocauc roc precision recall sensitivity
    specificity tpr tnr ppv npv mcc matthews kappa cohen wkappa jaccard iou miou giou dice kendall spearman spearmanr
    pearson pearsonr correlation corr corrcoef concordance cindex r2 rsquared ndcg dcg mrr hit hits bleu sacrebleu
    bleurt rouge rougel rougelsum rouge1 rouge2 chrf meteor sari comet bertscore mauve psnr ssim msssim vmaf snr sdr
    sisdr sisnr sisdri pesq stoi dnsmos reward rewards rew return returns elbo likelihood loglik loglikelihood llf
    similarity calinski homogeneity completeness informedness nmi mota hota idf1 amota pck oks success successes solved
    win wins winrate elo correct dprime uas las pfound ams mar purity fowlkes youden correctness helpfulness"""
)
ACCURACIES: Final = _words("acc accuracy accuracies accs top1 top5 top10")

LONE_LOWER: Final = _words("l1 l2 ter der mer ce poisson tweedie huber quantile expectile ade fde lsd emd rae rse")
"""Short or common words: they count only where nothing but splits, numbers and qualifiers stands beside them."""
LONE_HIGHER: Final = _words("map ap em pre score ari ami mos pq pass")
RANKED: Final = _words("pass")
"""Words that count only before "@": `pass@1` is a score, a pass is a round."""

PHRASES: Final = {
    "lower": _phrases(
        """false positive,false positives,false negative,false negatives,false alarm,false alarms,false discovery,
        false omission,false accept,false reject,false acceptance,false rejection,miss rate,missed detection,fall out,
        bits per byte,bits per character,bits per char,bits per dim,bits per dimension,bits per token,bits per word,
        cross entropy,kl div,kl divergence,kld divergence,js divergence,jensen shannon,leibler divergence,
        negative log likelihood,neg log likelihood,negative loglikelihood,neg loglikelihood,neg elbo,negative elbo,
        neg loglik,negative likelihood ratio,edit distance,edit rate,hamming distance,cosine distance,frechet distance,
        frechet inception distance,inception distance,kernel inception distance,hausdorff distance,
        wasserstein distance,chamfer distance,earth mover,edit distances,info lost,perceptual similarity,
        image patch similarity,spectral angle mapper,structure and texture similarity,ranked probability,
        davies bouldin,mean rank,median rank,optimality gap,duality gap,generalization gap,generalisation gap,abs rel,
        sq rel,weighted quantile,log cosh,self bleu,num errors,number errors,n errors,error count,errors count,
        query soft max,pair logit,cross entropy lambda"""
    ),
    "higher": _phrases(
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
        corr coef,io u,under the curve,under curve,operating characteristic curve,d2 absolute error,d2 pinball,
        d2 tweedie,d2 log loss,d2 brier"""
    ),
    "": _phrases(
        """policy loss,policy gradient loss,pg loss,actor loss,entropy loss,critic loss,g loss,d loss,loss g,loss d,
        gen loss,disc loss,generator loss,discriminator loss,adv loss,adversarial loss,gan loss,err g,err d,loss gen,
        loss disc,dis loss,loss gan,loss adv,alpha loss,ent coef loss,temperature loss,prev loss,previous loss,
        td error,td errors,standard error,standard errors,std err,std error,error bar,error bars,likelihood ratio,
        seasonal error,best score,max reward,return code,error code,win size,reward scale,hit count,success criterion,
        noise contrastive,ll null"""
    ),
}
"""Words that mean something else together; the longest that fits is taken. "": they are known to tell nothing, as the
losses of two networks that train against each other, or of a policy, which fall and rise while it gets better."""

HARMLESS: Final = _phrases("scale invariant,multi scale,min max,short time")
"""Words of a kind that would spoil a name, but do not in this company."""

SPOILING: Final = _words(
    """std stdev stddev sd stderr var variance ci ci95 ci90 lower upper bound delta diff difference differences change
    changes slope grad grads gradient weight weights scale coef coeff lambda threshold thresholds thresh tolerance
    patience count num number time times seconds sec secs duration ms rank z no not non without since inverse inv
    reciprocal chosen rejected forget attack noise range spread smoothing fn func function type bar bars prior margin
    margins gap volatility membership mia tax mad skewness kurtosis null pvalue p confusion matmul clip buffer code
    curve unlearn variation df"""
)
"""Words after which a name is about something else: the spread of a loss, its weight, the time it took."""

NEGATING: Final = _words("neg negative negated minus")
REDUCING: Final = _words("reduction reductions decrease drop degradation decline")
IMPROVING: Final = _words("improvement improvements improve")

NEUTRAL: Final = _words(
    """average avg mean median total overall final best last latest current running macro micro weighted balanced
    binary multiclass multilabel multi categorical sparse epoch epochs step steps batch iter ema top set dataset data
    per class classes small medium large s b m k none custom cv fold oof oob raw smoothed normalized rate metric
    metrics score scores value dev cats sum all max min result results primary secondary model at of the in on for by
    and log main global local retrieval iteration round worst group rollout charts ep episode bbox segm coco"""
)

CLOCKS: Final = _words("latency runtime walltime elapsed")
SPEEDS: Final = _words("throughput fps")
BOOKKEEPING: Final = (
    _words(
        """epoch epochs step steps iter iters iteration iterations round rounds lr learning wd momentum time times
        seconds sec secs duration eta runtime memory mem grad grads norm batch num number count samples sample
        timesteps timestep updates flos flops params size length len seed version ms bytes"""
    )
    | CLOCKS
    | SPEEDS
)

JOINED: Final = _words(
    """loss losses logloss error err acc accuracy auc auroc rmse mse mae mape nll ppl perplexity precision recall
    reward f1 iou dice ece brier crossentropy"""
)
"""Metric words that are also looked for inside a word: `valloss`, `testacc`."""
ENDINGS: Final = ("loss", "error", "accuracy", "crossentropy", "perplexity")
"""Words that are recognised at the end of an unknown one of some length: `focalloss`, `toperror`."""
