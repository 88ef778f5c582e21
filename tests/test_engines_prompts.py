"""A prompt put together from remembered pieces has exactly the ids that encoding it as a whole gives."""

import asyncio
import functools
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairgen.engines import Request, Sampling
from pairgen.engines.chat import LONG, Chat
from pairgen.engines.prompts import Pieces, find_pieces
from pairgen.errors import RequestError
from pairgen.records import Message

pytest.importorskip("transformers")
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    # as Llama 2's: nothing but text around what the user says
    "inst": "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token }}[INST] {{ m.content.strip() }} [/INST]"
    "{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}",
    "headers": "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}<|start_header_id|>assistant<|end_header_id|>\n\n",
    # as Phi 3's, whose tokens take the whitespace behind them
    "stripping": "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}<|assistant|>\n"
    "{# <|user|> #}",
    # as Qwen 3's: earlier turns are told without their thinking
    "thinking": "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if '</think>' in m.content and not loop.last %}"
    "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "no marks": "{% for m in messages %}### {{ m.role }}: {{ m.content }}\n{% endfor %}### assistant:",
}
MARKS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
ADDED = [
    *(AddedToken(m, special=True, normalized=False) for m in MARKS),
    *(AddedToken(f"<|{m}|>", special=True, normalized=False, rstrip=True) for m in ("user", "assistant", "end")),
    *(AddedToken(m, special=False, normalized=False) for m in ("<think>", "</think>")),
    AddedToken("<mask>", special=True, normalized=False, lstrip=True),
    AddedToken("<both>", special=True, normalized=False, lstrip=True, rstrip=True),
    AddedToken("lone", special=False, normalized=False, single_word=True),
    AddedToken("Yes", special=False, normalized=True),
    AddedToken("\n\n", special=False, normalized=False),
    AddedToken(" room", special=False, normalized=True, lstrip=True, single_word=True),
]
CORPUS = [
    "Describe the room: north of the garden is a chair, <tag> 12 | 345.",
    "é Ünï 你好 世界 שלום مرحبا",
    "a lone yes",
] * 3
UNIGRAMS = sorted({piece for line in CORPUS for word in line.split() for piece in ("▁" + word, word[:2], *word, "▁")})
SPACED = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
SPLIT = pre_tokenizers.Split(Regex(r"\p{N}{1,3}| ?\p{L}+|\s*[\r\n]+|\s+(?!\S)|\s+| ?[^\s\p{L}\p{N}]+"), "isolated")
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def metaspace(scheme):
    return pre_tokenizers.Metaspace(prepend_scheme=scheme)


KINDS = {
    "bytes": (models.BPE(), None, pre_tokenizers.Sequence([SPLIT, BYTES])),
    "bytes, composed": (models.BPE(), normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "metaspace first": (models.BPE(unk_token="<unk>", fuse_unk=True), None, metaspace("first")),
    "metaspace always": (models.BPE(unk_token="<unk>", fuse_unk=True), None, metaspace("always")),
    "prepend": (models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True), SPACED, None),
    "unigram": (
        models.Unigram([("<unk>", 0.0), *((piece, -float(len(piece) % 3)) for piece in UNIGRAMS)], 0),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]),
        metaspace("always"),
    ),
    "wordpiece": (
        models.WordPiece(unk_token="<unk>"), normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(),
    ),
}  # fmt: skip


@functools.cache
def trained(kind):
    """A small tokenizer of a kind, trained on a few words, with all the added tokens; as JSON."""
    model, normalizer, pre_tokenizer = KINDS[kind]
    backend = Tokenizer(model)
    if normalizer:
        backend.normalizer = normalizer
    if pre_tokenizer:
        backend.pre_tokenizer = pre_tokenizer
    if kind != "unigram":
        trainer = model.get_trainer()
        trainer.special_tokens, trainer.vocab_size, trainer.show_progress = ["<unk>"], 400, False
        if "bytes" in kind:
            trainer.initial_alphabet = pre_tokenizers.ByteLevel.alphabet()
        backend.train_from_iterator(CORPUS, trainer)
    backend.add_tokens(ADDED)
    ends = [(m, backend.token_to_id(m)) for m in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ends)
    return backend.to_str()


@pytest.fixture(scope="module")
def chat_of():
    """A chat for a kind of tokenizer and a template; what one test taught it the next may use."""
    made = {}

    def chat(kind, template):
        if (kind, template) not in made:
            tokenizer = PreTrainedTokenizerFast(
                tokenizer_object=Tokenizer.from_str(trained(kind)),
                bos_token="<s>",
                eos_token="</s>",
                chat_template=TEMPLATES[template],
            )
            made[kind, template] = Chat("m", tokenizer, (), {}, find_pieces(tokenizer))
        return made[kind, template]

    return chat


def to_ids(chat, messages, go_on=False):
    return asyncio.run(chat.to_ids(Request(messages, Sampling(), "episode", go_on=go_on)))


