"""SM-CNN and its training: what padding, seeds, batches and dropout do, and the command."""

from dataclasses import replace

import numpy as np
import pytest

import isorun
from isorun.zoo.data.made import made_answers, made_vectors
from isorun.zoo.generators import hashed_generator
from isorun.zoo.studies.tacl18 import train as command
from isorun.zoo.studies.tacl18.training.loop import DeviceDropout, dropout_kept
from isorun.zoo.studies.tacl18.training.options import Options
from isorun.zoo.studies.tacl18.training.tensors import plan_epoch, plan_evaluation
from isorun.zoo.studies.tacl18.training.words import PADDING, encode, vocabulary

torch = pytest.importorskip("torch")

from isorun.zoo.models.sm_cnn import HIDDEN, sm_cnn  # noqa: E402 - needs torch
from isorun.zoo.studies.tacl18.training.loop import TrainedEpoch, train  # noqa: E402
from isorun.zoo.studies.tacl18.training.tensors import (  # noqa: E402
    batches,
    prepare,
)


def made_material(seed=1):
    return prepare(made_answers(), made_vectors, Options(seed=seed), torch.device("cpu")).material


def trained(settings, material=None):
    epochs: list[TrainedEpoch] = []
    initial = []
    found = train(
        material or made_material(settings.seed_of("words")),
        settings,
        lambda network: initial.append(network.joined.weight.detach().clone()),
        epochs.append,
    )
    return found, epochs, initial[0]


def test_the_network_has_the_stated_number_of_parameters():
    network = sm_cnn(50, np.random.default_rng(0))
    assert sum(tensor.numel() for tensor in network.parameters()) == 92_430


def test_weights_are_drawn_within_the_published_limits():
    network = sm_cnn(50, np.random.default_rng(0))
    for layer, fan_in in (
        (network.question, 250),
        (network.answer, 250),
        (network.joined, 204),
        (network.classes, 204),
    ):
        for tensor in (layer.weight, layer.bias):
            assert float(tensor.detach().abs().max()) <= fan_in**-0.5
        assert float(layer.weight.detach().std()) == pytest.approx((3 * fan_in) ** -0.5, rel=0.1)


def test_padding_changes_nothing():
    """The scores of a padded batch are those of the sentences alone, convolved and pooled the long way round."""
    draws = np.random.default_rng(1)
    network = sm_cnn(50, draws)
    network.answer.bias.data += 3.0
    lengths = torch.tensor([3, 1, 7])
    sentences = torch.from_numpy(draws.normal(0, 1, (3, 50, 7)).astype("float32"))
    for row, length in enumerate(lengths):
        sentences[row, :, length:] = 0
    features = torch.from_numpy(draws.normal(0, 1, (3, 4)).astype("float32"))
    found = network((sentences, lengths), (sentences, lengths), features)
    for row, length in enumerate(lengths):
        alone = sentences[row : row + 1, :, :length]
        maps = [torch.tanh(layer(alone)).amax(dim=2) for layer in (network.question, network.answer)]
        hidden = torch.tanh(network.joined(torch.cat((*maps, features[row : row + 1]), dim=1)))
        assert torch.allclose(found[row], network.classes(hidden)[0], atol=1e-6)


def test_dropout_multiplies_the_hidden_layer_with_what_is_given():
    network = sm_cnn(50, np.random.default_rng(2))
    sentence = (torch.ones(1, 50, 3), torch.tensor([3]))
    features = torch.zeros(1, 4)
    nothing = network(sentence, sentence, features, torch.zeros(1, HIDDEN))
    assert torch.equal(nothing[0], network.classes.bias)


def test_dropout_keeps_about_half_doubled_and_is_drawn_anew():
    draws = hashed_generator(1, "dropout")
    first, second = dropout_kept(draws, 500, HIDDEN), dropout_kept(draws, 500, HIDDEN)
    assert first.shape == (500, HIDDEN)
    assert set(np.unique(first)) == {0, 2}
    assert first.mean() == pytest.approx(1, abs=0.02)
    assert not np.array_equal(first, second)


def test_factors_draw_from_generators_of_their_own():
    drawn = {factor: hashed_generator(7, factor).random() for factor in ("weights", "order", "dropout", "words")}
    assert len(set(drawn.values())) == 4
    assert hashed_generator(7, "weights").random() == drawn["weights"]
    assert hashed_generator(8, "weights").random() != drawn["weights"]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000, 1024])
def test_an_epoch_takes_every_pair_once_in_whole_batches(count):
    draws = np.random.default_rng(3)
    question, answer = draws.integers(1, 10, count), draws.integers(1, 60, count)
    plan = plan_epoch(draws, question, answer, 32, "shuffled")
    assert sorted(plan.order.tolist()) == list(range(count))
    assert [part.start for part in plan.slices] == list(range(0, count, 32))
    for part in plan.slices:
        chosen = plan.order[part.start : part.stop]
        assert (part.question, part.answer) == (question[chosen].max(), answer[chosen].max())


