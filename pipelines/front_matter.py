"""The YAML at the top of the card: what describes the files is ours, what a person added stays."""

from __future__ import annotations

import re
from typing import Any

from pairgen.records import hub_features
from pipelines.fingerprint import CONFIGS
from pipelines.manifest import Manifest

TAGS = ("dpo", "preference", "clembench", "pairgen")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def front_matter(manifest: Manifest, old: dict[str, Any]) -> dict[str, Any]:
    """The YAML: what describes the files is always ours, the rest of what is there stays."""
    splits = {"train": manifest.train, "test": manifest.test}
    splits = {name: rows for name, rows in splits.items() if rows}
    ours: dict[str, Any] = {
        "license": manifest.config.license,
        "language": ["en"],
        "task_categories": ["text-generation"],
        "tags": [],
        "size_categories": [next((name for size, name in SIZES if manifest.pairs < size), "1M<n<10M")],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == "default" else {}),
                "data_files": [{"split": split, "path": f"{name}/{split}.parquet"} for split in splits],
            }
            for name in CONFIGS
        ],
        "dataset_info": [
            {
                "config_name": name,
                "features": _features(cls),
                "splits": [{"name": split, "num_examples": rows} for split, rows in splits.items()],
            }
            for name, cls in CONFIGS.items()
        ],
    }
    models = sorted({run.model for run in manifest.runs if "/" in run.model})
    if models:
        ours["base_model"] = models[0] if len(models) == 1 else models
    kept: dict[str, Any] = {key: old[key] for key in ("language", "task_categories") if key in old}
    own_tags = old.get("tags") if isinstance(old.get("tags"), list) else []
    tags = [*TAGS, *(tag for tag in own_tags or [] if tag not in TAGS)]
    return {**ours, **kept, "tags": tags, **{key: value for key, value in old.items() if key not in ours}}


def _features(cls: type[Any]) -> list[dict[str, Any]]:
    """A record class in the notation that a card has for features: values, and lists of records."""

    def plain(name: str, feature: dict[str, Any]) -> dict[str, Any]:
        if feature["_type"] == "Value":
            return {"name": name, "dtype": feature["dtype"]}
        return {"name": name, "list": [plain(*field) for field in feature["feature"].items()]}

    return [plain(*field) for field in hub_features(cls).to_dict().items()]


def taken_apart(text: str) -> tuple[dict[str, Any], str]:
    """The YAML and the text of a card; YAML that is not a mapping counts as text."""
    import yaml  # type: ignore[import-untyped]

    match = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL)
    if not match:
        return {}, text
    try:
        data = yaml.safe_load(match[1])
    except yaml.YAMLError:
        data = None
    return (data, text[match.end() :]) if isinstance(data, dict) else ({}, text)


def as_yaml(data: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))
