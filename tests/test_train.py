import torch

from pipelines.train import widen


def test_what_is_trained_of_a_bfloat16_model_is_kept_in_float32():
    model = torch.nn.ModuleList([torch.nn.Linear(2, 2, dtype=torch.bfloat16) for _ in range(2)])
    model[0].requires_grad_(False)
    widen(model)
    assert {p.dtype for p in model[0].parameters()} == {torch.bfloat16}
    assert {p.dtype for p in model[1].parameters()} == {torch.float32}
