"""The model card of a bundle: README.md, Markdown for people and for model hubs.

A card is a function of the manifest and of config.json: the same training gives the
same bytes, wherever and however often it was interrupted. It is no part of the model:
no model_id depends on it, so it may be written anew; its checksum is in SHA256SUMS.

    ---                      front matter: licence, language, tags
    # A network that ...     what it is
    ## Use   ## Model   ## Data   ## Training   ## Evaluation   ## Limits   ## Licence
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.card_text import (
    LIMITS,
    NO_EVALUATION,
    TITLES,
    UNKNOWN_LICENCE,
    USES,
    cell,
    licence_note,
    number,
    table,
)

CARD_FILE = "README.md"
# Settings of a network that the card leaves out: nested ones.
_NESTED = ("decoder_stack",)


class CardChoices(NamedTuple):
    """What a card says beyond its bundle.

    Attributes:
      licence: of the model, such as `apache-2.0`; its user states it.
      language: code of the language of the texts, or "" where it is not stated.
      evaluation: Markdown with the scores of the model, or "".
      library: the library that loads the folder of the card.
      use: Markdown that says how to use that folder; "" takes that of a bundle.
    """

    licence: str = UNKNOWN_LICENCE
    language: str = ""
    evaluation: str = ""
    library: str = "keras"
    use: str = ""


def write_card(
    folder: str,
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    parts: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Writes the card of a bundle, before its manifest.

    Args:
      folder: the bundle.
      manifest, config: the content of manifest.json and config.json.
      parts: as in `card_text`.
    """
    text = card_text(manifest, config, parts=parts)
    files.write_bytes(files.join(folder, CARD_FILE), text.encode())


def stated_choices(folder: str) -> CardChoices:
    """The licence and the language that the card in a folder states, as `precis card`
    wrote them or as someone edited them; no others where there is no card.
    """
    path = files.join(folder, CARD_FILE)
    text = files.read_bytes(path).decode(errors="replace") if files.exists(path) else ""
    front = text.split("\n---", 1)[0] if text.startswith("---") else ""
    stated = {
        name: value.strip("\"' \r")
        for name, value in re.findall(r"^(license|language):(.*)$", front, re.MULTILINE)
    }
    return CardChoices(
        licence=stated.get("license") or UNKNOWN_LICENCE,
        language=stated.get("language", ""),
    )


def card_text(
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    choices: CardChoices | None = None,
    *,
    parts: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """The card of a bundle.

    Args:
      manifest: the content of manifest.json.
      config: the content of config.json.
      choices: the licence and what else the bundle does not hold.
      parts: the manifests of the bundles that a summarizer consists of, by folder.
    """
    choices = choices or CardChoices()
    manifest, config = _as_written(manifest), _as_written(config)
    kind = str(manifest.get("kind", "abstractive"))
    provenance = manifest.get("provenance", {})
    # The id of a summarizer depends on the flags in the manifests of its parts, and so
    # on the folder that it was trained in. The ids of its parts do not; the card has a
    # row of each.
    model_id = "" if parts else f"\n\nModel id: `{manifest.get('model_id', '')}`"
    sections = [
        _front_matter(kind, config, choices),
        f"# {TITLES.get(kind, kind)}{model_id}",
        _section("Use", choices.use or USES.get(kind, "")),
        _section("Model", _model(manifest, config, parts or {})),
        _section("Data", *_data(provenance, parts or {})),
        _section("Training", *_training(provenance)),
        _section("Evaluation", *_evaluation(provenance, choices)),
        _section("Limits", _limits(kind, manifest, config)),
        _section("Licence", licence_note(choices.licence, provenance)),
    ]
    return "\n\n".join(sections) + "\n"


def _as_written(content: Mapping[str, Any]) -> dict[str, Any]:
    """Content as its file gives it back: with sorted keys. A card that is made while a
    bundle is saved so equals one that is made of its files.
    """
    written: dict[str, Any] = json.loads(json.dumps(content, sort_keys=True))
    return written


def _front_matter(kind: str, config: Mapping[str, Any], choices: CardChoices) -> str:
    """The settings that a model hub reads, in YAML; JSON strings are YAML too."""
    lines = ["---"]
    if choices.language:
        lines.append(f"language: {json.dumps(choices.language)}")
    lines.append(f"license: {json.dumps(choices.licence)}")
    lines.append(f"library_name: {choices.library}")
    if kind not in ("encoder", "keyphrases"):
        lines.append("pipeline_tag: summarization")
    tags = ["summarization", "precis"]
    if choices.library == "keras" and kind != "keyphrases":
        tags += ["keras", "tensorflow"]
    architecture = config.get("architecture")
    tags += [kind] if not architecture else [kind, str(architecture)]
    lines += ["tags:", *(f"- {json.dumps(tag)}" for tag in tags), "---"]
    return "\n".join(lines)


def _section(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"## {title}", *(text for text in paragraphs if text)])


