"""What libraries print and write: every metric in it is found under its name, with the direction it has."""

import shutil
from pathlib import Path

import pytest

from isorun.analysis.evidence.judged import direction_of
from isorun.sources import Found, Reading
from isorun.sources.lines import scan_text
from isorun.study.design import Sources


def read_files(sources: Sources, folder: Path, since_unix: float) -> Found:
    return Reading(sources).finish(folder, since_unix)[0]


LIBRARIES = Path(__file__).parent / "libraries"

# Written by hand: the metrics that are lower, higher, and of no known direction, in this order.
PRINTED = {
    "accelerate": ("train_loss perplexity eval_loss", "accuracy f1", ""),
    "catboost": (
        "learn/SMAPE learn/MAE learn/RMSE validation/SMAPE validation/MAE validation/RMSE",
        "learn/R2 validation/R2",
        "learn test best",
    ),
    "flair": (
        "loss val_loss",
        """val_f1-score_micro f-score_micro f-score_macro accuracy precision_macro recall_macro f1-score_macro
        precision_weighted recall_weighted f1-score_weighted report_accuracy precision[PROPN] recall[PROPN]
        f1-score[PROPN]""",
        "lr",
    ),
    "flax": ("train_loss test_loss", "train_accuracy test_accuracy", ""),
    "gensim": ("perplexity train_latest_loss", "", ""),
    "ignite": ("loss train_loss val_loss", "train_accuracy val_accuracy", ""),
    "keras": (
        """loss val_loss eval_loss mae mape root_mean_squared_error val_mae val_mape val_root_mean_squared_error
        false_positives val_false_positives""",
        """accuracy val_accuracy eval_accuracy sparse_top_k_categorical_accuracy val_sparse_top_k_categorical_accuracy
        eval_sparse_top_k_categorical_accuracy r2_score val_r2_score cosine_similarity val_cosine_similarity auc
        precision recall val_auc val_precision val_recall""",
        "",
    ),
    "lightgbm": (
        """train_binary_logloss train_binary_error valid_1_binary_logloss valid_1_binary_error train_rmse train_mape
        val_rmse val_mape train_l2 train_l1 train_huber train_quantile val_l2 val_l1 val_huber val_quantile
        train_multi_logloss train_multi_error valid_1_multi_logloss valid_1_multi_error""",
        "train_auc train_average_precision valid_1_auc valid_1_average_precision",
        "",
    ),
    "lightning": ("test/ece test_loss", "test/MulticlassF1Score test/acc", ""),
    "ngboost": ("loss val_loss", "", "norm"),
    "prophet": ("mse rmse mae mape smape mdape", "", "coverage"),
    "pykeen": (
        "train_loss",
        """both.realistic.hits_at_1 both.realistic.hits_at_3 both.realistic.hits_at_5 both.realistic.hits_at_10
        both.realistic.adjusted_hits_at_k""",
        """train_prev_loss both.realistic.z_hits_at_k both.realistic.standard_deviation
        both.realistic.median_absolute_deviation both.realistic.variance""",
    ),
    "river": ("logloss mae rmse", "accuracy rocauc r2", ""),
    "sb3": (
        "train/loss train/value_loss",
        "eval_episode_reward eval/mean_reward rollout/ep_rew_mean train/explained_variance",
        """train/approx_kl train/clip_fraction train/clip_range train/entropy_loss train/learning_rate
        train/policy_gradient_loss""",
    ),
    "sentence_transformers": (
        "loss eval_loss train_loss",
        """eval_pearson eval_spearman accuracy@1 accuracy@5 precision@5 recall@5 mrr@10 ndcg@10 map@100
        eval_sts-dev_pearson_cosine eval_sts-dev_spearman_cosine eval_ir_cosine_accuracy@1 eval_ir_cosine_accuracy@5
        eval_ir_cosine_precision@5 eval_ir_cosine_recall@5 eval_ir_cosine_ndcg@10 eval_ir_cosine_mrr@10
        eval_ir_cosine_map@100""",
        "grad_norm learning_rate eval_sequential_score",
    ),
    "sklearn": (
        "loss train_loss",
        """val_score oob_improve test_accuracy test_neg_log_loss test_f1_macro score accuracy precision_macro
        recall_macro f1-score_macro precision_weighted recall_weighted f1-score_weighted precision[0] precision[1]
        precision[2] recall[0] recall[1] recall[2] f1-score[0] f1-score[1] f1-score[2]""",
        "objective norm nnzs bias t",
    ),
    "skorch": ("train_loss valid_loss", "neg_log_loss valid_acc valid_f1", ""),
    "spacy": ("loss_tok2vec loss_ner loss_textcat", "ents_f ents_p ents_r cats_score score", ""),
    "statsmodels": ("aic bic", "pseudo_r-squ log-likelihood r-squared adj_r-squared", ""),
    "tabnet": (
        "loss train_logloss valid_logloss best_valid_logloss",
        "train_accuracy train_balanced_accuracy valid_accuracy valid_balanced_accuracy",
        "",
    ),
    "timm": ("train_loss test_loss", "test_acc@1 test_acc@5", "lr best_metric"),
    "torch_dcgan": ("", "", "loss_d loss_g"),
    "torch_imagenet": ("loss test_loss", "acc@1 acc@5 test_acc@1 test_acc@5", ""),
    "torch_reinforce": ("", "last_reward reward", ""),
    "transformers": (
        "loss eval_loss eval_mse train_loss test_loss test_mse",
        "eval_accuracy eval_f1 eval_matthews_correlation test_accuracy test_f1 test_matthews_correlation",
        "grad_norm learning_rate",
    ),
    "trl": (
        "loss eval_loss train_loss",
        "mean_token_accuracy eval_mean_token_accuracy rewards/accuracies",
        """entropy eval_entropy grad_norm learning_rate rewards/chosen rewards/rejected rewards/margins logits/chosen
        logits/rejected logps/chosen logps/rejected""",
    ),
    "ultralytics": ("loss box_loss cls_loss dfl_loss", "top1_acc top5_acc mAP50 mAP50-95", ""),
    "vw": ("loss", "", ""),
    "xgboost": (
        """train-merror train-mlogloss eval-merror eval-mlogloss validation_0-logloss validation_0-error
        validation_1-logloss validation_1-error validation_0-rmse validation_0-mae validation_0-mape
        validation_0-rmsle""",
        "validation_0-auc validation_0-aucpr validation_1-auc validation_1-aucpr",
        "",
    ),
}
WRITTEN = {
    "fastai": ("train_loss valid_loss error_rate perplexity", "accuracy f1_score matthews_corrcoef", ""),
    "lightning": (
        "test/ece test_loss train_loss_epoch train_loss_step val/ece val_loss",
        "test/MulticlassF1Score test/acc val/MulticlassF1Score val/acc",
        "",
    ),
    "timm": ("train_loss eval_loss", "eval_top1 eval_top5", "lr"),
    "ultralytics": (
        "train/box_loss train/cls_loss train/dfl_loss val/box_loss val/cls_loss val/dfl_loss",
        "metrics/precision(B) metrics/recall(B) metrics/mAP50(B) metrics/mAP50-95(B)",
        "lr/pg0 lr/pg1 lr/pg2",
    ),
}


