"""The arithmetic of memory, and how a batch is split by it."""

import dataclasses

import pytest

from pairgen.errors import UsageProblem
from pipelines.train_memory import Batch, Load, Shape, expect, memory_line, plan_batch

LLAMA_8B = Shape(
    parameters=8_030_261_248, linear=2_621_440, hidden=4096, layers=32, intermediate=14_336, vocabulary=128_256,
    modules={"lm_head": 525_336_576, "embed_tokens": 525_336_576},
)  # fmt: skip
LORA = Load(weight_bytes=2, rank=16, saved=(), max_length=2048, sides=2, checkpointing=True)
GIB = 2**30


def test_an_adapter_on_an_8b_model_costs_its_weights_and_little_more():
    memory = expect(LLAMA_8B, LORA, 1)
    assert memory.weights == 2 * LLAMA_8B.parameters
    assert memory.trained == 16 * 16 * LLAMA_8B.linear
    assert 15 < memory.total / GIB < 24


def test_modules_trained_whole_cost_sixteen_bytes_a_parameter():
    saved = dataclasses.replace(LORA, saved=("lm_head", "embed_tokens"))
    more = expect(LLAMA_8B, saved, 1).trained - expect(LLAMA_8B, LORA, 1).trained
    assert more == 16 * 2 * 525_336_576


def test_all_weights_cost_sixteen_bytes_each():
    full = Load(4, 0, (), 2048, 2, True)
    memory = expect(LLAMA_8B, full, 1)
    assert memory.weights + memory.trained == 16 * LLAMA_8B.parameters


def test_activations_grow_with_rows_and_length_and_without_checkpointing():
    one = expect(LLAMA_8B, LORA, 1).activations
    assert expect(LLAMA_8B, LORA, 4).activations == 4 * one
    assert expect(LLAMA_8B, dataclasses.replace(LORA, max_length=4096), 1).activations == 2 * one
    assert expect(LLAMA_8B, dataclasses.replace(LORA, sides=1), 1).activations == one / 2
    assert expect(LLAMA_8B, dataclasses.replace(LORA, checkpointing=False), 1).activations > 10 * one


def test_logits_never_cost_all_tokens_times_the_vocabulary():
    assert expect(LLAMA_8B, LORA, 64).logits == expect(LLAMA_8B, LORA, 2).logits < 2 * GIB


def test_a_batch_takes_the_largest_share_that_fits_and_keeps_its_size():
    for room, fits in ((200 * GIB, 16), (19 * GIB, 1), (1, 1)):
        batch = plan_batch(16, 1, 0, LLAMA_8B, LORA, room)
        assert batch.per_device * batch.accumulation == 16
        assert batch.per_device == fits
    middle = plan_batch(16, 1, 0, LLAMA_8B, LORA, 40 * GIB)
    assert 1 < middle.per_device < 16
    assert expect(LLAMA_8B, LORA, middle.per_device).total < 40 * GIB


def test_a_batch_is_shared_by_devices():
    assert plan_batch(16, 4, 2, LLAMA_8B, LORA, 0) == Batch(2, 2, 4)
    assert plan_batch(8, 2, 0, None, LORA, 200 * GIB) == Batch(1, 4, 2)


def test_a_batch_that_cannot_be_split_names_what_can():
    with pytest.raises(UsageProblem, match="give a multiple of 3"):
        plan_batch(8, 3, 0, LLAMA_8B, LORA, GIB)
    with pytest.raises(UsageProblem, match="give one of 1, 2, 4, 8"):
        plan_batch(8, 1, 3, LLAMA_8B, LORA, GIB)


def test_the_expectation_is_one_line_with_its_parts():
    line = memory_line(expect(LLAMA_8B, LORA, 1), 24 * GIB, "a GPU")
    assert "weights 15.0" in line
    assert "of 24.0 GiB on a GPU" in line
