import json
import subprocess
import sys

import numpy as np
import pytest
from few_shot_folders import link_real_data, write_miniimagenet

from isorun.errors import UsageError
from isorun.zoo.data.class_images import by_class
from isorun.zoo.data.made import made_class_splits
from isorun.zoo.generators import array_generator
from isorun.zoo.studies.fewshot.train import main
from isorun.zoo.studies.fewshot.training.images import EpisodeShape, draw_episodes
from isorun.zoo.studies.fewshot.training.loop import learning_rate
from isorun.zoo.studies.fewshot.training.options import METHODS, OPTIMIZERS, read_options

torch = pytest.importorskip("torch")

from isorun.zoo.studies.fewshot.training.images import load_splits  # noqa: E402
from isorun.zoo.studies.fewshot.training.loop import (  # noqa: E402
    auxiliary_probability,
    train,
)

TINY_FLAGS = "--made-data --image-size 16 --width 4 --ways 3 --shots 2 --queries 3 --eval-queries 4 --device cpu"
TINY = TINY_FLAGS.split()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def options(*words):
    return read_options([*TINY, *words])


def trained(*words):
    chosen = options(*words)
    return train(chosen, load_splits(chosen), torch.device("cpu"), lambda _: None)


def uneven_classes(sizes):
    pictures = [(f"c{k}", np.full((size, 2, 2, 1), k, dtype=np.uint8)) for k, size in enumerate(sizes)]
    return by_class(pictures, "test")


def test_episodes_take_distinct_images_of_distinct_classes():
    source = uneven_classes([5, 9, 6, 5, 20, 7])
    episodes = draw_episodes(np.random.default_rng(1), source, EpisodeShape(4, 2, 3), 500)
    labels = source.labels[episodes]
    assert episodes.shape == (500, 4, 5)
    assert (labels == labels[:, :, :1]).all()
    assert all(len(set(episode.ravel().tolist())) == 20 for episode in episodes)
    assert all(len(set(classes)) == 4 for classes in labels[:, :, 0].tolist())


def test_every_class_and_every_image_is_drawn_equally_often():
    source = uneven_classes([4, 6, 5])
    episodes = draw_episodes(np.random.default_rng(2), source, EpisodeShape(2, 1, 1), 6000)
    firsts = np.bincount(episodes[:, :, 0].ravel(), minlength=15) / 6000
    expected = np.repeat([2 / 3 / 4, 2 / 3 / 6, 2 / 3 / 5], [4, 6, 5])
    assert firsts == pytest.approx(expected, abs=0.02)


def test_episodes_are_the_same_however_many_are_drawn_at_once(monkeypatch):
    source, shape = uneven_classes([5, 9, 6]), EpisodeShape(2, 1, 2)
    whole = draw_episodes(np.random.default_rng(3), source, shape, 50)
    generator = np.random.default_rng(3)
    parts = [draw_episodes(generator, source, shape, count) for count in (1, 19, 30)]
    assert np.array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr("isorun.zoo.studies.fewshot.training.images.KEYS_AT_ONCE", 100)
    assert np.array_equal(draw_episodes(np.random.default_rng(3), source, shape, 50), whole)


@pytest.mark.parametrize(("shape", "said"), [((4, 1, 1), "3 classes"), ((2, 3, 3), "5 images")])
def test_episodes_larger_than_the_data_are_refused(shape, said):
    with pytest.raises(UsageError, match=said):
        draw_episodes(np.random.default_rng(1), uneven_classes([5, 9, 6]), EpisodeShape(*shape), 1)


def test_generators_of_other_names_or_seeds_draw_other_numbers():
    draws = {array_generator(seed, name).random() for seed in (1, 2) for name in ("training episodes", "test episodes")}
    assert len(draws) == 4
    assert array_generator(1, "dropout").random() == array_generator(1, "dropout").random()


def test_a_rate_is_multiplied_after_every_period():
    chosen = options("--method", "prototypical", "--learning-rate", "0.8", "--lr-decay-period", "10")
    assert [learning_rate(chosen, step) for step in (0, 9, 10, 25)] == pytest.approx([0.8, 0.8, 0.4, 0.2])


def test_tadam_divides_its_rate_from_half_way_on_and_three_times_at_most():
    chosen = options("--method", "tadam", "--learning-rate", "1", "--episodes", "100", "--lr-decay-period", "10")
    rates = [learning_rate(chosen, step) for step in (0, 49, 50, 59, 60, 70, 99)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.001, 0.001])


def test_matching_rates_fall_with_the_inverse_of_time():
    chosen = options("--method", "matching", "--learning-rate", "0.1", "--lr-decay-rate", "0.01")
    assert [learning_rate(chosen, step) for step in (0, 100, 300)] == pytest.approx([0.1, 0.05, 0.025])


