"""What a name says: its direction with the word that told it, its kind, its split; unknown rather than wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.evidence import judged as metric_words
from isorun.analysis.evidence.judged import MetricKind, Split, direction_of, is_bookkeeping, kind_of, split_of

LOWER = """
    loss val_loss train/loss Loss/train epoch_loss loss_giou loss_ce box_loss dice_loss f1_loss reward_loss valloss
    trainloss focalloss avgLoss lossTotal loss_rate total_loss train_loss_epoch val_loss_step accuracy_loss err
    test_err1 top1err top1_err top-1-err test_err5 error error_rate val/top5_error toperror accuracy_error
    word_error_rate MeanSquaredError mean_absolute_error num_errors eval-merror merror binary_error train-error@0.7
    logloss mlogloss binary_logloss eval-mlogloss log_loss cross_entropy crossentropy sparse_categorical_crossentropy
    bce ce val_ce xent nll test_nll negative_log_likelihood neg_log_likelihood poisson-nloglik neg_elbo perplexity ppl
    valid_ppl bpb bpc bpd bits_per_byte bits_per_dim val/bits-per-character mse rmse RMSE val_rmse rmsle msle mae MAE
    mape smape sMAPE mase wmape crps pinball mean_pinball_loss quantile l1 l2 valid_0's_l2 training_l1 huber brier
    brier_score ece val/ece ECE15 calibration_error losses/value_loss Loss/test loss/val/epoch error/top1 self_bleu
    hd95 wer cer ter wer/clean test-cer mer fid FID fid_score fid50k kid lpips lpips_vgg niqe eer minDCF mindcf
    hausdorff hausdorff_distance hd95_hausdorff chamfer edit_distance hamming_loss HammingDistance kl_divergence fpr
    fnr fpr95 fpr_at_95_tpr false_positive_rate FalsePositives false_negatives fall_out miss_rate false_alarm_rate
    regret cumulative_regret deviance mean_tweedie_deviance aic bic residual cost total_cost regret@10 mean_rank 1-acc
    1-accuracy 1-val_acc one_minus_auc 1_minus_ssim accuracy_drop inaccuracy misclassification_rate forgetting FID↓
    latency p95_latency inference_latency eval_runtime davies_bouldin_score word_info_lost toxicity failure_rate
    jaccard_distance dice_distance correlation_distance levenshtein_distance missed_detection_rate
"""
HIGHER = """
    acc acc1 Acc@1 acc@5 val_acc testacc test_acc top1acc top-1-acc top1 top5 top_5 eval/top1 accuracy valAcc
    balanced_accuracy mean_token_accuracy rewards/accuracies acc_norm,none sparse_top_k_categorical_accuracy f1
    f1_macro F1Score macro-f1 fbeta f_score F-measure MulticlassF1Score auc AUC auroc roc_auc roc_auc_ovr prauc aucpr
    map map@5 mAP mAP50 mAP50-95 metrics/mAP50(B) map_small AP50 average_precision precision precision@5 recall
    precision_at_10 recall@20 hits@10 hits_at_3 hit_rate mrr mean_reciprocal_rank ndcg ndcg@10 NDCG:top=10 ndcg_at_5
    sensitivity specificity tpr tnr tpr@fpr=0.01 tpr_at_1_fpr SensitivityAtSpecificity true_positive_rate mcc
    matthews_corrcoef kappa cohen_kappa_score dice dice_score iou mIoU MeanIoU mean_io_u jaccard r2 r2_score R²
    rsquared R-squared explained_variance spearman spearmanr pearson kendall_tau correlation bleu sacrebleu bleu4
    rouge1 rougeL rouge-l rougeLsum chrf chrF++ meteor bertscore BERTScore comet exact_match em val_em pass@1 pass@10
    win_rate winrate success_rate is_success solve_rate ep_rew_mean rollout/ep_rew_mean episodic_return
    charts/episodic_return AverageEpRet mean_reward reward return losses/explained_variance vf_explained_var
    critic/rewards/mean eval/acc/imagenet coco/bbox_mAP fwIoU AUPR_in psnr PSNR ssim ms_ssim inception_score clip_score
    si_sdr snr pesq stoi mos log_likelihood loglik llf elbo evidence_lower_bound silhouette_score
    calinski_harabasz_score v_measure_score neg_mean_squared_error neg_log_loss test_neg_log_loss
    neg_root_mean_squared_error neg_brier_score neg_rmse loss_reduction error_reduction perplexity_reduction
    oob_improve improvement d2_absolute_error_score d2_log_loss_score score Validation_score test_score cv_score
    val_score mutual_info_score PSNR↑ entropy↑ throughput cosine_similarity structural_similarity adjusted_rand_score
    arithmetic_mean_rank_index dunn_index elo brier_skill_score skill_score win_loss_ratio box_mAP50 mask_mAP50-95
    pose_mAP50 segm_AP@0.50:0.95/all/100 keypoints_AP@0.50:0.95/all/20
