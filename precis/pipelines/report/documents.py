"""A document for the page: its line in the list, its details and its source.

Texts are cut into pieces, each with its marks on the page:

    text     Rain fell on Monday. Three roads closed.
    spans    [0, 20) lead     [0, 20) line 1
    pieces   ["Rain fell on Monday.", ["lead", "line 1"]]  [" Three roads closed.", []]

So the page needs no offsets, which count characters in Python and UTF-16 units in a
browser.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model.quality.flags import ABSTRACTIVE, SHORT_SOURCE, SOURCE
from precis.model.text.article import Article
from precis.pipelines.evaluate.scoring import SUMMARY, stored_measures

# Longer texts would make the page slow; few articles are this long.
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
    "support_score": "support in the article",
}

Row = Mapping[str, Any]
Piece = tuple[str, list[str]]


class Span(NamedTuple):
    """A marked part of a text: [start, end) in characters."""

    start: int
    end: int
    mark: str


class ReportedDocument(NamedTuple):
    """A document on the page.

    Attributes:
      row: the row of the document.
      article: the article, or the reason why it is missing.
      scores: ROUGE-1 by system, if the row was scored.
      is_drawn: whether it was chosen at random.
    """

    row: Row
    article: Article | str
    scores: Mapping[str, float]
    is_drawn: bool

    def line(self) -> dict[str, Any]:
        """The content of the list for the document, which can be searched; `reason` is
        the main point for or against the summary.
        """
        row, method = self.row, self.row["summary_method"]
        quality = _shown_quality(row)
        expected = _rounded(row.get("expected_rouge2"))
        # Only the writer's text has a log-probability.
        log_prob = _rounded(quality["mean_log_prob"]) if method == ABSTRACTIVE else None
        rouge = _rounded(self.scores.get(SUMMARY, self.scores.get(method)))
        reasons = []
        if expected is not None:
            reasons.append(f"expected ROUGE-2 {100 * expected:.1f}")
        elif log_prob is not None:
            reasons.append(f"log-probability {log_prob:.2f} per token")
        elif rouge is not None:
            reasons.append(f"ROUGE-1 {100 * rouge:.1f}")
        flags = [flag for flag in row["quality_flags"] if flag != SHORT_SOURCE]
        if flags:
            reasons.append(f"{len(flags)} quality flag{'s' * (len(flags) > 1)}")
        return {
            "id": row["document_id"],
            "split": row["split"],
            "method": method,
            "flags": row["quality_flags"],
            "summary": row["summary"][:MOST_CHARACTERS],
            "reference": (row["reference_summary"] or "")[:MOST_CHARACTERS],
            "words": quality.get("words", row["article_words"]),
            "expected": expected,
            "log_prob": log_prob,
            "rouge": rouge,
            "reason": "; ".join(reasons),
            "drawn": self.is_drawn,
        }

    def details(self) -> dict[str, Any]:
        """The details of the document, without its source."""
        row = self.row
        written, reference = row["abstractive_quality"], row["reference_summary"]
        return {
            "facts": list(_facts(row)),
            "shown": _summary(row["summary"], _shown_quality(row)),
            "extractive_method": row["extractive_method"],
            "extractive": _by_method(
                [
                    {**each, "text": each.get("line") or each["text"]}
                    for each in sorted(row["extractive"], key=_start)
                ],
                "text",
            ),
            "candidates": [
                {
                    "rank": each["rank"],
                    "score": _rounded(each["score"]),
                    "lines": _lines(
                        each["text"], written if each["rank"] == 1 else None
                    ),
                    "support": [bool(place) for place in each.get("support") or ()],
                }
                for each in row["abstractive"] or ()
            ],
            "reference": _summary(reference, {}) if reference else None,
            "keyphrases": _by_method(row["keyphrases"] or (), "phrase"),
            "quality": _quality_table(row),
            "scores": {name: _rounded(value) for name, value in self.scores.items()},
        }

    def source(self) -> dict[str, Any]:
        """The source with marks on its sentences, or the reason why it is missing.

        A mark is `m:` and the method that chose the sentence, or `s:` and the number of
        the written line that it supports.
        """
        if not isinstance(self.article, Article):
            return {"note": self.article}
        text = self.article.document.article
        spans = [
            Span(each["start"], each["end"], f"m:{each['method']}")
            for each in self.row["extractive"]
        ]
        for candidate in (self.row["abstractive"] or ())[:1]:
            for line, place in enumerate(candidate.get("support") or (), start=1):
                if place:
                    spans.append(Span(place["start"], place["end"], f"s:{line}"))
        note = (
            f"only the first {MOST_CHARACTERS:,} of {len(text):,} characters are shown"
        )
        return {
            "pieces": cut(text[:MOST_CHARACTERS], spans),
            "note": note if len(text) > MOST_CHARACTERS else "",
        }


def _shown_quality(row: Row) -> Row:
    """The measures of the shown summary; {} if the article is shown."""
    if row["summary_method"] == SOURCE:
        return {}
    is_written = row["summary_method"] == ABSTRACTIVE
    return row["abstractive_quality" if is_written else "extractive_quality"] or {}


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    yield "place", f"{row['source_file']}, {row['source_position']}"
    yield "split", row["split"]
    yield "article", f"{row['article_words']:,} words"
    if row["source_tokens"] is not None:
        read = f"{row['seen_tokens']:,} of {row['source_tokens']:,} tokens"
        passages = f"{row['chunks']} passage{'s' * (row['chunks'] != 1)}"
        yield "read by the network", f"{read}, {passages}, {row['abstractive_method']}"
    yield "shown", row["summary_method"]
    if row["duplicate_of"]:
        yield "duplicate of", row["duplicate_of"]
    if row["reused_from"]:
        yield "reused from run", row["reused_from"]


def _summary(text: str, quality: Row) -> dict[str, Any]:
    return {
        "lines": _lines(text[:MOST_CHARACTERS], quality),
        "unsupported": [
            [kind, term]
            for field, kind in _FACTS.items()
            for term in dict.fromkeys(quality.get(field) or ())
        ],
    }


def _lines(text: str, quality: Row | None) -> list[list[Piece]]:
    """The lines of a summary, with marks on facts that are not in the article."""
    lines = []
    for line in text.splitlines():
        spans: list[Span] = []
        for field, kind in _FACTS.items():
            spans += find_marks(line, (quality or {}).get(field) or (), f"u:{kind}")
        lines.append(cut(line, spans))
    return lines


def _start(item: Row) -> int:
    return int(item["start"])


def _by_method(items: Iterable[Row], name: str) -> dict[str, list[list[Any]]]:
    """Sentences or keyphrases by method: text, score, and rank if there is one."""
    methods: dict[str, list[list[Any]]] = {}
    for each in items:
        entry = [each[name], _rounded(each["score"]), each.get("rank")]
        methods.setdefault(each["method"], []).append(entry)
    return methods


def _quality_table(row: Row) -> dict[str, Any]:
    """The measures of the extractive summary, the written summary and the reference."""
    systems = {name: each for name, each in stored_measures(row).items() if each}
    rows = [
        [title, *(_rounded(quality.get(field)) for quality in systems.values())]
        for field, title in _MEASURES.items()
        if any(quality.get(field) is not None for quality in systems.values())
    ]
    flags = [", ".join(quality["flags"]) for quality in systems.values()]
    return {"systems": list(systems), "rows": [*rows, ["flags", *flags]]}


def _rounded(value: float | None) -> float | None:
    """Rounds a number to the four digits of the page; NaN gives None."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")


