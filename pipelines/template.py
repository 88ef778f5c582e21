"""Template: what the prompts of one game and role share, and what remains of a prompt without it. Pure text.

Learned, not configured: a line, or three words in a row, that nearly all instances have equally often is template.
"Equally often" is what keeps a grid in the remainder: its rows are common to all instances, but not in equal number.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

MIN_INSTANCES = 5
"""With fewer, what prompts share may be what they ask."""
NEARLY_ALL = 0.9
MAX_INSTANCES = 300
OPENING_WORDS = 8

Gram = tuple[str, str, str]
_WORDS = re.compile(r"\w+|[^\w\s]")


class Prompt(NamedTuple):
    """The first message of an instance; `instance` names it, `experiment` may have a template of its own."""

    experiment: str
    instance: Hashable
    text: str


class Template:
    """The lines and grams that are template, and the kinds of prompt (experiments, openings) of which that is known."""

    def __init__(
        self,
        lines: frozenset[str] = frozenset(),
        grams: frozenset[Gram] = frozenset(),
        kinds: frozenset[str] = frozenset(),
        plain: frozenset[str] = frozenset(),
    ):
        self.lines, self.grams, self.kinds, self.plain = lines, grams, kinds, plain
        self._seen: dict[str, str] = {}

    def knows(self, text: str, experiment: str = "") -> bool:
        """Whether enough prompts of this kind were seen to tell its template from what it asks."""
        return not self.kinds.isdisjoint(_kinds(experiment, text))

    def asks(self, text: str, experiment: str = "") -> str:
        """What the prompt asks: its remainder, or all of it where the template of its kind is not known.

        Where nothing remains, the order of the parts may still say something (the same grids, another one first): then
        it is all of the prompt too, unless many instances have that very prompt, which asks nothing ("").
        """
        if not self.knows(text, experiment):
            return text
        return self.remainder(text) or ("" if text in self.plain else text)

    def remainder(self, text: str) -> str:
        """The words that are not template, in small letters, a line break where lines were; "" if nothing is left."""
        return "\n".join(filter(None, map(self._left, text.splitlines())))

    def _left(self, line: str) -> str:
        if line not in self._seen:
            if len(self._seen) > 50_000:
                self._seen.clear()
            words = _words(line)
            self._seen[line] = "" if " ".join(words) in self.lines else " ".join(self._uncovered(words))
        return self._seen[line]

    def _uncovered(self, words: Sequence[str]) -> list[str]:
        hit = [False, False, *(gram in self.grams for gram in _grams(words)), False, False]
        # the padded word i lies in the grams i-2, i-1 and i; the word before it in the line is padding
        return [word for i, word in enumerate(words, 1) if not (hit[i] or hit[i + 1] or hit[i + 2])]


UNKNOWN = Template()


def learn(prompts: Iterable[Prompt]) -> Template:
    """The template of one game and role; of each instance one prompt counts, whatever the order.

    Looks at all prompts, at each experiment and at each way to begin, since variants have templates of their own. A
    kind of prompt with fewer than five instances stays unknown.
    """
    first: dict[tuple[str, Hashable], str] = {}
    for experiment, instance, text in prompts:
        known = first.get((experiment, instance))
        first[experiment, instance] = text if known is None else min(known, text)
    groups: dict[str, list[str]] = defaultdict(list)
    for (experiment, _), text in sorted(first.items(), key=lambda item: (item[1], repr(item[0]))):
        for kind in ("", *_kinds(experiment, text)):
            groups[kind].append(text)
    lines: set[str] = set()
    grams: set[Gram] = set()
    enough = {kind: _spread(texts) for kind, texts in groups.items() if len(texts) >= MIN_INSTANCES}
    split = {kind: [[_words(line) for line in text.splitlines()] for text in texts] for kind, texts in enough.items()}
    for texts in split.values():
        lines |= _constant([Counter(" ".join(words) for words in text) for text in texts])
    for texts in split.values():
        rest = [[words for words in text if " ".join(words) not in lines] for text in texts]
        grams |= _constant([Counter(gram for words in text for gram in _grams(words)) for text in rest])
    owners = Counter(first.values())
    plain = frozenset(text for text, count in owners.items() if count >= MIN_INSTANCES)
    return Template(frozenset(lines - {""}), frozenset(grams), frozenset(enough) - {""}, plain)


def _constant(counts: Sequence[Counter[Hashable]]) -> set:  # type: ignore[type-arg]
    """What nearly all of the texts have, and equally often."""
    seen: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for count in counts:
        for item, times in count.items():
            seen[item][times] += 1
    return {item for item, times in seen.items() if max(times.values()) >= NEARLY_ALL * len(counts)}


def _kinds(experiment: str, text: str) -> tuple[str, str]:
    """The experiment, and how the prompt begins."""
    opening = " ".join(_words(text[:400])[:OPENING_WORDS])
    return f"experiment {experiment}", f"opening {opening}"


def _spread(texts: Sequence[str]) -> Sequence[str]:
    """At most 300 of the sorted texts, evenly chosen."""
    return (
        texts if len(texts) <= MAX_INSTANCES else [texts[i * len(texts) // MAX_INSTANCES] for i in range(MAX_INSTANCES)]
    )


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


def _grams(words: Sequence[str]) -> Iterable[Gram]:
    """Three words in a row, the line's ends counting as words."""
    padded = ["\n", *words, "\n"]
    return zip(padded, padded[1:], padded[2:], strict=False)