def printed(library: str) -> Found:
    with (LIBRARIES / f"{library}.txt").open(encoding="utf-8", newline="") as file:
        return scan_text(file.read())


def expected(groups: tuple[str, str, str]) -> dict[str, str]:
    return {
        name: better for better, names in zip(("lower", "higher", ""), groups, strict=True) for name in names.split()
    }


@pytest.mark.parametrize("library", PRINTED)
def test_every_metric_a_library_prints_is_found_and_has_its_direction(library):
    found = {name: direction_of(name).better for name in printed(library).series}
    assert found == expected(PRINTED[library])


@pytest.mark.parametrize("library", WRITTEN)
def test_every_metric_a_library_writes_is_found_and_has_its_direction(library, tmp_path):
    shutil.copy(LIBRARIES / f"{library}.csv", tmp_path / "metrics.csv")
    (tmp_path / "metrics.csv").touch()
    found = read_files(Sources(files=("metrics.csv",)), tmp_path, 0.0)
    assert {name: direction_of(name).better for name in found.series if name != "time"} == expected(WRITTEN[library])


def test_every_output_is_expected_to_say_something():
    assert {path.stem for path in LIBRARIES.glob("*.txt")} == set(PRINTED)
    assert {path.stem for path in LIBRARIES.glob("*.csv")} == set(WRITTEN)
    assert len(PRINTED | WRITTEN) >= 15


@pytest.mark.parametrize(
    ("library", "metric", "values"),
    [
        ("xgboost", "eval-merror", (0.36, 0.32, 0.35, 0.34, 0.36, 0.34)),
        ("lightgbm", "valid_1_multi_error", (0.37, 0.32, 0.32, 0.32, 0.32)),
        ("catboost", "validation/MAE", (0.20234534929096692,)),
        ("sklearn", "train_loss", (1.0041, 0.9295, 0.8652, 0.805, 0.7671)),
        ("sklearn", "test_neg_log_loss", (-1.4090662002563477,)),
        ("sklearn", "recall_macro", (0.33,)),
        ("sklearn", "f1-score_weighted", (0.26,)),
        ("spacy", "ents_f", (40.0, 100.0, 100.0, 100.0)),
        ("sb3", "eval/mean_reward", (500.0, 90.3, 70.7)),
        ("ultralytics", "loss", (0.7065, 0.7216, 0.7051)),
        ("ultralytics", "top1_acc", (0.5, 0.5, 0.5, 0.5)),
        ("river", "mae", (3.243527, 1.950641, 1.425505, 1.314548)),
        ("flair", "val_f1-score_micro", (0.7015, 1.0, 1.0)),
        ("torch_imagenet", "acc@1", (33.33, 50.0)),
        ("statsmodels", "adj_r-squared", (-0.003,)),
        ("gensim", "perplexity", (8.0, 6.2, 6.2)),
        ("transformers", "eval_f1", (0.7879, 0.78, 0.78)),
    ],
)
def test_the_values_are_those_that_were_printed(library, metric, values):
    assert printed(library).series[metric].values == pytest.approx(values)


def test_a_training_that_stops_early_ends_with_the_values_of_its_best_round():
    found = printed("lightgbm")
    assert (found.series["train_multi_error"].values[-1], found.results["train_multi_error"]) == (0.14, 0.153333)
