"""Who answers what strategies ask: the model that played, served again, or a judge. Reads the runs' configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairgen.engines import EngineOptions
from pairgen.errors import UsageProblem
from pairgen.records import content_id
from pairgen.store import CONFIG, MANIFEST, read_json
from pipelines.drafts import Answerer
from pipelines.plan import label_of

DREW = 0.7
"""The temperature at which a model is asked that played without chance."""
OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Answering:
    """What the user said about who answers; what is not said of the model is as in the run."""

    model: str = ""
    engine: str | None = None
    base_url: tuple[str, ...] = ()
    concurrency: int = 64
    max_model_len: int | None = None
    engine_arg: tuple[str, ...] = ()
    judge: str = ""
    judge_price: str = ""


def check_judge(said: Answering) -> Answerer:
    """The judge of `--judge MODEL[@URL]`. Raises UsageProblem where it is missing or cannot be reached."""
    found = re.fullmatch(r"(?P<model>[^\s@].*?)(?:@(?P<url>https?://\S+))?", said.judge)
    if found is None:
        raise UsageProblem(
            "corrected needs a judge: give --judge MODEL@http://HOST:PORT/v1, or --judge MODEL with OPENAI_BASE_URL or "
            "OPENAI_API_KEY set."
        )
    model, url = found["model"], found["url"] or os.environ.get("OPENAI_BASE_URL")
    if not url and not os.environ.get("OPENAI_API_KEY"):
        raise UsageProblem(
            f"--judge {model} names no server: write --judge {model}@http://HOST:PORT/v1, or set OPENAI_BASE_URL (and "
            "OPENAI_API_KEY where the server wants a key)."
        )
    options = EngineOptions(name="openai", model=model, base_urls=(url or OPENAI,), concurrency=said.concurrency)
    price = read_price(said.judge_price)
    return Answerer("judge", label_of(model), content_id("judge", model), options, price=price)


def read_price(text: str) -> tuple[float, float] | None:
    """`IN,OUT`, money for a million tokens; None where nothing is said."""
    if not text:
        return None
    try:
        into, out = (float(part) for part in text.split(","))
    except ValueError:
        into = out = -1.0
    if not (0 <= into < float("inf") and 0 <= out < float("inf")):
        raise UsageProblem(f"--judge-price {text}: give two prices for a million tokens, in and out, such as 0.15,0.6.")
    return into, out


def check_model(said: Answering, runs: Sequence[Path]) -> Answerer:
    """The model that played the runs, or the one that the user names. Raises UsageProblem with the fix."""
    played = [_played(run) for run in runs]
    config = played[0]
    names = sorted({str(entry["model"]) for entry in played})
    if not said.model and (len(names) > 1 or not names[0]):
        why = f"were played by several models ({', '.join(names)})" if len(names) > 1 else "do not say who played"
        raise UsageProblem(f"The model that played is to be asked, and the runs {why}: give --model, or one run alone.")
    model = said.model or names[0]
    own = not (said.model or said.engine or said.base_url)
    urls = said.base_url or tuple(config.get("base_url") or () if own or said.engine == "openai" else ())
    local = not urls and model.startswith(("/", ".", "~"))
    if local and not Path(model).expanduser().exists():
        what = f"--model {model} does not exist" if said.model else f"The run was played by {model}, which is not here"
        raise UsageProblem(f"{what}: give --model FOLDER with the same model, or --base-url of a server that has it.")
    same = model == config["model"]
    revision = config.get("revision") if same else None
    kwargs = tuple(config.get("chat_template_kwargs") or ())
    options = EngineOptions(
        name=said.engine or (config.get("engine") if own else None) or "auto", model=model, revision=revision,
        base_urls=urls, concurrency=said.concurrency, max_model_len=said.max_model_len or config.get("max_model_len"),
        dtype=config.get("dtype") or "auto", timeout_s=config.get("timeout") or 600.0,
        engine_args=said.engine_arg or tuple(config.get("engine_arg") or () if own else ()),
        chat_template_kwargs=kwargs, seed=config.get("seed") or 0,
    )  # fmt: skip
    drawn = float(config.get("temperature") or 0.0)
    top_p = float(config.get("top_p") or 1.0)
    identity = content_id("model", model, revision, kwargs)
    return Answerer("model", label_of(model), identity, options, drawn if drawn > 0 else DREW, top_p)


def public_name(model: str) -> str:
    """A model's name without the machine's folders."""
    local = model.startswith(("/", ".", "~")) or (model and Path(model).exists())
    return label_of(model) if local else model


def _played(run: Path) -> dict[str, Any]:
    """The configuration of a run; `model` is what its server called it where the user did not name it, or empty."""
    saved, told = (read_json(run / name) if (run / name).exists() else {} for name in (CONFIG, MANIFEST))
    config = saved.get("config") or {}
    return {**config, "model": config.get("model") or told.get("model") or ""}