def dialogue(contents):
    return tuple(Message(role, text) for role, text in zip(itertools.cycle(["user", "assistant"]), contents))


TRICKY = [
    *(token.content for token in ADDED), "<|im", "_start|>", "<", ">", "<|", "|>", "s>", "<unk>", "[INST]", "▁", " ▁",
    " ", "  ", "\n", "\t", "\u00a0", "\u3000", "\u2028", "\x1c", "\x85", "\u200b", "\u0301", "e\u0301", "\u0338",
    "\u0600", "\u202e", "\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f", "你好", "שלום", "مرحبا", "가", "ﬁ", "ΣΑΣ",
    "İ", "room", "Yes", "yes", "lone", "Describe the room", "12345", "'s", "###",
]  # fmt: skip
text = st.lists(st.sampled_from(TRICKY) | st.text(max_size=4), max_size=8).map("".join)
dialogues = st.lists(text, min_size=1, max_size=5).map(dialogue)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_dialogue_that_grows_has_the_ids_of_its_whole_text_at_every_turn(chat_of, kind, template):
    chat = chat_of(kind, template)

    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(dialogues, text)
    def check(messages, begun):
        for end in range(1, len(messages) + 1):
            assert to_ids(chat, messages[:end]) == chat.encode(messages[:end])
        begun = (*messages, Message("assistant", begun))
        assert to_ids(chat, begun, go_on=True) == chat.encode(begun, go_on=True)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_has_the_ids_of_its_pieces(chat_of, kind):
    """With every mark of every template at once."""
    chat = chat_of(kind, "chatml")
    tokenizer = chat.tokenizer
    tokenizer.chat_template, kept = "".join(TEMPLATES.values()), tokenizer.chat_template
    pieces = find_pieces(tokenizer)
    tokenizer.chat_template = kept

    @settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(text, max_size=4).map("".join))
    def check(whole):
        ids = tokenizer(whole, add_special_tokens=False)["input_ids"]
        assert "".join(pieces.cut(whole)) == whole
        assert pieces.encode(pieces.cut(whole)) == ids
        assert Pieces(tokenizer.backend_tokenizer, MARKS).encode(pieces.cut(whole), aside=True) == ids

    check()


@pytest.mark.parametrize(
    ("kind", "template"),
    [(k, t) for k in KINDS for t in TEMPLATES if t != "no marks"],
)
def test_only_what_is_new_is_encoded(chat_of, kind, template):
    chat = chat_of(kind, template)
    messages = dialogue([f"{i}: the garden is north of the room" for i in range(7)])
    to_ids(chat, messages[:5])
    told = chat.pieces.cut(chat._text(messages, False))
    # Llama 2's question is not marked off from its answer
    most = sum(len(m.content) for m in messages[4 if template == "inst" else 5 :]) + 60
    assert 0 < chat.pieces.new(told) <= most < sum(map(len, told)) / 2
    to_ids(chat, messages)
    assert chat.pieces.new(told) == 0


def test_a_template_without_marks_is_encoded_as_a_whole(chat_of):
    chat = chat_of("bytes", "no marks")
    text = chat._text(dialogue(["a", "b", "c"]), False)
    assert chat.pieces is None or chat.pieces.cut(text) == [text]


def test_a_real_tokenizer(smollm2):
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    chat = Chat("m", tokenizer, (), {}, find_pieces(tokenizer))
    assert chat.pieces is not None

    @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(dialogues)
    def check(messages):
        for end in range(1, len(messages) + 1):
            assert to_ids(chat, messages[:end]) == chat.encode(messages[:end])

    check()


def test_long_prompts_of_many_episodes_at_once(chat_of):
    chat = chat_of("bytes", "chatml")
    asked = [dialogue([f"{i} 你好 <|im_end|>\n" * LONG, "yes", "and?"][:turns]) for i in range(8) for turns in (1, 3)]

    async def all_of_them():
        return await asyncio.gather(*(chat.to_ids(Request(m, Sampling(), "")) for m in asked))

    assert asyncio.run(all_of_them()) == [chat.encode(m) for m in asked]


def test_memory_stays_bounded_and_what_is_in_use_stays(chat_of):
    chat = chat_of("bytes", "chatml")
    pieces = Pieces(chat.tokenizer.backend_tokenizer, MARKS, room=20_000)
    for i in range(1_000):
        pieces.encode(pieces.cut("<|im_start|>the rules<|im_end|>"))
        assert pieces.new(["<|im_start|>the rules"]) == 0
        pieces.encode(pieces.cut(f"<|im_start|>{i} is new<|im_end|>"))
        assert pieces._bytes < 21_000
    assert 50 < len(pieces._young) + len(pieces._old) < 200
    assert pieces.new(["<|im_start|>5 is new"]) > 0


@pytest.mark.parametrize("length", [1, LONG])
def test_half_a_surrogate_pair_is_refused(chat_of, length):
    with pytest.raises(RequestError, match="refused the messages"):
        to_ids(chat_of("bytes", "chatml"), dialogue(["\ud800" * length]))