def test_epochs_are_shuffled_anew_unless_in_the_order_of_the_file():
    lengths = np.random.default_rng(4).integers(1, 60, 500)
    draws = hashed_generator(1, "order")
    first, second = (plan_epoch(draws, lengths, lengths, 8, "shuffled").order for _ in range(2))
    assert not np.array_equal(first, second)
    assert plan_epoch(draws, lengths, lengths, 8, "file").order.tolist() == list(range(500))


def test_batches_hold_answers_of_similar_length():
    lengths = np.random.default_rng(5).integers(1, 60, 5000)
    plan = plan_epoch(hashed_generator(1, "order"), lengths, lengths, 32, "shuffled")
    padded = sum((part.stop - part.start) * part.answer for part in plan.slices)
    assert padded < 1.1 * lengths.sum()


def test_batches_give_each_pair_its_own_words_features_and_label():
    material = made_material()
    plan = plan_evaluation(*material.train.lengths)
    for batch in batches(material.train, plan, material.table):
        for place, pair in enumerate(plan.order[batch.positions]):
            length = int(material.train.lengths[1][pair])
            expected = material.table[material.train.answer[pair, :length]].T
            assert torch.equal(batch.answer[0][place, :, :length], expected)
            assert not batch.answer[0][place, :, length:].any()
            assert torch.equal(batch.features[place], material.train.features[pair])
            assert batch.labels[place] == material.train.labels[pair]


def test_unknown_words_share_a_vector_in_evaluation_and_have_their_own_in_training():
    data = made_answers()
    words = vocabulary(data, made_vectors, hashed_generator(1, "words"))
    evaluated = {word for split in (data.dev, data.test) for pair in split.pairs for word in pair.answer}
    training = {word for pair in data.train.pairs for word in pair.answer} - evaluated
    odd = [
        {word for word in group if word.startswith("topic") and int(word[5:]) % 2} for group in (evaluated, training)
    ]
    assert len({words.rows[word] for word in odd[0]}) == 1
    assert len({words.rows[word] for word in odd[1]}) == len(odd[1])
    assert words.unknown >= len(odd[0]) + len(odd[1])
    drawn = words.vectors[[words.rows[word] for word in odd[1]]]
    assert abs(drawn).max() <= 0.25
    assert not words.vectors[PADDING].any()
    known = made_vectors({"person1"})
    assert np.array_equal(words.vectors[words.rows["person1"]], known.matrix[0])


def test_sentences_are_cut_after_sixty_words():
    encoded, lengths = encode([("a",) * 75, ("a", "b")], {"a": 5, "b": 6})
    assert encoded.shape == (2, 60)
    assert lengths.tolist() == [60, 2]
    assert encoded[1, :3].tolist() == [5, 6, PADDING]


def test_the_same_seed_trains_to_the_same_bits():
    first, epochs, _ = trained(Options(seed=3, epochs=2))
    second, again, _ = trained(Options(seed=3, epochs=2))
    assert [epoch.train_loss for epoch in epochs] == [epoch.train_loss for epoch in again]
    for one, other in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_seed_trains_to_other_weights():
    assert not torch.equal(trained(Options(seed=3, epochs=1))[2], trained(Options(seed=4, epochs=1))[2])


def test_the_seed_may_decide_the_initial_weights_alone():
    settings = [Options(seed=seed, vary="weights") for seed in (3, 4)]
    for factor in ("order", "dropout", "words"):
        assert {item.seed_of(factor) for item in settings} == {1234}
    assert [item.seed_of("weights") for item in settings] == [3, 4]
    assert Options(seed=3).seed_of("order") == 3


def test_one_step_is_the_gradient_step_of_plain_sgd():
    """One batch of all pairs: weights move by rate x size x (gradient + decay x weights)."""
    material = made_material()
    pairs = material.train.pairs
    settings = Options(seed=5, epochs=1, batch_size=pairs, order="file", rate=1e-5, weight_decay=0.1)
    found, epochs, initial = trained(settings, material)
    network = sm_cnn(50, hashed_generator(5, "weights"))
    kept = torch.from_numpy(dropout_kept(hashed_generator(5, "dropout"), pairs, HIDDEN)).float()
    plan = plan_epoch(None, *material.train.lengths, pairs, "file")
    batch = next(batches(material.train, plan, material.table))
    loss = torch.nn.functional.cross_entropy(
        network(batch.question, batch.answer, batch.features, kept), material.train.labels
    )
    loss.backward()
    expected = initial - 1e-5 * pairs * (network.joined.weight.grad + 0.1 * initial)
    assert epochs[0].train_loss == pytest.approx(float(loss.detach()), rel=1e-6)
    assert torch.allclose(found.network.joined.weight, expected, atol=1e-8)


