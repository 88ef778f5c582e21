"""The rule-made strategies: what each promises, for every kind of move, and that nothing gives a filler away."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import inspect
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import corruptions
from corruptions import STRATEGIES, bank, format_break, gamemaster, looping, shape, voice
from pairgen.errors import UsageProblem
from pairgen.records import Message, Move
from pairgen.strategy import Corruption, Decline, Draft, Material, parse_choice

FOLDER = Path(corruptions.__file__).parent
BANKS = sorted(path.name for path in FOLDER.glob("*.json"))
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "[INST]", "</s>", "<s>", "<start_of_turn>", "<eos>")

RULES = (
    "You are playing a game with another player. Only reply with one move. You must not add any other text. "
    "Always keep to the format of the examples."
)
GERMAN = (
    "Du spielst ein Spiel mit einem anderen Spieler. Antworte nur mit einem Wort. Füge keinen weiteren Text hinzu. "
    "Beginne deine Antwort immer mit dem Wort TIPP und einem Doppelpunkt. Das gesuchte Wort ist ein Tier."
)
GRID = "X ▢ ▢\n▢ X ▢\n▢ ▢ X"
GRAPH = '{"action":"GO: west", "graph": {"nodes":["Hall", "Attic"],"edges":{"north":[("Hall", "Attic")],"south":[]}}}'
FAMILIES = {
    "guess": ("GUESS: river", "GUESS: harbor", "GUESS: garden, fence", "GUESS: needle"),
    "clue": (
        "CLUE: water\nTARGETS: river, harbor",
        "CLUE: garden\nTARGETS: fence, gate",
        "CLUE: metal\nTARGETS: needle",
    ),
    "question": ("QUESTION: Is it a kind of fruit?", "QUESTION: Can you eat it?", "GUESS: apple"),
    "step": ("> go kitchen", "> take plate\n\nNext actions: go hall, put plate on table", "> open cupboard"),
    "explained": (
        "explanation: I start with a common word.\nguess: crane",
        "explanation: The letter a is in the right place, so I keep it there.\nguess: plant",
    ),
    "go": ("GO: north", "GO: south", "DONE", "GO: west"),
    "grid": (GRID, "▢ ▢ ▢\n▢ ▢ ▢\n▢ ▢ ▢", "X X X\n▢ ▢ ▢\nX X X"),
    "graph": (GRAPH, '{"action":"GO: east", "graph": {"nodes":["Hall"],"edges":{"north":[],"south":[]}}}'),
    "expression": ("Expression: The grid with two full rows.", "Expression: The grid that has a cross in the middle."),
    "prose": ("I think we should meet at noon.", "Let us meet at the station at ten."),
}
NASTY = (
    "", " ", "\n\t ", "x", "OK", "...", "?", "42", "🙂", "🏳️‍🌈👩‍👩‍👧", "答案：苹果", "正解は「りんご」です。",
    "الإجابة: نعم، هذا صحيح.", "תשובה: כן", "e\u0301te\u0301", "a" * 10_000, "word " * 2_000, "one\ntwo\n\nthree",
    "{}", "{ }", "[]", '{"a": 1}', '{"a": {"b": "c"', GRAPH, "CLUE:", "CLUE: ", ": x", "> ", ">", "a:b:c",
    "{answer} {noun} {STATE}", "%s %d {0}", "\\boxed{x}", "```\ncode\n```", "guess: \n", "x\r\ny\r\n",
    "GUESS: river because it fits everything we know so far.", "<s>", "<|im_start|>user", "[INST] hi",
    "\u2028", "\x85", "a\x00b", "\u200f", "\ud800", "Tipp: der Hund ist nicht das Tier und nicht die Katze",
    "ANSWER: YES, THAT IS RIGHT AND TRUE",
)  # fmt: skip


def material(
    reply: str, *, peers: tuple[str, ...] = (), asked: tuple[str, ...] = (RULES,), role: str = "WordGuesser"
) -> Material:
    """A move that answers `asked` (messages of the user and, in between, of the assistant)."""
    prompt = tuple(Message(r, t) for r, t in zip(itertools.cycle(("user", "assistant")), asked, strict=False))
    move = Move(0, "Player 1", role, "m", prompt, reply, reply, "stop", -1, -1, -1, (), "")
    return Material(move, "some_game", tuple(sorted({*peers})))


def of_family(name: str, number: int = 0, asked: tuple[str, ...] = (RULES,)) -> Material:
    return material(FAMILIES[name][number], peers=FAMILIES[name], asked=asked)


def spoil(name: str, stuff: Material, seed: int = 0, **options: str) -> Corruption | Decline:
    return STRATEGIES[name].corrupt(stuff, random.Random(seed), options)


def spoiled(name: str, stuff: Material, seed: int = 0, **options: str) -> Corruption:
    made = spoil(name, stuff, seed, **options)
    assert isinstance(made, Corruption), made
    return made


def halves(text: str, reply: str) -> tuple[str, str] | None:
    """The move's halves if the text is them with something between."""
    for at in range(len(reply) + 1):
        if text.startswith(reply[:at]) and text.endswith(reply[at:]) and len(text) > len(reply):
            return reply[:at], reply[at:]
    return None