def _model(
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
) -> str:
    """A table of the sizes of the model."""
    rows = [("kind", manifest.get("kind", "abstractive"))]
    for name in ("architecture", "precision"):
        if name in config:
            rows.append((name, config[name]))
    if "parameters" in manifest:
        rows.append(("parameters", manifest["parameters"]))
    for part in ("network", "extractor", "encoder"):
        settings = config.get(part)
        if isinstance(settings, Mapping):
            rows += [
                (f"{part}: {name}", value)
                for name, value in settings.items()
                if name not in _NESTED and value is not None
            ]
    if "features" in config:
        rows.append(("features", ", ".join(map(str, config["features"]))))
    if config.get("task_prefixes"):
        rows.append(("task prefixes", ", ".join(map(repr, config["task_prefixes"]))))
    for folder, part_manifest in parts.items():
        size = part_manifest.get("parameters")
        text = f"`{part_manifest.get('model_id')}`"
        rows.append((folder, text + f", {size:,} parameters" * bool(size)))
    for name in ("tokenizer", "source_tokenizer"):
        if f"{name}_fingerprint" in manifest:
            rows.append((name, f"`{manifest[f'{name}_fingerprint'][:16]}`"))
    return table(("setting", "value"), rows)


def _data(
    provenance: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> Iterable[str]:
    """What the model learned from."""
    for folder, manifest in parts.items():
        described = list(_data(manifest.get("provenance", {}), {}))
        yield "\n\n".join([f"### {folder}", *described])
    if "checkpoint" in provenance:
        kind = provenance.get("model_type", "another project")
        yield (
            f"The weights are those of a checkpoint of {kind}, and nothing was trained "
            "here. What it learned from is said where it was published. Its files:"
        )
        checksums = provenance.get("checkpoint_sha256", {})
        yield table(("file", "sha256"), sorted(checksums.items()))
    for facts in provenance.get("data", ()):
        yield table(("fact", "value"), _fact_rows(facts))
    if not (parts or "checkpoint" in provenance or provenance.get("data")):
        yield "The bundle does not record what it was trained on."


def _fact_rows(facts: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The rows of a table of one set of records."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            for key, count in value.items():
                yield f"{name}: {key}", count
        elif value not in ("", None):
            yield name, value


def _training(provenance: Mapping[str, Any]) -> Iterable[str]:
    """The recipe: command, start and settings, without names of folders."""
    command = provenance.get("command")
    if command:
        yield f"Made by `precis {command}`."
    start = provenance.get("start") or {}
    rows = [
        *((f"start: {name}", value) for name, value in sorted(start.items())),
        *sorted(provenance.get("training", {}).items()),
    ]
    if provenance.get("encoder"):
        rows.append(("encoder", f"`{provenance['encoder']}`"))
    if provenance.get("step"):
        rows.append(("step of these weights", provenance["step"]))
    if rows:
        yield table(("setting", "value"), rows)


def _evaluation(provenance: Mapping[str, Any], choices: CardChoices) -> Iterable[str]:
    """The scores: of an evaluation, and of the validation while training."""
    yield choices.evaluation or NO_EVALUATION
    validation = provenance.get("validation")
    if validation:
        yield (
            "On the validation split, by which the step of the weights was chosen "
            "(ROUGE is F1 from 0 to 1, without an interval):"
        )
        yield table(
            ("figure", "value"),
            [(name, number(value)) for name, value in sorted(validation.items())],
        )


def _limits(kind: str, manifest: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What the model cannot do, as a list."""
    lines = list(LIMITS.get(kind, ()))
    network = config.get("network", {})
    if "max_source_tokens" in network:
        lines.insert(
            0,
            f"It reads at most {network['max_source_tokens']:,} tokens of a text. What "
            "stands behind them is cut, unless `precis summarize` reads it in windows.",
        )
    provenance = manifest.get("provenance", {})
    for facts in provenance.get("data", ()):
        learned = facts.get("records", {}).get("train")
        if learned is not None:
            corpus = cell(facts.get("corpus", ""))
            lines.append(
                f"It learned from {learned:,} documents of `{corpus}`. Texts of other "
                "kinds, languages or times may be summarized worse, and errors of that "
                "corpus are repeated."
            )
    return "\n".join(f"- {line}" for line in lines)
