"""A document as the page shows it: its line in the list, and its details.

The details hold texts as pieces with marks (`marked_text`), so that the page only has
to write them.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from precis.model.quality.fallback import ABSTRACTIVE, SOURCE
from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.pipelines.report.chosen_rows import ChosenRow
from precis.pipelines.report.marked_text import Piece, Span, cut, find_terms

# Longer texts would make the page slow; few articles have as many characters.
MOST_CHARACTERS = 60_000
_FACTS = {
    "unsupported_numbers": "number",
    "unsupported_dates": "date",
    "unsupported_names": "name",
}
_MEASURES = {
    "words": "words",
    "novel_1grams_percent": "novel words %",
    "novel_2grams_percent": "novel bigrams %",
    "novel_3grams_percent": "novel trigrams %",
    "coverage": "coverage",
    "density": "density",
    "compression": "compression",
    "repetition_rate": "repeated trigrams (share)",
    "mean_log_prob": "mean log-probability",
    "beam_margin": "margin of the best candidate",
}


def list_line(
    row: Mapping[str, Any], chosen: ChosenRow, scores: Mapping[str, float]
) -> dict[str, Any]:
    """What the list shows of a row, and searches in.

    Args:
      row: of the run.
      chosen: why it is on the page.
      scores: ROUGE-1 by system, where the row was scored.
    """
    quality = row["abstractive_quality"] or {}
    shown = _shown_quality(row)
    return {
        "id": row["document_id"],
        "split": row["split"],
        "method": row["summary_method"],
        "flags": row["quality_flags"],
        "summary": row["summary"][:MOST_CHARACTERS],
        "reference": (row["reference_summary"] or "")[:MOST_CHARACTERS],
        "words": shown.get("words", row["article_words"]),
        "confidence": _rounded(quality.get("mean_log_prob")),
        "rouge": _rounded(scores.get("summary", scores.get(row["summary_method"]))),
        "concern": round(chosen.concern, 3),
        "drawn": chosen.is_drawn,
    }


def details(
    row: Mapping[str, Any], article: Article | str, scores: Mapping[str, float]
) -> dict[str, Any]:
    """The details of a document without its source.

    Args:
      row: of the run.
      article: of the row, or why it is not there.
      scores: ROUGE-1 by system.
    """
    written = row["abstractive_quality"]
    reference = row["reference_summary"]
    return {
        "facts": list(_facts(row)),
        "shown": _summary(row["summary"], _shown_quality(row)),
        "extractive_method": row["extractive_method"],
        "extractive": _extractive(row),
        "candidates": [
            {
                "rank": each["rank"],
                "score": _rounded(each["score"]),
                "lines": _lines(each["text"], written if each["rank"] == 1 else None),
                "support": [bool(place) for place in each.get("support") or ()],
            }
            for each in row["abstractive"] or ()
        ],
        "reference": _reference(reference, article) if reference else None,
        "keyphrases": _keyphrases(row),
        "quality": _quality_table(row),
        "scores": {name: _rounded(value) for name, value in scores.items()},
    }


def source(row: Mapping[str, Any], article: Article | str) -> dict[str, Any]:
    """The source of a document with the spans of its sentences marked, or why it is
    not there.

    A mark is `m:` and the method that chose the sentence, or `s:` and the number of the
    written line that it supports.
    """
    if not isinstance(article, Article):
        return {"note": article}
    text = article.document.article
    spans = [
        Span(each["start"], each["end"], f"m:{each['method']}")
        for each in row["extractive"]
    ]
    for candidate in (row["abstractive"] or ())[:1]:
        for line, place in enumerate(candidate.get("support") or (), start=1):
            if place:
                spans.append(Span(place["start"], place["end"], f"s:{line}"))
    pieces = cut(text[:MOST_CHARACTERS], spans)
    result: dict[str, Any] = {"pieces": pieces}
    if len(text) > MOST_CHARACTERS:
        result["note"] = (
            f"the first {MOST_CHARACTERS:,} of {len(text):,} characters are shown"
        )
    return result


def other_summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """The summary that another run shows of the same document."""
    return {
        **_summary(row["summary"], _shown_quality(row)),
        "method": row["summary_method"],
        "flags": row["quality_flags"],
    }


def _shown_quality(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The measures of the summary that is shown; {} where it is the article."""
    if row["summary_method"] == ABSTRACTIVE:
        return row["abstractive_quality"] or {}
    if row["summary_method"] == SOURCE:
        return {}
    quality: Mapping[str, Any] = row["extractive_quality"]
    return quality


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "place", f"{row['source_file']}, {row['source_position']}"
    yield "split", row["split"]
    yield "article", f"{row['article_words']:,} words"
    if row["source_tokens"] is not None:
        read = f"{row['seen_tokens']:,} of {row['source_tokens']:,} tokens"
        passages = f"{row['chunks']} passage{'s' * (row['chunks'] != 1)}"
        yield "read by the network", f"{read}, {passages}, {row['abstractive_method']}"
    yield "shown", row["summary_method"]
    if row["duplicate_of"]:
        yield "same content as", row["duplicate_of"]
    if row["reused_from"]:
        yield "taken over from run", row["reused_from"]