def added(text: str, reply: str) -> str:
    """What was added to the move: the surface of a filler."""
    if reply in text:
        return text.replace(reply, "", 1).strip()
    found = halves(text, reply)
    assert found, (text, reply)
    return text[len(found[0]) : len(text) - len(found[1])].strip()


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", text.casefold()))


# ---------------------------------------------------------------- the table


def test_the_table_is_literal_and_in_its_order():
    tree = ast.parse(inspect.getsource(corruptions))
    tables = [node.value for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "STRATEGIES"]
    assert isinstance(tables[0], ast.Dict)
    names = ["verbose", "looping", "format_break", "role_bleed", "ramble", "contrast", "corrected"]
    assert [key.value for key in tables[0].keys] == names
    assert list(STRATEGIES) == [strategy.name for strategy in STRATEGIES.values()]


def test_each_strategy_describes_itself_in_a_line():
    for strategy in STRATEGIES.values():
        assert 20 < len(strategy.summary) <= 110 and "\n" not in strategy.summary
        assert strategy.options and all(strategy.options.values())
    assert [s.name for s in STRATEGIES.values() if s.requires_violation] == ["format_break", "role_bleed", "corrected"]
    assert {s.name: (s.asked, s.takes) for s in STRATEGIES.values() if s.asks} == {
        "ramble": ("model", "won"), "corrected": ("judge", "aborted"),
    }  # fmt: skip


CORE = ("pairgen.errors", "pairgen.records", "pairgen.strategy", "pairgen.thinking")


def test_only_the_standard_library_and_the_core_are_imported():
    allowed = {*sys.stdlib_module_names, "corruptions"}
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed or name in CORE, (path.name, name)


# ---------------------------------------------------------------- the contract, for any move

texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=80),
    st.text(alphabet='aB :>{}"\n,.-é漢א▢🙂', max_size=60),
    st.sampled_from([reply for family in FAMILIES.values() for reply in family]),
)
prompts = st.sampled_from(
    [
        (),
        (RULES,),
        (GERMAN,),
        ("游戏规则：请只用一个词回答。目标词是一种水果。",),
        ("قواعد اللعبة: أجب بكلمة واحدة فقط. لا تضف أي نص آخر.",),
        (RULES, "GUESS: apple", "That is not correct. Guess again."),
        (RULES + "\n<|im_start|>user", "x", "<s>hello there my friend</s>"),
    ]
)
materials = st.builds(lambda r, a, p: material(r, asked=a, peers=p), texts, prompts, st.tuples(texts, texts, texts))
thorough = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def check_contract(name: str, stuff: Material, made: Corruption | Decline) -> None:
    reply = stuff.move.reply
    if isinstance(made, Decline):
        assert re.fullmatch(r"[A-Za-z_ -]{8,60}", made.reason), "a reason names no part of the move"
        return
    assert made.text.split() != reply.split()
    assert not any(token in made.text for token in SPECIAL)
    assert re.fullmatch(r"[a-z_]+(/[a-z_]+)?", made.detail)
    made.text.encode("utf-8")
    check_promise(name, reply, made)


def check_promise(name: str, reply: str, made: Corruption) -> None:
    grown = len(made.text) - len(reply)
    if name == "verbose":
        assert halves(made.text, reply) if made.detail.startswith("inside") else reply in made.text
        assert grown > 0
    if name == "looping":
        begun = reply.lstrip()[:1] if made.detail.startswith("inner") else reply.rstrip().rstrip(" .!?…。！？")
        assert made.text.lstrip().startswith(begun.lstrip())
        assert grown <= looping.MOST_ADDED
    if name == "role_bleed":
        assert made.text.startswith(reply) and 0 < grown <= 4000
    if name == "format_break":
        check_content(reply, made)


