"""KEY=VALUE arguments as a person types them: read, typed by an annotation, refused with the closest known key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pairgen.errors import UsageProblem, did_you_mean


def read(option: str, items: Iterable[str]) -> dict[str, str]:
    """The keys and raw values of `items`; a dash in a key counts as an underscore. UsageProblem for what has no `=`."""
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        key = key.strip().lstrip("-").replace("-", "_")
        if not equals or not key:
            raise UsageProblem(f"{option} {item!r} has no value: write {option} {item.strip('= ') or 'KEY'}=VALUE.")
        pairs[key] = value
    return pairs


def plain(value: str) -> Any:
    """A raw value as JSON, or as the text it is."""
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(value, value))
    except ValueError:
        return value


def loose(option: str, items: Iterable[str]) -> dict[str, Any]:
    """The arguments with values as `plain` reads them; an item may also be a JSON object of several. UsageProblem."""
    values: dict[str, Any] = {}
    for item in items:
        if item.lstrip().startswith("{"):
            values.update(_object(option, item))
        else:
            values.update({key: plain(raw) for key, raw in read(option, [item]).items()})
    return values


def _object(option: str, item: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(item)
    except ValueError as error:
        raise UsageProblem(
            f"{option} {item!r} is no JSON object ({error}): write {option} '{{\"KEY\": VALUE}}' or {option} KEY=VALUE."
        ) from None
    return values


def typed(option: str, items: Iterable[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as values of the types in `known` (None: no type is known, the value is taken as `plain` reads it).

    Raises UsageProblem for an unknown key and for a value of another type.
    """
    values = {}
    for key, raw in read(option, items).items():
        if key not in known:
            raise UsageProblem(f"{option} {key}: there is no such argument, {did_you_mean(key, known)}")
        values[key] = _fit(f"{option} {key}={raw}", raw, known[key])
    return values


def _fit(said: str, raw: str, hint: Any) -> Any:
    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

    if hint is None:
        return plain(raw)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except PydanticSchemaGenerationError:
        return plain(raw)
    try:
        return adapter.validate_python(plain(raw))
    except ValidationError as first:
        try:
            return adapter.validate_python(raw)
        except ValidationError as second:
            reasons = [e["msg"] for error in (first, second) for e in error.errors(include_url=False)]
    raise UsageProblem(f"{said}: the value does not fit ({'; '.join(dict.fromkeys(reasons))}).")
