"""A model's tokenizer and chat template: messages to token ids, token ids to text, and which ids end a turn.

Knows no engine; the engines that hold a model themselves share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairgen.engines import Request, Sampling
from pairgen.engines.prompts import Pieces, find_pieces
from pairgen.errors import EngineError, RequestError
from pairgen.records import Messages

LONG = 1_000  # characters to encode, from which on that is done beside the event loop


@dataclass(frozen=True)
class Chat:
    """A tokenizer with its chat template. `end_ids` are the tokens after which the model's turn is over.

    `pieces` is None where a text must be encoded as a whole.
    """

    model: str
    tokenizer: Any
    end_ids: tuple[int, ...]
    template_kwargs: Mapping[str, Any]
    pieces: Pieces | None = None

    async def to_ids(self, request: Request) -> list[int]:
        """The prompt as token ids; raises RequestError where the template or the tokenizer refuses the messages."""
        if self.pieces is None:
            if sum(len(m.content) for m in request.messages) < LONG:
                return self.encode(request.messages, go_on=request.go_on)
            return await asyncio.to_thread(self.encode, request.messages, go_on=request.go_on)
        with self._refusing():
            pieces = self.pieces.cut(self._text(request.messages, request.go_on))
            if self.pieces.new(pieces) < LONG:
                return self.pieces.encode(pieces)
            return await asyncio.to_thread(self.pieces.encode, pieces, aside=True)

    def encode(self, messages: Messages, *, go_on: bool = False) -> list[int]:
        """The same for a tokenizer of any kind, and every time anew."""
        with self._refusing():
            if go_on:
                ids = self.tokenizer(self._text(messages, go_on), add_special_tokens=False)["input_ids"]
            else:
                ids = self._render(messages, tokenize=True)
        return list(ids)

    def _text(self, messages: Messages, go_on: bool) -> str:
        """With `go_on`, what was asked and, as the reply's beginning, the last message as it stands.

        The template itself is not asked to continue a message: it may strip it, or take thinking text out of it.
        """
        asked, begun = (messages[:-1], messages[-1].content) if go_on else (messages, "")
        return str(self._render(asked, tokenize=False)) + begun

    def _render(self, messages: Messages, *, tokenize: bool) -> Any:
        return self.tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.content} for m in messages],
            add_generation_prompt=True, tokenize=tokenize, return_dict=False, **self.template_kwargs,
        )  # fmt: skip

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # templates raise what they like: jinja2, TypeError, UnicodeEncodeError, …
            raise RequestError(
                "request_failed", f"the chat template of {self.model} refused the messages: {error}"
            ) from error

    def ends_of(self, sampling: Sampling) -> tuple[int, ...]:
        """The ids that end a reply, and that none below `min_tokens` may hold.

        Where a model is kept from ending its turn these are all special tokens: it would open the next turn instead.
        """
        return self._all_ends if sampling.min_tokens else self.end_ids

    @functools.cached_property
    def _all_ends(self) -> tuple[int, ...]:
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        special = (i for i, token in added.items() if token.special)
        return tuple(dict.fromkeys((*self.end_ids, *self.tokenizer.all_special_ids, *special)))

    def decode(self, ids: Sequence[int]) -> str:
        """The text as the model said it: no special tokens, and nothing tidied."""
        text = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def without_end(self, ids: Sequence[int], ends: Collection[int] = ()) -> tuple[int, ...]:
        """The ids of a reply without the token that ended it, one of `ends` (by default `end_ids`)."""
        return tuple(ids[:-1]) if ids and ids[-1] in (ends or self.end_ids) else tuple(ids)


def load_chat(
    model: str,
    revision: str | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    *,
    trust_remote_code: bool = False,
) -> Chat:
    """The chat of a model folder or a Hub name. Raises EngineError with the fix."""
    check_folder(model)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise cannot_load(model, error) from error
    if not getattr(tokenizer, "chat_template", None):
        raise EngineError(
            f"{model} has no chat template: take an instruction-tuned model, or put the template of its base model "
            f"into the model folder as chat_template.jinja."
        )
    kwargs = dict(template_kwargs or {})
    ends = [tokenizer.eos_token_id, *_configured_ends(model, revision, trust_remote_code)]
    ends += template_end(tokenizer, kwargs)
    return Chat(
        model, tokenizer, tuple(dict.fromkeys(e for e in ends if e is not None)), kwargs, find_pieces(tokenizer)
    )


def check_folder(model: str) -> None:
    """Raises EngineError when `model` is meant as a folder and is none, or holds no whole model."""
    path = Path(model).expanduser()
    if path.is_dir():
        if (path / "config.json").exists():
            return
        if (path / "adapter_config.json").exists():
            raise EngineError(
                f"{model} holds an adapter, not a model: merge it into its base model first (peft: "
                f"AutoPeftModelForCausalLM.from_pretrained({model!r}).merge_and_unload().save_pretrained(FOLDER))."
            )
        raise EngineError(f"The folder {model} holds no model (no config.json): give the folder that does.")
    if path.exists():
        raise EngineError(f"{model} is a file: give the folder that holds config.json and the weights.")
    if model.startswith(("/", ".", "~")) or model.count("/") > 1:
        raise EngineError(f"There is no model folder {model}: check the path, or give a Hub name such as owner/model.")


def cannot_load(model: str, error: BaseException) -> EngineError:
    """What went wrong when `model` was to be loaded, as one sentence with the fix."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    names = {type(e).__name__ for e in chain}
    said = " ".join(str(e) for e in chain)
    if "GatedRepoError" in names or "gated repo" in said:
        return EngineError(
            f"{model} is gated: accept its terms at https://huggingface.co/{model}, then log in with `hf auth login`."
        )
    if "RevisionNotFoundError" in names:
        return EngineError(f"{model} has no such revision: give --revision a branch, tag or commit that it has.")
    if names & {"RepositoryNotFoundError", "HFValidationError"} or "not a valid model identifier" in said:
        return EngineError(
            f"There is no model {model}, neither as a folder here nor on the Hub: check the name, and log in with "
            f"`hf auth login` if it is private."
        )
    if names & _UNREACHABLE or "couldn't connect" in said.lower() or "offline mode" in said.lower():
        return EngineError(
            f"{model} is not in the local cache and the Hub cannot be reached: go online once (`hf download {model}`), "
            f"or give the folder of a downloaded model."
        )
    lines = str(error).strip().splitlines()
    return EngineError(
        f"{model} cannot be loaded ({type(error).__name__}: {lines[0] if lines else 'no message'}): check that the "
        f"folder is complete and that transformers is recent enough for this model."
    )