def check_content(reply: str, made: Corruption) -> None:
    """All words of the move but its tags; for lost lines all of the rest, for odd marks all letters in their order."""
    kind, letters = made.detail.split("/")[0], lambda text: "".join(c for c in text if c.isalnum())
    if kind == "punctuation":
        assert letters(reply) == letters(made.text)
    elif kind == "lose_line":
        assert not words(made.text) - words(reply) and len(made.text) < len(reply)
    else:
        lost = words(reply) - words(made.text)
        first = {word for line in reply.split("\n") for word in words(line.replace("：", ":").rpartition(":")[0])}
        first |= {word for key in re.findall(r'"([^"]*)"\s*:', reply) for word in words(key)}
        assert set(lost) <= first, "only tags may go"


@pytest.mark.parametrize("name", STRATEGIES)
@thorough
@given(stuff=materials, seed=st.integers(0, 2**32))
def test_any_move_is_changed_as_promised_or_declined(name: str, stuff: Material, seed: int):
    check_contract(name, stuff, spoil(name, stuff, seed))


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if strategy.asks])
@thorough
@given(stuff=materials, said=texts, finish=st.sampled_from(["stop", "length", ""]), seed=st.integers(0, 2**32))
def test_any_answer_to_any_move_is_a_pair_as_promised_or_declined(name, stuff, said, finish, seed):
    stuff = dataclasses.replace(
        stuff, move=dataclasses.replace(stuff.move, violation="too long"), drafts=(Draft(said, finish, 1, 1, "wise"),)
    )
    asks = STRATEGIES[name].asks(stuff, random.Random(seed), {})
    assert isinstance(asks, Decline) or all(0 <= a.min_tokens < a.max_tokens and a.messages for a in asks)
    made = spoil(name, stuff, seed)
    check_contract(name, stuff, made)
    if name == "ramble" and isinstance(made, Corruption):
        assert made.text.startswith(stuff.move.reply.strip())


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("reply", NASTY)
def test_odd_moves_with_many_seeds(name: str, reply: str):
    for seed, asked in itertools.product(range(12 if len(reply) < 1000 else 3), ((RULES,), ())):
        stuff = material(reply, asked=asked, peers=FAMILIES["guess"])
        check_contract(name, stuff, spoil(name, stuff, seed))


RULE_MADE = [name for name, s in STRATEGIES.items() if name != "contrast" and s.asks is None]  # of the move alone

OPTIONED = [
    *(("verbose", "place", place) for place in ("before", "after", "inside")),
    *(("looping", "kind", kind) for kind in looping.LOOPS),
    *(("format_break", "kind", kind) for kind in format_break.BREAKS),
    ("verbose", "style", "reference"),
    ("looping", "max_repeats", "2"),
    ("looping", "max_repeats", "200"),
    ("role_bleed", "rounds", "4"),
]


@pytest.mark.parametrize(("name", "key", "value"), OPTIONED)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(stuff=materials, seed=st.integers(0, 2**32))
def test_every_option_keeps_the_contract(name: str, key: str, value: str, stuff: Material, seed: int):
    made = spoil(name, stuff, seed, **{key: value})
    check_contract(name, stuff, made)
    if isinstance(made, Corruption) and key in ("place", "kind"):
        assert made.detail.split("/")[0] == value


@pytest.mark.parametrize("name", RULE_MADE)
def test_an_english_move_is_never_declined(name: str):
    for family in FAMILIES:
        for number, seed in itertools.product(range(len(FAMILIES[family])), range(30)):
            spoiled(name, of_family(family, number), seed)


@pytest.mark.parametrize("name", RULE_MADE)
def test_blank_moves_and_special_tokens_are_declined(name: str):
    assert spoil(name, material(" \n ")) == Decline("empty move")
    assert spoil(name, material("GUESS: <|im_start|>")) == Decline("special token in the move")
    assert spoil(name, material("GUESS: \ud800")) == Decline("not valid Unicode")


def digest_of_everything() -> str:
    made = [
        spoil(name, of_family(family), seed)
        for name, family, seed in itertools.product(STRATEGIES, FAMILIES, range(12))
    ]
    return hashlib.sha256(repr(made).encode()).hexdigest()


def test_same_material_seed_and_options_give_the_same_text_in_every_process():
    here = digest_of_everything()
    assert here == digest_of_everything()
    code = "from test_corruptions import digest_of_everything as d; print(d())"
    for hash_seed in ("1", "2"):
        paths = os.pathsep.join([str(Path(__file__).parent), str(FOLDER.parent)])
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here


