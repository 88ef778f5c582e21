"""What a model or a judge must be asked before a strategy can work, under stable names. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pairgen.records import content_id
from pairgen.strategy import Ask, Decline, Draft, Material


class Errand(NamedTuple):
    """An ask, `asked` of the model that played or of the judge. `session` is the episode that it is about."""

    name: str
    asked: str
    session: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class DraftUse:
    """What the replies cost on which a set rests: tokens, and money where a price was given.

    It counts every reply that was used, also those that were known from before, so that it does not depend on how
    often the work was interrupted.
    """

    asked: str
    by: str
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Drafted(NamedTuple):
    """The replies, by the name of their errand."""

    drafts: Mapping[str, Draft]
    uses: tuple[DraftUse, ...]


NOTHING_ASKED = Drafted({}, ())
Drafter = Callable[[Sequence[Errand]], Drafted]


def errand(asked: str, session: str, ask: Ask) -> Errand:
    return Errand(content_id("ask", asked, ask), asked, session, ask)


def with_drafts(
    material: Material, asked: str, asks: Sequence[Ask] | Decline, drafts: Mapping[str, Draft]
) -> Material | Decline:
    """The material with the replies to its asks, or why it cannot have them."""
    if isinstance(asks, Decline):
        return asks
    found = [drafts.get(errand(asked, "", ask).name) for ask in asks]
    known = tuple(draft for draft in found if draft is not None)
    return replace(material, drafts=known) if len(known) == len(found) else Decline("not_asked")