def test_auxiliary_batches_become_rarer():
    chosen = options("--method", "tadam", "--episodes", "200")
    assert auxiliary_probability(chosen, 0) == pytest.approx(0.9)
    assert auxiliary_probability(chosen, 9) == pytest.approx(0.9)
    assert auxiliary_probability(chosen, 10) == pytest.approx(0.81)
    assert auxiliary_probability(chosen, 199) == pytest.approx(0.9**20)


def test_gradients_are_cut_set_by_set():
    from isorun.zoo.studies.fewshot.training.loop import GradientClipping

    first, second, third = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    first.grad, second.grad, third.grad = (torch.tensor(g) for g in ([3.0, 0.0], [0.0, 4.0], [0.3, 0.4]))
    GradientClipping([([first, second], 1.0), ([third], 1.0)]).apply()
    assert [*first.grad.tolist(), *second.grad.tolist()] == pytest.approx([0.6, 0, 0, 0.8], rel=1e-5)
    assert third.grad.tolist() == pytest.approx([0.3, 0.4])


@pytest.mark.long
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_with_every_optimizer(method, optimizer):
    words = ["--method", method, "--optimizer", optimizer, "--eval-episodes", "40", "--dropout", "0"]
    rate = {"sgd": "0.05", "adam": "0.005"}[optimizer]
    steps = {"matching": "80", "prototypical": "40", "tadam": "20"}[method]
    before = trained(*words, "--episodes", "0").best.test.accuracy
    after = trained(*words, "--episodes", steps, "--eval-every", "10", "--learning-rate", rate)
    assert after.best.test.accuracy > max(before, 1 / 3) + 0.1
    assert after.rounds[-1].train_loss < after.rounds[0].train_loss


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_the_same_training_whatever_the_global_generators_say(method):
    words = ["--method", method, "--episodes", "4", "--eval-every", "2", "--eval-episodes", "5", "--dropout", "0.2"]
    torch.manual_seed(1)
    np.random.seed(1)
    first = trained(*words)
    torch.manual_seed(2)
    np.random.seed(2)
    again, other = trained(*words), trained(*words, "--seed", "2")
    assert first.rounds == again.rounds
    assert first.rounds != other.rounds


def test_the_best_validation_round_counts_and_its_weights_come_back():
    words = ["--episodes", "30", "--eval-every", "3", "--eval-episodes", "10", "--learning-rate", "0.05"]
    outcome = trained(*words)
    best = max(outcome.rounds, key=lambda done: (done.val.accuracy, -done.number))
    assert outcome.best == best
    assert best.number < len(outcome.rounds)
    until = trained(*words[2:], "--episodes", str(best.step), "--eval-every", "3")
    ended = until.learner.state_dict()
    assert until.best == best
    assert all(torch.equal(value, ended[name]) for name, value in outcome.learner.state_dict().items())


def test_a_training_without_gain_stops_early():
    words = [
        "--episodes",
        "60",
        "--eval-every",
        "1",
        "--eval-episodes",
        "5",
        "--learning-rate",
        "0",
        "--early-stop",
        "3",
    ]
    outcome = trained(*words)
    assert len(outcome.rounds) - outcome.best.number == 3


def test_a_training_that_blows_up_still_ends_with_a_number():
    outcome = trained("--optimizer", "sgd", "--learning-rate", "1e30", "--episodes", "6", "--eval-episodes", "5")
    assert np.isnan(outcome.rounds[-1].train_loss)
    assert 0 <= outcome.best.test.accuracy <= 1


def test_evaluation_with_features_computed_once_equals_one_episode_at_a_time():
    from isorun.zoo.studies.fewshot.training.images import Pictures, normalisation
    from isorun.zoo.studies.fewshot.training.loop import Evaluation, build_learner

    splits, shape = made_class_splits(side=16), EpisodeShape(3, 2, 4)
    episodes = torch.from_numpy(draw_episodes(np.random.default_rng(1), splits.test, shape, 30))
    learner = build_learner(options(), channels=1, side=16, classes=40, device=torch.device("cpu"))
    pictures = Pictures(splits.test, normalisation(splits.train), torch.device("cpu"))
    together = Evaluation(pictures, episodes, shape).score(learner).accuracy
    alone = [Evaluation(pictures, episodes[k : k + 1], shape).score(learner).accuracy for k in range(30)]
    assert together == pytest.approx(np.mean(alone))
    learner.embeds_alone = False
    assert Evaluation(pictures, episodes, shape).score(learner).accuracy == pytest.approx(together)