def test_dropout_of_the_device_is_repeatable_and_another_one():
    shared, own, again = (
        trained(Options(seed=3, epochs=1, dropout=who))[1][0] for who in ("shared", "device", "device")
    )
    assert own.train_loss == again.train_loss
    assert own.train_loss != shared.train_loss
    kept = DeviceDropout(3, torch.device("cpu")).epoch(500, HIDDEN)
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert float(kept.mean()) == pytest.approx(1, abs=0.02)


def test_training_stops_when_patience_is_over_and_keeps_the_best_epoch():
    found, epochs, _ = trained(Options(seed=1, epochs=10, patience=2, margin=2.0))
    assert (found.epochs, found.best.number, len(epochs)) == (3, 1, 3)
    once, _, _ = trained(Options(seed=1, epochs=1))
    for kept, first in zip(found.network.parameters(), once.network.parameters(), strict=True):
        assert torch.equal(kept, first)


def test_the_made_data_can_be_learned():
    found, epochs, _ = trained(Options(seed=1234, epochs=5))
    untrained = 0.41  # the mean of 1/rank with one answer among six at random
    assert found.best.test.mean_ap > untrained + 0.2
    assert epochs[-1].train_loss < epochs[0].train_loss


@pytest.fixture
def recorded(monkeypatch):
    calls = {"log": [], "result": [], "digest": []}
    monkeypatch.setattr(isorun, "log", lambda **values: calls["log"].append(values))
    monkeypatch.setattr(isorun, "result", lambda **values: calls["result"].append(values))
    monkeypatch.setattr(isorun, "digest", lambda name, _network: calls["digest"].append(name))
    return calls


def test_the_command_logs_every_epoch_and_ends_with_the_result(recorded, capsys):
    words = ["--made-data", "--epochs", "2", "--seed", "3", "--device", "cpu", "--threads", "1"]
    assert command.main(words) == 0
    assert [row["epoch"] for row in recorded["log"]] == [1, 2]
    assert set(recorded["log"][0]) == {"epoch", "train_loss", "dev_map", "dev_mrr", "test_map", "test_mrr"}
    result = recorded["result"][0]
    best = recorded["log"][result["best_epoch"] - 1]
    assert (result["map"], result["mrr"], result["best_dev_map"]) == (
        best["test_map"],
        best["test_mrr"],
        best["dev_map"],
    )
    assert result["predictions"].shape == (180,)
    for name in ("map", "mrr"):  # over questions settings can be compared only where their mean is the metric
        by_question = result["per_class"][name]
        assert len(by_question) > 2
        assert sum(by_question.values()) / len(by_question) == pytest.approx(result[name])
    assert (result["threads_requested"], result["epochs"]) == (1, 2)
    assert 0 < result["idf_map"] < 1
    assert recorded["digest"] == ["weights.initial"]
    assert "epoch  2" in capsys.readouterr().out


def test_training_questions_can_be_limited(recorded):
    for limit in (["--train-questions", "5"], []):
        assert command.main(["--made-data", "--epochs", "1", "--device", "cpu", *limit]) == 0
    few, all_questions = (row["train_loss"] for row in recorded["log"])
    assert few != all_questions


def test_onednn_can_be_switched_off_and_changes_rounding_only(recorded):
    enabled = torch.backends.mkldnn.enabled
    try:
        for state in ("on", "off"):
            words = ["--made-data", "--epochs", "1", "--device", "cpu", "--onednn", state]
            assert command.main(words) == 0
            assert torch.backends.mkldnn.enabled == (state == "on")
    finally:
        torch.backends.mkldnn.enabled = enabled
    on, off = (row["train_loss"] for row in recorded["log"])
    assert on == pytest.approx(off, rel=1e-4)


def test_missing_data_ends_with_a_message_and_the_next_command(made_data_folder, capsys):
    assert command.main(["--data", "wikiqa", "--device", "cpu"]) == 1
    message = capsys.readouterr().err
    assert "isorun data get wikiqa" in message
    assert "Traceback" not in message


def test_a_device_that_is_not_there_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.main(["--made-data", "--device", "cuda"]) == 2
    assert "no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--data", "trec"], ["--batch-size", "x"]])
def test_bad_arguments_are_refused_before_anything_loads(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(words)


def test_few_questions_of_real_data_train(shared_data_folder, recorded):
    if not (shared_data_folder / "trecqa").is_dir():
        pytest.skip("no TrecQA beside this repository")
    words = ["--data", "trecqa-clean", "--train-questions", "20", "--epochs", "1", "--device", "cpu"]
    assert command.main(words) == 0
    assert recorded["result"][0]["predictions"].shape == (1442,)
    assert 0.3 < recorded["result"][0]["map"] < 0.9


def test_settings_default_to_the_published_values():
    published = replace(Options(), batch_size=1, order="file", vary="weights")
    assert (published.seed, published.epochs, published.rate, published.weight_decay) == (1234, 25, 0.001, 1e-5)
    assert (published.patience, published.margin) == (5, 1e-3)
