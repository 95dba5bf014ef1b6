"""Digests see every bit, name, type, shape and position."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker.arrays import digest

ARRAYS = st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4), min_size=2, max_size=4)


@given(ARRAYS, st.data())
def test_a_changed_bit_anywhere_changes_the_digest(rows, data):
    arrays = [np.array(row, dtype=np.float32) for row in rows]
    before = digest(arrays)
    which = data.draw(st.integers(0, len(arrays) - 1))
    at = data.draw(st.integers(0, arrays[which].nbytes * 8 - 1))
    arrays[which].view(np.uint8)[at // 8] ^= 1 << (at % 8)
    assert digest(arrays) != before


@given(ARRAYS)
def test_swapped_arrays_have_another_digest(rows):
    arrays = [np.array(row, dtype=np.float32) for row in rows]
    swapped = [arrays[1], arrays[0], *arrays[2:]]
    same = arrays[0].shape == arrays[1].shape and arrays[0].tobytes() == arrays[1].tobytes()
    assert (digest(arrays) == digest(swapped)) == same


def test_equal_pairs_do_not_cancel():
    pair = [np.ones(3), np.ones(3)]
    assert digest(pair) != digest([np.zeros(3), np.zeros(3)])
    assert digest(pair) != digest([])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros(4, np.float32), np.zeros(4, np.int32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        ({"a": np.zeros(2)}, {"b": np.zeros(2)}),
        ([np.zeros(2), np.zeros(2)], [np.zeros(4)]),
        ([[], []], [[]]),
        (np.array(0.0), np.array(-0.0)),
        (torch.zeros(4, dtype=torch.float16), torch.zeros(4, dtype=torch.bfloat16)),
        ({"a": 1}, {"a": True}),
        (None, []),
    ],
)
def test_names_types_shapes_and_structure_count(first, second):
    assert digest(first) != digest(second)


def test_a_module_its_state_and_a_copy_have_the_same_digest():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    copy = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    copy.load_state_dict(model.state_dict())
    assert digest(model) == digest(model.state_dict()) == digest(copy)
    copy[1].running_mean += 1
    assert digest(copy) != digest(model)


def test_views_and_transposes_are_digested_by_content():
    base = torch.arange(12.0).reshape(3, 4)
    assert digest(base.t()) == digest(base.t().contiguous())
    array = np.arange(12.0).reshape(3, 4)
    assert digest(array.T) == digest(np.ascontiguousarray(array.T))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.complex64, torch.float64, torch.uint8])
def test_every_dense_type_has_a_digest_and_so_have_empty_and_scalar_tensors(dtype):
    tensors = [torch.ones(3).to(dtype), torch.ones(()).to(dtype), torch.ones((0, 2)).to(dtype)]
    assert len({digest(tensor) for tensor in tensors}) == 3


def test_a_keras_like_model_is_digested_by_its_weights():
    class Model:
        def get_weights(self):
            return [np.ones(2), np.zeros(1)]

    assert digest(Model()) == digest([np.ones(2), np.zeros(1)])


def test_the_digest_is_sha256_over_framed_name_type_shape_and_bytes():
    array = np.array([1, 2], dtype=np.int16)
    expected = hashlib.sha256(b"0:" + b"5:int16" + b"4:(2,)" + array.tobytes()).hexdigest()
    assert digest(array) == expected


@pytest.mark.parametrize("bad", [object(), np.array([object()]), torch.eye(2).to_sparse(), {"a": [object()]}])
def test_something_whose_bits_cannot_be_seen_is_refused(bad):
    with pytest.raises(TypeError):
        digest(bad)


def test_a_tensor_without_memory_is_refused_and_not_read():
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    for tensor in (freed, torch._efficientzerotensor(3)):
        with pytest.raises(TypeError, match="no memory of its own"):
            digest({"weight": tensor})


class Scaled(torch.Tensor):
    """As libraries keep quantized weights: a tensor without memory, made of others."""

    @staticmethod
    def __new__(cls, numbers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=torch.float32)

    def __init__(self, numbers, scale):
        self.numbers, self.scale = numbers, scale

    def __tensor_flatten__(self):
        return ["numbers", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return cls(args[0].numbers, args[0].scale)


def test_a_tensor_that_is_made_of_others_is_digested_by_these():
    numbers, scale = torch.arange(6).reshape(2, 3), torch.ones(1)
    made = digest(Scaled(numbers, scale))
    assert made == digest(torch.nn.Parameter(Scaled(numbers.clone(), scale.clone())))
    assert made != digest(Scaled(numbers + 1, scale))
    assert made != digest(Scaled(numbers, scale + 1))
    assert made != digest(torch.zeros(2, 3))


def test_a_variable_without_values_yet_is_refused():
    class Variable:
        """TensorFlow's are empty arrays to NumPy until the function that made them has run."""

        shape, dtype = (2, 3), "float32"

        def __array__(self, dtype=None, copy=None):
            return np.empty(0, dtype=np.float32)

    with pytest.raises(TypeError, match="has no values yet"):
        digest([Variable()])