def test_pictures_are_normalised_by_the_training_classes():
    from isorun.zoo.studies.fewshot.training.images import Pictures, normalisation

    source = made_class_splits(side=16, channels=3).train
    taken = Pictures(source, normalisation(source), torch.device("cpu")).take(torch.arange(len(source.images)))
    assert taken.shape == (800, 3, 16, 16)
    assert taken.mean((0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=1e-3)
    assert taken.std((0, 2, 3)).tolist() == pytest.approx([1, 1, 1], abs=1e-3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--queries", "19"], "labelled and 19 query images"),
        (["--ways", "50"], "50 classes"),
        (["--method", "tadam", "--backbone", "conv4"], "resnet12"),
        (["--image-size", "12"], "16 or more"),
    ],
)
def test_words_that_do_not_fit_together_are_a_usage_error(words, said, capsys):
    assert main([*TINY, "--episodes", "1", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--ways", "0"], "a whole number from 1"),
        (["--shots", "2.5"], "a whole number from 1"),
        (["--seed", "-1"], "a whole number from 0"),
        (["--learning-rate", "nan"], "a number from 0"),
        (["--learning-rate", "inf"], "a number from 0"),
        (["--dropout", "1"], "a number from 0 to under 1"),
        (["--data", "imagenet"], "omniglot"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(words, allowed, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert allowed in capsys.readouterr().err


def test_flags_left_out_take_the_values_of_the_method():
    chosen = read_options(["--method", "tadam", "--optimizer", "sgd", "--lr-decay-rate", "9"])
    assert (chosen.backbone, chosen.tasks_per_batch, chosen.learning_rate) == ("resnet12", 2, 0.1)
    assert (chosen.lr_decay_rate, chosen.lr_decay_period, chosen.weight_decay) == (9, 2500, 0.0005)
    assert (chosen.train_ways, chosen.train_shots, chosen.val_episodes, chosen.eval_every) == (5, 5, 600, 200)


def test_missing_data_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    assert main(["--data", "omniglot", "--device", "cpu"]) == 1
    assert "isorun data get omniglot" in capsys.readouterr().err


def test_the_command_needs_no_torch_before_it_trains():
    code = (
        "import sys, isorun.zoo.studies.fewshot.train, isorun.zoo.models.few_shot_sizes; print('torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "False"


def test_missing_torch_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main([*TINY, "--episodes", "1"]) == 1
    assert "isorun[zoo]" in capsys.readouterr().err


def test_miniimagenet_is_trained_on_from_photographs(tmp_path, monkeypatch, capsys):
    write_miniimagenet(tmp_path, classes=tuple("abc"), each=4)
    monkeypatch.setattr("isorun.zoo.data.few_shot_sets.require", lambda _: tmp_path)
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    words = (
        "--data miniimagenet --ways 3 --shots 2 --queries 2 --eval-queries 2 --episodes 2 --eval-episodes 3 --width 4"
    )
    assert main([*words.split(), "--device", "cpu"]) == 0
    assert "miniImageNet, train classes of the Ravi split" in capsys.readouterr().out


@pytest.mark.long
def test_the_command_records_rounds_and_the_result(tmp_path):
    study = tmp_path / "study.toml"
    command = [
        *("python", "-m", "isorun.zoo.studies.fewshot.train", "--seed", "{seed}", *TINY),
        *("--episodes", "4", "--eval-every", "2", "--eval-episodes", "5"),
    ]
    study.write_text(
        f'name = "few"\nseeds = [1]\nlevels = ["deterministic"]\nrepeats = 2\n'
        f'[metrics.accuracy]\ndirection = "higher"\n[approaches.p]\ncommand = {json.dumps(command)}\n'
    )
    subprocess.run([sys.executable, "-m", "isorun", "run", str(study)], check=True, cwd=tmp_path, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "-m", "isorun", "report", str(study), "--json"], check=True, cwd=tmp_path, capture_output=True
    )
    report = json.loads(shown.stdout)
    assert "same weights, bit for bit" in report["verdict"][0]
    assert {"train_loss", "val_accuracy", "test_accuracy", "accuracy"} <= set(report["logged"])
    assert report["groups"][0]["selections"][0]["all"]["epochs"]["mean"] == 2


@pytest.mark.long
def test_a_short_training_on_the_real_omniglot_beats_raw_pixels(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    link_real_data(tmp_path)
    words = "--data omniglot --classes-limit 400 --width 16 --train-ways 20 --queries 5 --learning-rate 0.003"
    chosen = read_options([*words.split(), "--episodes", "60", "--eval-every", "60", "--eval-episodes", "50"])
    assert train(chosen, load_splits(chosen), torch.device("cpu"), lambda _: None).best.test.accuracy > 0.85


@pytest.mark.slow
def test_a_prototypical_network_reaches_98_percent_on_omniglot(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    link_real_data(tmp_path)
    words = "--data omniglot --train-ways 60 --shots 5 --queries 5 --episodes 200 --eval-every 100 --val-episodes 100"
    chosen = read_options([*words.split(), "--eval-episodes", "600"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert train(chosen, load_splits(chosen), device, lambda _: None).best.test.accuracy >= 0.98
