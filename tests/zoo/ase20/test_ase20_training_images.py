"""Images on their way into a network: the split, subsets, small images, moves, normalisation."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from isorun.errors import UsageError  # noqa: E402
from isorun.zoo.data.images import evenly_chosen, load_images, split_places  # noqa: E402
from isorun.zoo.data.made import made_images  # noqa: E402
from isorun.zoo.studies.ase20.training.images import (  # noqa: E402  # noqa: E402
    Moves,
    drawn_moves,
    made_material,
    made_preparation,
    moved_images,
)

KERAS = Moves(most=0.1, whole_pixels=False, edge="nearest")
CROP = Moves(most=0.125, whole_pixels=True, edge="reflect")
# Test images of each digit in MNIST, as its authors count them.
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_ten_thousand_test_images_become_7500_and_2500_with_each_class_in_its_share():
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), MNIST_TEST))
    validation, test = split_places(labels)
    assert (len(validation), len(test)) == (7500, 2500)
    assert sorted([*validation, *test]) == list(range(10_000))
    assert np.abs(np.bincount(labels[test]) - np.array(MNIST_TEST) / 4).max() < 1


def test_smaller_test_sets_are_split_three_to_one_and_too_small_ones_are_refused():
    validation, test = split_places(np.zeros(40, dtype=np.int64))
    assert (len(validation), len(test)) == (30, 10)
    with pytest.raises(UsageError, match="too few test images"):
        split_places(np.zeros(3, dtype=np.int64))


def test_a_subset_has_every_class_in_its_share_and_is_always_the_same():
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 60))
    chosen = evenly_chosen(labels, 100)
    assert len(set(chosen)) == 100
    assert np.bincount(labels[chosen]).tolist() == [10] * 10
    assert np.array_equal(chosen, evenly_chosen(labels, 100))
    assert len(evenly_chosen(labels, 0)) == len(evenly_chosen(labels, 9999)) == 600


def test_digits_are_enlarged_three_times_with_a_border_of_two():
    images = made_images("digits", train=8, test=8)
    material = made_material(images, "cpu", side=28)
    assert material.train_images.shape == (8, 28, 28, 1)
    assert not material.train_images[:, :2].any()
    enlarged = material.train_images[:, 2:26, 2:26]
    torch.testing.assert_close(enlarged[:, 1::3, 1::3], torch.from_numpy(images.train_images))
    torch.testing.assert_close(enlarged[:, ::3, 2::3], torch.from_numpy(images.train_images))


def test_material_keeps_labels_with_their_images():
    images = made_images("mnist", train=50, test=40)
    material = made_material(images, "cpu", test_images=20)
    for picture, label in zip(material.judged_images, material.judged_labels.tolist(), strict=True):
        place = next(n for n, known in enumerate(images.test_images) if np.array_equal(known, picture.numpy()))
        assert images.test_labels[place] == label
    assert (material.validation, sum(material.class_sizes), material.classes) == (15, 5, 10)


def test_shifts_between_pixels_are_those_of_torchs_grid_sample():
    images = torch.randint(0, 256, (6, 32, 32, 3), dtype=torch.uint8, generator=generator(1))
    drawn = drawn_moves(KERAS, 6, 32, generator(2))
    drawn[:, 2] = torch.tensor([0, 1, 0, 1, 0, 1])
    ours = moved_images(KERAS, images, torch.arange(6), drawn)
    axis = torch.arange(32.0)
    rows, columns = axis[None, :] + drawn[:, :1], axis[None, :] + drawn[:, 1:2]
    grid = torch.stack(torch.broadcast_tensors(columns[:, None, :], rows[:, :, None]), -1) / 31 * 2 - 1
    theirs = torch.nn.functional.grid_sample(
        images.permute(0, 3, 1, 2).float(), grid, padding_mode="border", align_corners=True
    )
    theirs[1::2] = theirs[1::2].flip(3)
    torch.testing.assert_close(ours.permute(0, 3, 1, 2), theirs, atol=0.02, rtol=1e-4)


def test_crops_are_those_of_a_reflected_border():
    images = torch.randint(0, 256, (5, 32, 32, 3), dtype=torch.uint8, generator=generator(1))
    drawn = torch.tensor([[-4.0, 4, 0], [0, 0, 1], [3, -2, 1], [4, 4, 0], [-1, 0, 0]])
    ours = moved_images(CROP, images, torch.arange(5), drawn)
    padded = torch.nn.functional.pad(images.permute(0, 3, 1, 2).float(), (4, 4, 4, 4), mode="reflect")
    for number, (down, right, mirrored) in enumerate(drawn.int().tolist()):
        cut = padded[number, :, 4 + down : 36 + down, 4 + right : 36 + right]
        assert torch.equal(ours[number].permute(2, 0, 1), cut.flip(2) if mirrored else cut)


def test_moves_cover_their_range_evenly_and_mirror_every_second_image():
    drawn = drawn_moves(CROP, 20_000, 32, generator(4))
    shares = torch.stack([(drawn[:, :2] == shift).float().mean(0) for shift in range(-4, 5)])
    torch.testing.assert_close(shares, torch.full((9, 2), 1 / 9), atol=0.01, rtol=0)
    assert drawn[:, 2].mean().item() == pytest.approx(0.5, abs=0.015)
    smooth = drawn_moves(KERAS, 20_000, 32, generator(4))[:, :2]
    assert smooth.abs().max().item() == pytest.approx(3.2, abs=0.01)
    assert smooth.mean().item() == pytest.approx(0, abs=0.03)


def test_a_batch_without_moves_is_the_chosen_images_in_either_layout():
    images = torch.randint(0, 256, (9, 32, 32, 3), dtype=torch.uint8, generator=generator(1))
    chosen = torch.tensor([7, 0, 7])
    expected = images[chosen].permute(0, 3, 1, 2).float() / 255
    for channels_last in (False, True):
        batch = made_preparation("range", images, None, channels_last=channels_last).training_batch(
            images, chosen, None
        )
        torch.testing.assert_close(batch, expected)
        assert batch.is_contiguous(memory_format=torch.channels_last) is channels_last


def test_normalised_images_have_no_mean_image_and_unit_channels():
    images = torch.randint(0, 200, (500, 8, 8, 3), dtype=torch.uint8, generator=generator(1))
    less_mean = made_preparation("pixel-mean", images, None, channels_last=True).as_they_are(images)
    assert less_mean.mean(0).abs().max() < 1e-5
    assert less_mean.std().item() == pytest.approx((images.float() / 255).std().item(), rel=0.01)
    unit = made_preparation("channels", images, None, channels_last=True).as_they_are(images)
    torch.testing.assert_close(unit.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)
    assert unit.mean((0, 2, 3)).abs().max() < 1e-4


def test_the_real_cifar_stand_in_is_split_like_any_other(shared_data_folder):
    images = load_images("cifar10")
    material = made_material(images, "cpu", train_images=300, test_images=400)
    assert material.train_images.shape == (300, 32, 32, 3)
    assert material.validation == 300
    assert material.class_sizes == (10,) * 10