def test_nothing_is_printed_opened_or_drawn_from_the_global_generator(monkeypatch, capsys):
    digest_of_everything()  # reads the banks

    def refuse(*args, **kwargs):
        raise AssertionError("a strategy opened a file")

    before = random.getstate()
    for module in (builtins, io):
        monkeypatch.setattr(module, "open", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(os, "open", refuse)
    digest_of_everything()
    monkeypatch.undo()
    assert random.getstate() == before
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("verbose", {"style": "refrence"}, "reference"),
        ("verbose", {"place": "around"}, "after, before, inside"),
        ("verbose", {"style": "reference", "place": "before"}, "leave out place=before"),
        ("looping", {"max_repeats": "1"}, "from 2 to 200"),
        ("looping", {"max_repeats": "many"}, "from 2 to 200"),
        ("looping", {"kind": "lines"}, "line"),
        ("format_break", {"kind": "drop_tags"}, "drop_tag"),
        ("role_bleed", {"rounds": "0"}, "from 1 to 4"),
    ],
)
def test_unknown_option_values_name_the_known_ones(name: str, options: dict[str, str], hint: str):
    for reply in ("GUESS: river", ""):
        with pytest.raises(UsageProblem, match=hint):
            spoil(name, material(reply), **options)


def test_the_command_line_form_reaches_the_strategy():
    choice = parse_choice("verbose:2:style=reference", STRATEGIES)
    made = STRATEGIES[choice.name].corrupt(material("GUESS: river"), random.Random(1), choice.options)
    assert isinstance(made, Corruption) and made.detail == "reference" and choice.weight == 2


# ---------------------------------------------------------------- phrase banks


@pytest.mark.parametrize(
    "names", [("verbose.json",), ("verbose.json", "format_break.json"), ("verbose.json", "role_bleed.json")]
)
def test_every_rule_of_a_bank_can_be_said_without_any_slot(names: tuple[str, ...]):
    known = bank.load(*names)
    assert len(known) == sum(len(bank.load(name)) for name in names), "no bank overrides another one's rule"
    optional = {"answer", "alt", "RULE", "QUOTE", "STATE", "word", "role", "other", "partner", "answer_tag"}
    for rule, lines in known.items():
        for slot in {slot for line in lines for slot in bank.SLOT.findall(line)}:
            assert slot in known or slot in {*optional, "noun"}, (rule, slot)
        if "." in rule:
            assert rule.split(".")[0] in known, "lines for one act stand beside lines for all"
            continue
        plain = [line for line in lines if not optional & set(bank.SLOT.findall(line))]
        assert plain, f"{rule} needs a line for moves without an answer or a prompt"
        bank.Teller(names, "other", ["noun"], random.Random(0)).tell(rule)


def test_every_bank_is_package_data_and_read_once():
    declared = (FOLDER.parent / "setup.cfg").read_text(encoding="utf-8")
    assert "corruptions = *.json" in declared
    assert BANKS == ["format_break.json", "role_bleed.json", "verbose.json", "words.json"]
    assert bank.load("verbose.json") is bank.load("verbose.json")


def test_every_act_has_nouns_and_reasons():
    lexicon, phrases = bank.load("words.json"), bank.load("verbose.json")
    assert set(lexicon["acts"].values()) <= set(lexicon["nouns"])
    assert {f"reason.{act}" for act in lexicon["nouns"] if act != "other"} <= set(phrases)


# ---------------------------------------------------------------- shape


@thorough
@given(reply=texts, tags=st.sampled_from([(), ("CLUE", "TARGETS"), (">", "Next actions"), ("a", "x")]))
def test_a_move_is_cut_without_loss(reply: str, tags: tuple[str, ...]):
    looks = shape.look(reply, tags)
    assert shape.join(looks.fields, looks.tail) == reply


@pytest.mark.parametrize(
    ("family", "kind", "tags", "answer", "act"),
    [
        ("guess", "tagged", ["GUESS"], "river", "guess"),
        ("clue", "tagged", ["CLUE", "TARGETS"], "water", "clue"),
        ("question", "tagged", ["QUESTION"], "", "question"),
        ("step", "tagged", [">"], "go kitchen", "step"),
        ("explained", "tagged", ["explanation", "guess"], "crane", "guess"),
        ("go", "tagged", ["GO"], "north", "step"),
        ("grid", "lines", [""], "", "other"),
        ("graph", "json", ['"action"', '"graph"'], "west", "step"),
        ("expression", "tagged", ["Expression"], "", "describe"),
        ("prose", "bare", [""], "", "other"),
    ],
)
def test_shapes_are_learned_from_the_peers(family: str, kind: str, tags: list[str], answer: str, act: str):
    looks = shape.read(of_family(family))
    assert (looks.kind, [f.tag for f in looks.fields], looks.answer, looks.act) == (kind, tags, answer, act)