_UNREACHABLE = {
    "ConnectError", "ConnectTimeout", "ConnectionError", "LocalEntryNotFoundError", "MaxRetryError",
    "OfflineModeIsEnabled", "ProxyError", "ReadTimeout", "SSLError",
}  # fmt: skip


def context_of(config: Any) -> int | None:
    """The context length that a model's configuration states, in tokens."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        length = getattr(text, name, None)
        if isinstance(length, int) and length > 0:
            return length
    return None


def check_start(model: str, context: int | None, wanted: int | None, max_tokens: int) -> None:
    """Raises EngineError when the model cannot have the context that is asked for, or no reply could ever fit."""
    if context is not None and wanted is not None and wanted > context:
        raise EngineError(
            f"--max-model-len {wanted} is more than the {context} tokens that {model} was made for: "
            f"give at most {context}."
        )
    limit = wanted if wanted is not None else context
    if limit is not None and max_tokens >= limit:
        raise EngineError(
            f"--max-tokens {max_tokens} leaves no room for a prompt in the context of {limit} tokens of {model}: "
            f"lower --max-tokens" + (", or raise --max-model-len." if wanted is not None else ".")
        )


def check_room(model: str, prompt_tokens: int, sampling: Sampling, limit: int | None) -> None:
    """Raises RequestError `context_exceeded` when prompt and reply together might not fit into the context."""
    need = prompt_tokens + sampling.max_tokens
    if limit is not None and need > limit:
        raise RequestError(
            "context_exceeded",
            f"a prompt of {prompt_tokens} tokens and up to {sampling.max_tokens} new tokens are {need}, {need - limit} "
            f"more than the context of {limit} tokens of {model}",
        )


def _configured_ends(model: str, revision: str | None, trust_remote_code: bool) -> list[int]:
    from transformers import AutoConfig, GenerationConfig

    try:
        found = GenerationConfig.from_pretrained(model, revision=revision).eos_token_id
    except Exception:  # a model need not have a generation_config.json
        found = None
    if found is None:
        try:
            config = AutoConfig.from_pretrained(model, revision=revision, trust_remote_code=trust_remote_code)
        except Exception as error:
            raise cannot_load(model, error) from error
        text = config.get_text_config() if hasattr(config, "get_text_config") else config
        found = getattr(text, "eos_token_id", None)
    return [found] if isinstance(found, int) else list(found or [])


def template_end(tokenizer: Any, kwargs: Mapping[str, Any]) -> list[int]:
    """The special token that the template puts after a reply: a merged model may fail to name it as its EOS."""
    mark = "reply"
    turns = [{"role": "user", "content": "question"}, {"role": "assistant", "content": mark}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=False, **kwargs)
        after = text[text.rindex(mark) + len(mark) :].lstrip()
        ids = tokenizer(after, add_special_tokens=False)["input_ids"][:1]
    except Exception:  # the template wants other turns than these: the configured ends must do
        return []
    special = set(tokenizer.all_special_ids) | set(getattr(tokenizer, "added_tokens_decoder", {}))
    return [i for i in ids if i in special]
