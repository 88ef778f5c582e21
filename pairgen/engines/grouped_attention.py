"""Attention for CPUs: a decoding step reads grouped keys and values as they lie, and copies none for the heads.

transformers copies them wherever a mask is given, which is a third of a step of 64 rows of SmolLM2-135M.
"""

from __future__ import annotations

from typing import Any

NAME = "pairgen_grouped"


def register() -> str | None:
    """Make it known to transformers; the name to ask for, or None where this version cannot be taught."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError:
        return None
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **kwargs: Any
) -> tuple[Any, None]:
    """As `sdpa`; with one query token the heads of a group become the tokens of one head."""
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    rows, heads, tokens, width = query.shape
    groups = key.shape[1]
    if tokens != 1 or heads == groups or kwargs.get("dropout"):
        result: tuple[Any, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return result
    grouped = query.reshape(rows, groups, heads // groups, width)
    out = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return out.reshape(rows, 1, heads, out.shape[-1]), None