def test_a_remark_of_one_peer_is_no_tag():
    peers = (*(f"GUESS: word{n}" for n in range(60)), "GUESS: x\nNote: this is hard")
    looks = shape.read(material("GUESS: river\nNote: it fits", peers=peers, asked=()))
    assert looks.tags == ("GUESS",) and looks.fields[-1].value == "river\nNote: it fits"


def test_a_tag_that_the_prompt_spells_out_needs_no_peers():
    assert shape.read(material("HINT: it floats", asked=('Start with "HINT: ".',))).fields[0].tag == "HINT"
    assert shape.read(material("HINT: it floats", asked=("Say something.",))).kind == "bare"


def test_a_bare_reply_keeps_the_tags_of_its_peers_in_mind():
    looks = shape.read(of_family("go", 2))
    assert looks.kind == "bare" and looks.tags == ("GO",)


# ---------------------------------------------------------------- voice


@pytest.mark.parametrize(
    ("reply", "asked", "english"),
    [
        ("GUESS: river", RULES, True),
        ("GUESS: river", "", True),
        ("🙂", "", True),
        ("TIPP: Hund", GERMAN, False),
        ("答案：苹果", RULES, False),
        ("الإجابة: نعم", RULES, False),
        ("GUESS: apple", "请只用一个词回答，不要添加其他文字。", False),
        ("Tipp: der Hund ist nicht das Tier", RULES, False),
        ("Je pense que c'est le chat, pas une souris", "", False),
    ],
)
def test_only_english_moves_get_english_words(reply: str, asked: str, english: bool):
    assert voice.english(material(reply, asked=(asked,) if asked else ())) is english


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        ("TIPP: Hund", GERMAN),
        ("答案：苹果", "请只用一个词回答。不要添加任何其他文字。"),
        ("תשובה: כן", "ענה במילה אחת בלבד. אל תוסיף טקסט אחר."),
    ],
)
def test_in_another_language_the_prompt_itself_is_the_filler(reply: str, asked: str, place: str):
    for seed in range(20):
        made = spoiled("verbose", material(reply, asked=(asked,)), seed, place=place)
        assert made.detail == f"{place}/echo"
        said = added(made.text, reply)
        assert all(part in asked for part in said.split("\n")) and len(said) >= 8
    assert isinstance(spoil("verbose", material(reply, asked=(asked,)), place="inside"), Decline)


def test_no_english_word_enters_a_move_of_another_language():
    stuff = material(
        "TIPP: Hund", asked=(GERMAN, "TIPP: Katze", "Das ist leider falsch. Rate noch einmal."), peers=("TIPP: Maus",)
    )
    for name, seed in itertools.product(("looping", "role_bleed", "verbose"), range(60)):
        made = spoiled(name, stuff, seed)
        known = words(" ".join(m.content for m in stuff.move.prompt) + " TIPP Maus Hund")
        unknown = [w for w in words(made.text) if not any(k.startswith(w) for k in known)]
        assert not unknown or (name == "looping" and made.detail.startswith(("character", "move", "ngram")))


def test_lower_case_moves_get_lower_case_filler():
    for seed in range(60):
        made = spoiled("verbose", material("guess: crane", peers=("guess: plant",)), seed)
        assert made.text == made.text.lower()
    assert voice.casing("GUESS: crane") == "normal"
    assert voice.casing("DONE") == "normal"
    assert voice.casing("THE MOUSE IS UNDER THE TABLE") == "upper"


# ---------------------------------------------------------------- verbose

WORDS = """
river harbor garden fence needle apple crane plant bottle window candle forest pepper silver marble bridge ladder
ticket rocket pillow button basket camera desert engine
"""
VOCABULARY = WORDS.split()


def varied_moves(count: int) -> list[Material]:
    """Moves of ten shapes with varied words, as a run over several games has."""
    rng = random.Random(11)
    forms = (
        "GUESS: {0}",
        "CLUE: {0}\nTARGETS: {1}, {2}",
        "QUESTION: Is it larger than a {0}?",
        "> take {0}",
        "GO: {0}",
        "ANSWER: yes, the {0} is next to the {1}.",
        "explanation: the {0} reminds me of a {1}.\nguess: {2}",
        "Expression: The picture with the {0} above the {1}.",
        '{{"action": "take {0}", "target": "{1}"}}',
        "A {0} and a {1}.",
    )
    drawn = [[form.format(*rng.sample(VOCABULARY, 3)) for _ in range(20)] for form in forms]
    asked = (RULES, RULES + "\n\nYou are in a hall now. There is a door. What do you do?")
    return [
        material(rng.choice(peers), peers=tuple(peers), asked=(rng.choice(asked),))
        for peers in (drawn[i % len(drawn)] for i in range(count))
    ]