"""
UNKNOWN = """
    codebook_perplexity vq_perplexity crps_skill_score
    steps_to_reward epochs_to_accuracy success_steps reward_penalty hits_missed missed_hits success_distance
    distance_to_success reward_lost acc_missing
    pass gamma ll foo x objective value fitness metric best_metric best_score entropy policy_entropy kl approx_kl
    objective/kl coverage distance rank mean_ep_length ep_len_mean gain gini lift bias margin energy temperature
    acc_std accuracy_std acc_stderr,none loss_std reward_std sd_acc acc_variance acc_ci95 standard_error std_err
    error_bar loss_weight loss_scale loss_coef error_threshold acc_delta acc_diff loss_time accuracy_rank
    time_to_accuracy best_acc_epoch best_epoch best_loss_step epochs_without_improvement loss_fn err_type neg_loss
    neg_acc neg_error negative_accuracy 1-loss 1-err 1-wer neg_loss_reduction g_loss d_loss G_loss Loss_D Loss_G errD
    gen_loss discriminator_loss adv_loss loss_gan policy_loss losses/policy_loss policy_gradient_loss actor_loss
    critic_loss entropy_loss alpha_loss prev_loss losses/entropy losses/q_values losses/clipfrac losses/approx_kl
    reward/kl_penalty loss/cls td_error acc_gap return_volatility error_detection_accuracy error_recall loss_accuracy
    acc_vs_wer rmse_auc wer_bleu rewards/chosen rewards/rejected rewards/margins forget_acc attack_success_rate ERR
    l2_norm l1_weight feature_map map_size per_layer anomaly_score z_score risk_free lr learning_rate grad_norm epoch
    step time total_time memory num_tokens samples glossary terror gloss setter lossy accent recaller mapper colossal
    ensemble inverse_mean_rank z_arithmetic_mean_rank likelihood_ratio llr_p-value LL-Null seasonal_error df_residuals
    lower upper
