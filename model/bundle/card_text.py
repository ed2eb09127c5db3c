"""The words and tables of model cards, by the kind of a bundle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNKNOWN_LICENCE = "unknown"
TITLES: Mapping[str, str] = {
    "abstractive": "A network that writes summaries",
    "encoder": "An encoder of text",
    "extractive": "A network that chooses sentences",
    "keyphrases": "A classifier of keyphrases",
    "summarizer": "A summarizer: it chooses sentences and rewrites them",
}
_SUMMARIZE = "precis summarize --corpus 'jsonl:news/*.jsonl' --output summaries"
USES: Mapping[str, str] = {
    "abstractive": f"    {_SUMMARIZE} --bundle BUNDLE",
    "encoder": "    precis train --records records --encoder BUNDLE --output network",
    "extractive": f"    {_SUMMARIZE} --extractive neural --extractive_bundle BUNDLE",
    "keyphrases": f"    {_SUMMARIZE} --keyphrase_bundle BUNDLE",
    "summarizer": f"    {_SUMMARIZE} --bundle BUNDLE",
}
_WRITES = (
    "It may write what its source does not say. `precis summarize` flags unsupported "
    "numbers and names in `quality_flags`, and that finds not all of them.",
    "People, groups and events may be described with the bias of its data.",
)
_CHOOSES = (
    "It takes sentences as they stand: what a sentence refers to may be missing.",
)
LIMITS: Mapping[str, Sequence[str]] = {
    "abstractive": _WRITES,
    "encoder": ("It writes nothing; other networks are trained from it.",),
    "extractive": _CHOOSES,
    "keyphrases": ("It names phrases of a text, and no others.",),
    "summarizer": (*_WRITES, *_CHOOSES),
}
NO_EVALUATION = (
    "No evaluation is recorded here. `precis evaluate --input RUN` scores the "
    "summaries of a run, and `precis card BUNDLE --evaluation RUN-evaluation` adds its "
    "table, with confidence intervals and beside the first three sentences."
)


def licence_note(licence: str, provenance: Mapping[str, Any]) -> str:
    """What a card says about the licence.

    Args:
      licence: as it was stated, or UNKNOWN_LICENCE.
      provenance: of the bundle.
    """
    if licence != UNKNOWN_LICENCE:
        return f"Licence of this model, as its user states it: {cell(licence)}."
    origins = ["the licence of the texts that it was trained on"]
    if "checkpoint" in provenance:
        origins = ["the licence of the checkpoint that it was imported from"]
    elif (provenance.get("start") or {}).get("init_from"):
        origins.append("that of the network it was trained from")
    return (
        f"No licence is stated. It depends on {' and on '.join(origins)}. State it "
        "with `precis card BUNDLE --license NAME --output FILE` before you pass the "
        "model on."
    )


def table(head: tuple[str, str], rows: Iterable[tuple[str, Any]]) -> str:
    """A table of two columns in Markdown."""
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [f"| {cell(name)} | {cell(value)} |" for name, value in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A value in a cell of a table: on one line, and without a border of the table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;")


def number(value: Any) -> str:
    """A figure with four digits behind the point."""
    return f"{value:.4f}" if isinstance(value, float) else cell(value)