def shares(parts: list[str]) -> float:
    return Counter(parts).most_common(1)[0][1] / len(parts)


@pytest.mark.parametrize("moves", [varied_moves(1000), [of_family("go")] * 1000], ids=["varied moves", "one move"])
def test_no_fixed_surface_gives_the_filler_away(moves: list[Material]):
    surfaces = []
    for seed, stuff in enumerate(moves):
        made = spoil("verbose", stuff, seed)
        assert isinstance(made, Corruption)
        surfaces.append(added(made.text, stuff.move.reply))
    assert len(set(surfaces)) >= 850
    assert shares(surfaces) <= 0.02
    tokens = [surface.lower().split() for surface in surfaces]
    assert shares([" ".join(t[:2]) for t in tokens]) <= 0.04, "openings differ"
    assert shares([" ".join(t[-2:]) for t in tokens]) <= 0.04, "endings differ"
    assert shares([re.sub(r"[\w\s]", "", s)[:1] for s in surfaces]) <= 0.5, "punctuation differs"


def test_filler_comes_in_all_places_kinds_and_lengths():
    counts, places, kinds = [], Counter(), Counter()
    for seed, stuff in enumerate(varied_moves(1000)):
        made = spoiled("verbose", stuff, seed)
        counts.append(len(added(made.text, stuff.move.reply).split()))
        place, kind = made.detail.split("/")
        places[place] += 1
        kinds[kind] += 1
    counts.sort()
    assert counts[0] >= 3 and counts[-1] <= 130
    assert counts[100] <= 8 and 10 <= counts[500] <= 35 and counts[900] >= 40, "short, medium and long"
    assert places["after"] > places["before"] > places["inside"] > 50
    assert len(kinds) >= 14 and min(kinds[k] for k in ("justify", "offer", "opener", "think", "clause", "inline")) > 5


def test_a_filler_speaks_about_the_move():
    made = [spoiled("verbose", of_family("guess"), seed).text for seed in range(300)]
    assert sum("river" in added(text, "GUESS: river") for text in made) > 30
    assert any("the rules" in text and "Only reply with one move." in text for text in made), "rules are quoted"
    assert sum("harbor" in text for text in made) == 0, "an alternative must be in the prompt"
    asked = (RULES + " The words are river, harbor and needle.",)
    assert any("harbor" in spoiled("verbose", of_family("guess", 0, asked), seed).text for seed in range(300))


def test_a_move_without_a_stop_is_joined_properly():
    for seed in range(300):
        text = spoiled("verbose", material("GUESS: river", peers=FAMILIES["guess"]), seed, place="after").text
        assert not re.match(r"GUESS: river [A-Z]", text), "a new sentence needs a stop or a line of its own"


@pytest.mark.parametrize("family", ["graph", "grid"])
def test_blocks_are_never_continued_on_their_own_line(family: str):
    reply = FAMILIES[family][0]
    for seed, place in itertools.product(range(60), ("before", "after")):
        text = spoiled("verbose", of_family(family), seed, place=place).text
        assert f"\n{reply}" in text or f"{reply}\n" in text
    assert spoil("verbose", of_family("graph"), place="inside") == Decline("no place inside the move")


def test_the_reference_style_appends_one_of_five_sentences():
    sentences = bank.load("verbose.json")["reference"]
    assert len(sentences) == len(set(sentences)) == 5
    seen = set()
    for seed, reply in itertools.product(range(40), ("GUESS: river", "TIPP: Hund", "x" * 10_000)):
        made = spoiled("verbose", material(reply), seed, style="reference")
        assert made.text.startswith(reply) and made.detail == "reference"
        seen.add(made.text[len(reply) :])
    assert seen == set(sentences)
    assert sorted(s[0] for s in sentences) == ["\n", "\n", "\n", "\n", " "]


# ---------------------------------------------------------------- looping


def longest_repeat(text: str) -> int:
    """How often the text's most repeated unit of 1 to 12 words comes in a row."""
    tokens, best = text.split(), 1
    for size in range(1, 13):
        for start in range(min(len(tokens), 60)):
            unit, count = tokens[start : start + size], 1
            while len(unit) == size and tokens[start + count * size : start + (count + 1) * size] == unit:
                count += 1
            best = max(best, count)
    return best


