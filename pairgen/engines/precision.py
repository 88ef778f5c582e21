"""In which precision a processor computes well. Knows no model."""

from __future__ import annotations


def cpu_likes_bfloat16() -> bool:
    """Whether the CPU has bfloat16 arithmetic; without it SmolLM2-135M is ten times slower than in float32."""
    import torch

    known = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(supported() for supported in known if supported)
