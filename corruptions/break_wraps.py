"""Breaks that wrap a move, or a part of it, in something: quotes, markdown, a code fence, JSON, LaTeX, brackets.

Every function takes the speaker of a move and gives the wrapped text and its variant, or None. Knows no game.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from corruptions.break_tags import Broken, listed
from corruptions.shape import join
from corruptions.speaker import Speaker

QUOTES = ('"{}"', '"{}"', "“{}”", "'{}'", "‘{}’", "«{}»", '""{}""', '\\"{}\\"', "`{}'", "„{}“")
BRACKETS = ("[{}]", "[{}]", "<{}>", "<{}>", "({})", "{{{}}}", "[[{}]]", "<<{}>>", "{{{{{}}}}}", "[ {} ]", "< {} >")
BOLD = ("**{}**", "**{}**", "*{}*", "__{}__", "***{}***", "`{}`", "~~{}~~")
LATEX = (
    r"\boxed{{{}}}",
    r"$\boxed{{{}}}$",
    r"$${}$$",
    r"$\text{{{}}}$",
    r"\[ \text{{{}}} \]",
    r"\textbf{{{}}}",
    r"\( {} \)",
)
FENCE = "```{}\n{}\n```"
LANGUAGES = ("", "", "", "text", "plaintext", "markdown", "python")
JSON_LANGUAGES = ("json", "json", "", "python")
BOLD_TAGS = (("**", ":** "), ("**", "**: "), ("*", ":* "), ("### ", "\n"), ("## ", ":\n"), ("- **", "**: "))
HOLDERS = ("response", "answer", "output", "reply", "message", "move", "text", "content", "result")


def _part(s: Speaker, forms: tuple[str, ...]) -> Broken:
    """The whole move, or only one of its values, in one of the forms."""
    form = s.rng.choice(forms)
    values = [i for i in s.looks.tagged if s.looks.fields[i].value.strip() and s.looks.kind != "json"]
    if values and s.rng.random() < 0.6:
        picked = values if s.rng.random() < 0.3 else [s.rng.choice(values)]
        fields = [f._replace(value=form.format(f.value)) if i in picked else f for i, f in enumerate(s.looks.fields)]
        return join(fields, s.looks.tail), "value"
    return form.format(s.reply.strip()), "all"


def quote(s: Speaker) -> Broken:
    return _part(s, QUOTES)


def brackets(s: Speaker) -> Broken:
    """Signs around a part, such as the pointed ones that a prompt marks its gaps with; or tags like those of XML."""
    tagged = [i for i in s.looks.tagged if s.looks.fields[i].name[:1].isalpha()]
    if tagged and s.looks.kind != "json" and s.rng.random() < 0.3:
        names = [f.name.lower().replace(" ", "_") for f in s.looks.fields]
        parts = [f"<{n}>{f.value}</{n}>" if f.tag else f.value for n, f in zip(names, s.looks.fields, strict=True)]
        return "\n".join(parts), "xml"
    return _part(s, BRACKETS)


def latex(s: Speaker) -> Broken:
    return _part(s, LATEX)


def markdown(s: Speaker) -> Broken:
    """Bold or italic parts, a bold tag, a heading, a quotation, a list."""
    named = [i for i in s.looks.tagged if s.looks.fields[i].name[:1].isalpha() and s.looks.kind != "json"]
    draw, text = s.rng.random(), s.reply.strip()
    if named and draw < 0.4:
        left, right = s.rng.choice(BOLD_TAGS)
        fields = [f._replace(tag=left + f.tag, sep=right) if i in named else f for i, f in enumerate(s.looks.fields)]
        return join(fields, s.looks.tail), "tag"
    if draw < 0.75:
        return _part(s, BOLD)
    mark = s.rng.choice(("- ", "* ", "• ", "> ", "# ", "### ", "1. ", "| "))
    return "\n".join(mark + line if line.strip() else line for line in text.split("\n")), "lines"


def code_fence(s: Speaker) -> Broken:
    return FENCE.format(s.rng.choice(JSON_LANGUAGES if s.looks.kind == "json" else LANGUAGES), s.reply.strip()), ""


def as_json(s: Speaker) -> Broken:
    """The fields as an object; the text as its only value; a JSON move in another object, or as plain lines."""
    text, holder = s.reply.strip(), s.rng.choice(HOLDERS)
    if s.looks.kind == "json":
        if s.rng.random() < 0.5:
            return f'{{"{holder}": {text}}}', "nested"
        return "\n".join(f"{f.name}: {f.value}" for f in s.looks.fields), "unpacked"
    named = [f for f in s.looks.fields if f.name[:1].isalpha()]
    made: object = {holder: text}
    if named and s.rng.random() < 0.75:
        made = {f.name.lower(): f.value for f in s.looks.fields if f.tag}
        if len(named) == len(s.looks.fields) and s.rng.random() < 0.3:
            made = {f.name.lower(): f.value.split(", ") if listed(f.value) else f.value for f in named}
    elif s.rng.random() < 0.3:
        made = [text]
    written = json.dumps(made, ensure_ascii=False, indent=s.rng.choice((None, None, 2, 4)))
    if s.rng.random() < 0.3:
        written = FENCE.format("json", written)
    return written, "object" if isinstance(made, dict) else "list"


BREAKS: dict[str, Callable[[Speaker], Broken]] = {
    "quote": quote, "brackets": brackets, "latex": latex,
    "markdown": markdown, "code_fence": code_fence, "json": as_json,
}  # fmt: skip