@pytest.mark.parametrize("kind", ["move", "line", "phrase", "ngram", "alternate", "inner"])
def test_a_loop_repeats(kind: str):
    stuff = of_family("explained", 1)
    for seed in range(40):
        made = spoiled("looping", stuff, seed, kind=kind)
        bare = re.sub(r"[,./]| and ", " ", made.text)
        assert longest_repeat(bare) >= 2 or made.text.count("guess: plant") >= 2


def test_some_loops_are_cut_off_in_mid_word():
    made = [spoiled("looping", of_family("guess"), seed, kind="phrase") for seed in range(200)]
    cut = [m for m in made if m.detail.endswith("/cut")]
    assert 40 < len(cut) < 160
    assert all(re.search(r"([ .,](riv?e?|r|an?))$", m.text) for m in cut)
    assert all(m.text.endswith("river") for m in made if m not in cut)


def test_a_loop_may_set_in_before_the_end_of_the_move():
    reply = FAMILIES["explained"][1]
    made = spoiled("looping", of_family("explained", 1), 3, kind="inner")
    common = next(i for i, (a, b) in enumerate(zip(made.text, reply, strict=False)) if a != b)
    assert 10 < common < len(reply) and "guess: plant" not in made.text


def test_max_repeats_bounds_a_loop():
    for seed in range(60):
        made = spoiled("looping", of_family("go"), seed, kind="move", max_repeats="3")
        assert 3 <= made.text.count("G") <= 4
    assert any(spoiled("looping", of_family("go"), seed, kind="move").text.count("GO:") > 20 for seed in range(60))


def test_loops_alternate_with_another_move_of_the_game():
    texts = {spoiled("looping", of_family("go"), seed, kind="alternate").text for seed in range(40)}
    assert any(re.match(r"GO: north\nGO: (south|west)\nGO: north\nGO: (south|west)", text) for text in texts)


# ---------------------------------------------------------------- format_break


@pytest.mark.parametrize(
    ("kind", "family", "expected"),
    [
        ("drop_tag", "guess", r"river"),
        ("drop_tag", "step", r"go kitchen"),
        ("rename_tag", "guess", r"[A-Z1 ]+: river"),
        ("translate_tag", "guess", r"\w+: river"),
        ("recase_tag", "guess", r"(Guess|guess): river"),
        ("double_tag", "guess", r"GUESS:\s+GUESS: river"),
        ("separator", "guess", r"GUESS[^\w]+river"),
        ("quote", "go", r".*['\"“‘«„`].*"),
        ("brackets", "go", r".*[\[<({].*north.*"),
        ("latex", "go", r".*(\\|\$\$).*north.*"),
        ("markdown", "go", r"(?s).*[*_#`>~•|-].*GO.*north.*|(GO: )?.*[*_`~].*|1\. GO: north"),
        ("code_fence", "graph", r"```\w*\n\{.*\}\n```"),
        ("json", "clue", r"(?s).*[\[{].*water.*river.*"),
        ("preamble", "guess", r"(?s).+[ \n]GUESS: river"),
        ("two_moves", "go", r"(?s)GO: north.*(GO: )?(south|west).*"),
        ("merge_lines", "clue", r"CLUE: water.+TARGETS: river, harbor"),
        ("swap_lines", "clue", r"TARGETS: river, harbor\nCLUE: water"),
        ("lose_line", "clue", r"CLUE: water|TARGETS: river, harbor"),
        ("lose_line", "graph", r"(?s)\{.*"),
        ("punctuation", "guess", r"GUESS: r.*i.*v.*e.*r.*"),
        ("extra_key", "guess", r"(?s)(GUESS: river\n.*[A-Z ]+: .+|[A-Z ]+: .+\nGUESS: river)"),
    ],
)
def test_each_break_does_what_its_name_says(kind: str, family: str, expected: str):
    for seed in range(40):
        made = spoiled("format_break", of_family(family), seed, kind=kind)
        assert re.fullmatch(expected, made.text), made.text
        assert made.detail.split("/")[0] == kind


def test_breaks_that_do_not_fit_decline_when_they_are_asked_for():
    for kind, family in (
        ("drop_tag", "prose"),
        ("swap_lines", "guess"),
        ("translate_tag", "grid"),
        ("merge_lines", "go"),
    ):
        assert spoil("format_break", of_family(family), kind=kind) == Decline(f"{kind} does not fit this move")


def test_every_break_comes_up_by_itself():
    assert set(format_break.WEIGHTS) == set(format_break.BREAKS)
    seen = Counter(
        spoiled("format_break", of_family(family), seed).detail.split("/")[0]
        for family, seed in itertools.product(("clue", "graph", "go", "explained"), range(150))
    )
    assert set(seen) == set(format_break.BREAKS)
    assert seen.most_common(1)[0][1] < 150