def cut(text: str, spans: Iterable[Span]) -> list[Piece]:
    """Cuts a text into pieces; joined, they give the text again.

    Spans may overlap. Spans outside the text are left out.

    Args:
      text: the text to cut.
      spans: the spans in any order.
    """
    spans = [span for span in spans if span.start < min(span.end, len(text))]
    if not spans:  # as most lines have none
        return [(text, [])] if text else []
    places = {0, len(text), *(span.start for span in spans)}
    places |= {min(span.end, len(text)) for span in spans}
    ordered = sorted(places)
    pieces: list[Piece] = []
    for start, end in zip(ordered, ordered[1:], strict=False):
        marks = [each.mark for each in spans if each.start <= start and end <= each.end]
        pieces.append((text[start:end], list(dict.fromkeys(marks))))
    return pieces


def find_marks(text: str, terms: Sequence[str], mark: str) -> list[Span]:
    """Finds terms in a text, regardless of case and of the characters between words.

    Rows store numbers in lower case and without unit, so `4.5 million` is found in
    `$4.5 million` and `1200` in `1,200`.

    Args:
      text: the text to search.
      terms: numbers, dates or names, as rows store them.
      mark: the mark of the spans.
    """
    spans = []
    for term in terms:
        words = re.findall(r"\w+(?:[.,]\w+)*", term)
        # For `4.5 million`, the text may have `4.5m`.
        for wanted in filter(None, (words, words[:1])):
            pattern = r"\W{1,3}".join(map(_word_pattern, wanted))
            whole = rf"(?<!\w)(?<!\d[.,]){pattern}(?!\d|(?<=\D)\w)"
            matches = list(re.finditer(whole, text, re.IGNORECASE))
            spans += [Span(*match.span(), mark) for match in matches]
            if matches:
                break
    return spans


def _word_pattern(word: str) -> str:
    return ",?".join(word) if word.isdecimal() else re.escape(word)
