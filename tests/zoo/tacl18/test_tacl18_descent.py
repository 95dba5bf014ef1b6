"""Gradient descent of SM-CNN: torch's own, in fewer calls."""

import pytest

torch = pytest.importorskip("torch")

from isorun.zoo.studies.tacl18.training.loop import GradientDescent  # noqa: E402 - needs torch


def drawn_parameters():
    draws = torch.Generator().manual_seed(3)
    return [torch.randn(*shape, generator=draws, requires_grad=True) for shape in ((7, 5, 3), (11,), (4, 11))]


def a_loss(parameters, step):
    return sum((parameter * (step + 0.3)).sin().sum() for parameter in parameters)


def test_the_weights_are_those_of_torchs_own_descent_bit_for_bit():
    ours, theirs = drawn_parameters(), drawn_parameters()
    descent = GradientDescent(ours, 0.037, 1e-3)
    optimizer = torch.optim.SGD(theirs, lr=0.037, weight_decay=1e-3)
    for step in range(5):
        a_loss(ours, step).backward()
        descent.step()
        optimizer.zero_grad()
        a_loss(theirs, step).backward()
        optimizer.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], drawn_parameters()[0])


def test_no_gradient_is_left_for_the_next_step():
    parameters = drawn_parameters()
    a_loss(parameters, 0).backward()
    GradientDescent(parameters, 0.1, 0.0).step()
    assert all(parameter.grad is None for parameter in parameters)