def test_json_moves_break_as_json():
    kinds = ("rename_tag", "extra_key", "lose_line")
    drawn = itertools.product(kinds, range(40))
    texts = {spoiled("format_break", of_family("graph"), seed, kind=kind).text for kind, seed in drawn}
    assert any(text.startswith('{"move":') for text in texts)
    assert any(re.search(r', "confidence": "[^"]+"\}$', text) for text in texts)
    assert GRAPH[:-1] in texts
    valid = spoiled("format_break", material('{"a": "one", "b": "two"}'), 0, kind="extra_key").text
    assert set(json.loads(valid)) > {"a", "b"}


def test_another_tag_of_the_game_takes_the_place_of_the_right_one():
    texts = {spoiled("format_break", of_family("question"), seed, kind="rename_tag").text for seed in range(60)}
    assert "GUESS: Is it a kind of fruit?" in texts
    assert "GO: DONE" in {
        spoiled("format_break", of_family("go", 2), seed, kind="rename_tag").text for seed in range(40)
    }


# ---------------------------------------------------------------- role_bleed

WALK = (
    f"{RULES}\nGO: west\nYou have made a step and entered a Lobby. Available directions: east, north. What now?\n"
    "GO: north\n...\nYou have made a step and entered a Bedroom. Available directions: south. What now?\n"
    "DONE\nLet us start.",
)


def test_the_invented_message_has_the_form_of_the_examples():
    for seed in range(60):
        made = spoiled("role_bleed", of_family("go", 0, WALK), seed, rounds="1")
        assert made.text.startswith("GO: north")
        if made.detail.startswith("prompt"):
            assert "You have made a step and entered a" in made.text
    assert sum(spoiled("role_bleed", of_family("go", 0, WALK), s).detail.startswith("prompt") for s in range(60)) > 40


def test_the_invented_message_has_the_form_of_the_earlier_ones():
    asked = (RULES, "guess: crane", "guess_feedback: c<red> r<green> a<yellow> n<red> e<red>")
    stuff = material("guess: plant", peers=("guess: crane", "guess: plate"), asked=asked)
    texts = [spoiled("role_bleed", stuff, seed).text for seed in range(60)]
    assert sum(bool(re.search(r"guess_feedback: p<\w+> l<\w+> a<\w+> n<\w+> t<\w+>", text)) for text in texts) > 30
    assert any(re.search(r"guess: (crane|plate)$", text) for text in texts)


def test_after_the_message_comes_another_move_of_the_same_form():
    for seed in range(60):
        text = spoiled("role_bleed", of_family("expression"), seed).text
        rest = text[len(FAMILIES["expression"][0]) :]
        assert re.search(r"Expr?e?s?s?", rest)


def test_speaker_labels_are_words_and_sometimes_glued_on():
    texts = [spoiled("role_bleed", of_family("guess"), seed).text for seed in range(400)]
    assert any("Game Master: " in text for text in texts)
    assert any(text.startswith("GUESS: riveruser\n") for text in texts)
    assert sum(bool(re.search(r"(?m)^(user|User:|GM:|Human:)", text)) for text in texts) < 200
    assert not any(re.search(r"<\||\[INST|<s>|</s>|_of_turn", text) for text in texts)


def test_special_tokens_of_the_prompt_do_not_bleed_in():
    asked = (RULES, "GUESS: apple", "<|im_start|>user\nThat is wrong. [INST] Guess again.</s>")
    for seed in range(40):
        made = spoil("role_bleed", material("GUESS: river", asked=asked, peers=FAMILIES["guess"]), seed)
        assert isinstance(made, Corruption) and not shape.SPECIAL.search(made.text)


def test_without_a_form_and_without_english_there_is_no_bleeding():
    assert spoil("role_bleed", material("答案：苹果", asked=())) == Decline("no game-master message to go by")


def test_lists_verdicts_and_marks_are_varied():
    looks = shape.read(of_family("guess"))
    drawn = {gamemaster._varied("ANSWER: yes", looks, random.Random(seed)) for seed in range(20)}
    assert drawn == {"ANSWER: yes", "ANSWER: no"}
    lists = {gamemaster._varied("Ways: west, east, north.", looks, random.Random(seed)) for seed in range(60)}
    assert len(lists) > 5 and all(re.fullmatch(r"Ways: \w+(, \w+){1,2}\.", text) for text in lists)