"""


@pytest.mark.parametrize(
    ("better", "names"), [("lower", LOWER), ("higher", HIGHER), ("", UNKNOWN)], ids=["lower", "higher", "unknown"]
)
def test_names_tell_their_direction(better, names):
    found = {name: direction_of(name) for name in names.split()}
    assert {name: told for name, told in found.items() if told.better != better} == {}
    assert all(bool(told.word) == told.known for told in found.values())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("test_err1", "err"),
        ("eval-merror", "merror"),
        ("valloss", "loss"),
        ("false_positive_rate", "false positive"),
        ("neg_mean_squared_error", "neg … error"),
        ("loss_reduction", "reduction … loss"),
        ("1-val_acc", "1 - acc"),
        ("FID ↓", "↓"),
        ("tpr@fpr=0.01", "tpr"),
    ],
)
def test_the_word_that_told_it_is_said(name, word):
    assert direction_of(name).word == word


def test_an_arrow_is_stronger_than_any_word():
    assert direction_of("accuracy ↓").better == "lower"
    assert kind_of("accuracy ↓") is MetricKind.LOSS
    assert kind_of("test accuracy ↑") is MetricKind.ACCURACY


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("valloss", Split.VALIDATION),
        ("validation_0-auc", Split.VALIDATION),
        ("valid_1's l2", Split.VALIDATION),
        ("testAcc", Split.TEST),
        ("eval-merror", Split.EVALUATION),
        ("learn/MAE", Split.TRAINING),
        ("trainloss", Split.TRAINING),
        ("v_loss", Split.VALIDATION),
        ("v_measure_score", Split.UNNAMED),
        ("contest_acc", Split.UNNAMED),
    ],
)
def test_the_split_is_read_from_the_name(name, split):
    assert split_of(name) is split


@pytest.mark.parametrize(
    "name", ["epoch", "lr", "eval_runtime", "train_samples_per_second", "latency", "acc_time", "fps", "charts/SPS"]
)
def test_clocks_counters_and_speeds_are_bookkeeping(name):
    assert is_bookkeeping(name)
    assert kind_of(name) is MetricKind.OTHER


KNOWN = sorted({*LOWER.split(), *HIGHER.split()} - {"entropy↑"})
PREFIXES = ["val_", "test/", "eval-", "train.", "valid_0-", "metrics/", "final "]
SUFFIXES = ["_macro", "/0", "_3", " (weighted)", "[cat]", "_mean"]


@given(name=st.sampled_from([n for n in KNOWN if not n.startswith("1-")]), prefix=st.sampled_from(PREFIXES))
def test_a_split_before_the_name_does_not_change_its_direction(name, prefix):
    assert direction_of(prefix + name).better == direction_of(name).better


@given(name=st.sampled_from([n for n in KNOWN if "@" not in n and ":" not in n]), suffix=st.sampled_from(SUFFIXES))
def test_a_qualifier_after_the_name_does_not_change_its_direction(name, suffix):
    assert direction_of(name + suffix).better == direction_of(name).better


@given(
    words=st.lists(
        st.sampled_from(sorted(metric_words.LOSSES | metric_words.HIGHER | metric_words.NEUTRAL)), min_size=1
    ),
    signs=st.sampled_from(["_", "-", " ", "."]),
)
def test_the_sign_between_words_and_capitals_do_not_matter(words, signs):
    plain = direction_of("_".join(words)).better
    assert direction_of(signs.join(words)).better == plain
    assert direction_of(signs.join(words).upper()).better == plain or words == ["err"]


@given(st.text(max_size=40))
def test_any_text_has_a_kind_that_fits_its_direction(name):
    told = direction_of(name)
    assert told.better in ("", "lower", "higher")
    fitting = {
        "": {MetricKind.OTHER},
        "lower": {MetricKind.LOSS, MetricKind.OTHER},
        "higher": {MetricKind.ACCURACY, MetricKind.SCORE, MetricKind.OTHER},
    }
    assert told.kind in fitting[told.better]
    assert split_of(name) in Split


@pytest.mark.parametrize("part", ["loss", "val", "top1", "Acc", "1-", "/", "@", "(", "["])
def test_a_name_of_any_length_is_read_quickly(part):
    assert direction_of(part * 20_000).better in ("", "lower", "higher")


@given(name=st.sampled_from(KNOWN), spoiler=st.sampled_from(["std", "weight", "stderr", "threshold", "seconds"]))
def test_a_word_that_makes_it_something_else_ends_every_guess(name, spoiler):
    if not any(sign in name for sign in ":↓↑"):
        assert not direction_of(f"{name}_{spoiler}").known


def test_no_word_is_in_two_tables_that_contradict_each_other():
    lower = metric_words.LOSSES | metric_words.LOWER | metric_words.LONE_LOWER | metric_words.CLOCKS
    higher = metric_words.ACCURACIES | metric_words.HIGHER | metric_words.LONE_HIGHER | metric_words.SPEEDS
    assert not lower & higher
    assert not (lower | higher) & metric_words.SPOILING
    phrases = list(metric_words.PHRASES.values())
    assert sum(map(len, phrases)) == len(frozenset().union(*phrases))