def _summary(text: str, quality: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lines": _lines(text[:MOST_CHARACTERS], quality),
        "unsupported": [
            [kind, term]
            for field, kind in _FACTS.items()
            for term in quality.get(field) or ()
        ],
    }


def _lines(text: str, quality: Mapping[str, Any] | None) -> list[list[Piece]]:
    """The lines of a summary, with what the article does not hold marked."""
    lines = []
    for line in text.splitlines():
        spans: list[Span] = []
        for field, kind in _FACTS.items():
            spans += find_terms(line, (quality or {}).get(field) or (), f"u:{kind}")
        lines.append(cut(line, spans))
    return lines


def _reference(text: str, article: Article | str) -> dict[str, Any]:
    """The reference; a row does not hold its unsupported facts, the article tells."""
    if not isinstance(article, Article):
        return _summary(text, {})
    # Another article, so that what is derived from its text is not kept.
    article = Article.from_text(article.document.article)
    measured = measure(text, read_source(article), QualityConfig())
    return _summary(text, measured._asdict())


def _extractive(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sentences by method, each in document order."""
    methods: dict[str, list[Mapping[str, Any]]] = {}
    for each in row["extractive"]:
        methods.setdefault(each["method"], []).append(each)
    return [
        {
            "method": method,
            "sentences": [
                [each["rank"], _rounded(each["score"]), each["text"]]
                for each in sorted(sentences, key=lambda each: int(each["start"]))
            ],
        }
        for method, sentences in methods.items()
    ]


def _keyphrases(row: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    methods: dict[str, list[list[Any]]] = {}
    for each in row["keyphrases"] or ():
        phrase = [each["phrase"], _rounded(each["score"])]
        methods.setdefault(each["method"], []).append(phrase)
    return methods


def _quality_table(row: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of the extractive and the written summary and of the reference."""
    qualities = {
        row["extractive_method"]: row["extractive_quality"],
        ABSTRACTIVE: row["abstractive_quality"],
        **{each["system"]: each for each in row["other_quality"]},
        "reference": row["reference_quality"],
    }
    systems = {name: each for name, each in qualities.items() if each}
    rows = [
        [title, *(_rounded(quality.get(field)) for quality in systems.values())]
        for field, title in _MEASURES.items()
        if any(quality.get(field) is not None for quality in systems.values())
    ]
    flags = [", ".join(quality["flags"]) for quality in systems.values()]
    return {"systems": list(systems), "rows": [*rows, ["flags", *flags]]}


def _rounded(value: float | None) -> float | None:
    """A number as the page prints it, to four digits; None where it is none."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")
