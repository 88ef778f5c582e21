"""Merge: an adapter and its base model become a normal checkpoint that ends its turns.

What merging leaves wrong, and is put right here: tied embeddings of which one half was trained, and a
generation_config.json that does not name the token that ends an assistant's turn.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.engines.chat import cannot_load, check_folder, load_chat, template_end
from pairgen.errors import PairgenError, UsageProblem

ADAPTER_CONFIG, GENERATION = "adapter_config.json", "generation_config.json"
QUESTION = [{"role": "user", "content": "Say hello in one short sentence."}]
LONGEST_TURN = 256


class Merged(NamedTuple):
    """A finished checkpoint. `stops` says whether one turn, generated to see, ended at `end_of_turn`."""

    out: Path
    base: str
    end_of_turn: str
    eos_token_ids: tuple[int, ...]
    untied: bool
    stops: bool


def merge(
    adapter: Path,
    out: Path,
    *,
    model: str = "",
    revision: str | None = None,
    turn: Sequence[dict[str, str]] = QUESTION,
    overwrite: bool = False,
) -> Merged:
    """Merge the adapter in the folder `adapter` into its base model (or `model`) as the checkpoint `out`.

    `turn` are the messages that the check answers. Raises UsageProblem and PairgenError with the fix.
    """
    base, pinned = _base_of(adapter)
    base, revision = (model or base), (revision or pinned)
    _check_out(out, adapter, base, overwrite=overwrite)
    check_folder(base)
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    try:
        plain = AutoModelForCausalLM.from_pretrained(base, revision=revision, dtype="auto")
    except Exception as error:
        raise cannot_load(base, error) from error
    tied = _tied(plain)
    try:
        merged = PeftModel.from_pretrained(plain, str(adapter)).merge_and_unload(safe_merge=True)
    except Exception as error:  # a base of other sizes, weights that are no numbers, a torn file: peft's own words
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PairgenError(
            f"{adapter} cannot be merged into {base} ({first}): give the adapter's own base with --model, or train "
            "again."
        ) from None
    untied = tied and _untie(merged)
    return finish_checkpoint(merged, base, revision, out, turn=turn, untied=untied)


def finish_checkpoint(
    model: Any, base: str, revision: str | None, out: Path, *, turn: Sequence[dict[str, str]], untied: bool = False
) -> Merged:
    """Write `model` to `out` with tokenizer, chat template and generation config, then see whether it ends a turn.

    The folder is made beside its place and renamed: all of the checkpoint is there, or nothing.
    """
    chat = load_chat(base, revision)
    work = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(work, ignore_errors=True)
    try:
        model.generation_config = type(model.generation_config)()  # a base's own may not pass transformers' checks
        model.save_pretrained(work)
        chat.tokenizer.save_pretrained(work)
        ends = template_end(chat.tokenizer, {})
        eos = tuple(dict.fromkeys([*ends, *chat.end_ids]))
        _write_generation(work, base, revision, eos, chat.tokenizer.pad_token_id)
        shutil.rmtree(out, ignore_errors=True)
        work.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    name = chat.tokenizer.convert_ids_to_tokens(ends[0]) if ends else ""
    return Merged(out, base, name, eos, untied, _stops(out, ends or list(eos), turn))


def lines_of(merged: Merged) -> list[str]:
    """What is said of a merged checkpoint."""
    lines = [f"merged: {merged.out}"]
    if merged.untied:
        lines.append("its input and output embeddings were tied and are two now, since one was trained")
    if merged.stops:
        return [*lines, f"checked: a turn ended at {merged.end_of_turn or 'its end token'}"]
    return [
        *lines,
        f"warning: a turn did not end within {LONGEST_TURN} tokens at {merged.end_of_turn or 'an end token'}, which "
        "generation_config.json names: look at what the model says before you play with it",
    ]


def _base_of(adapter: Path) -> tuple[str, str | None]:
    path = adapter / ADAPTER_CONFIG
    if not path.exists():
        raise UsageProblem(
            f"{adapter} holds no adapter ({ADAPTER_CONFIG} is missing): give the adapter folder that training wrote, "
            "such as OUT/adapter."
        )
    config = store.read_json(path)
    return str(config.get("base_model_name_or_path") or ""), config.get("revision")


def _check_out(out: Path, adapter: Path, base: str, *, overwrite: bool) -> None:
    if not base:
        raise UsageProblem(f"{adapter} does not name its base model: give it with --model.")
    if out.resolve() in (adapter.resolve(), Path(base).resolve()):
        raise UsageProblem(f"--out {out} is the adapter or its base model: give another folder.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not overwrite:
            raise UsageProblem(
                f"{out} is not empty: say --overwrite to replace the checkpoint there, or another --out."
            )
        if not (out / "config.json").exists():
            raise UsageProblem(f"{out} holds no checkpoint, so --overwrite leaves it alone: use another --out.")


def _tied(model: Any) -> bool:
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    return head is not None and head.weight is table.weight


def _untie(model: Any) -> bool:
    """Where both embeddings were one and are not any more, say so in the config: one would be loaded as both."""
    import torch

    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    if torch.equal(head.weight, table.weight):
        return False
    for one in (model.config, model.config.get_text_config()):
        one.tie_word_embeddings = False
    return True


def _write_generation(folder: Path, base: str, revision: str | None, eos: Sequence[int], pad: int | None) -> None:
    """The base's generation config, what it says of sampling included, with all tokens that end a turn."""
    from transformers.utils import cached_file

    found = cached_file(base, GENERATION, revision=revision, _raise_exceptions_for_missing_entries=False)
    known = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    known["eos_token_id"] = eos[0] if len(eos) == 1 else list(eos)
    if known.get("pad_token_id") is None and pad is not None:
        known["pad_token_id"] = pad
    store.write_json(folder / GENERATION, known)


def _stops(folder: Path, ends: Sequence[int], turn: Sequence[dict[str, str]]) -> bool:
    """Whether the checkpoint, loaded as anybody would, ends its answer to `turn` at one of `ends`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").to(device)
    asked = tokenizer.apply_chat_template(
        list(turn), add_generation_prompt=True, return_tensors="pt", return_dict=True
    ).to(device)
    with torch.inference_mode():
        said = model.generate(**asked, max_new_tokens=LONGEST_TURN, do_sample=False)
    return int(said[0, -1]) in ends
