"""What a network learns to write of a document: its highlights, its headline or its
keyphrases, all of them from the reference.
"""

from collections.abc import Callable, Mapping

from precis.model.keyphrases.references import reference_phrases
from precis.model.text.normalization import one_line
from precis.model.text.sentences import sentences

PHRASE_SEPARATOR = "; "


def sentence_texts(article: str, *, strip_boilerplate: bool) -> tuple[str, ...]:
    """The sentences of an article as `precis summarize` cuts them, each on one line."""
    return tuple(
        one_line(sentence.text)
        for sentence in sentences(article, strip_boilerplate=strip_boilerplate)
    )


def _highlights(article: str, highlights: str, strip_boilerplate: bool) -> str:
    return highlights


def _headline(article: str, highlights: str, strip_boilerplate: bool) -> str:
    return highlights.partition("\n")[0]


def _keyphrases(article: str, highlights: str, strip_boilerplate: bool) -> str:
    return PHRASE_SEPARATOR.join(
        reference_phrases(
            sentence_texts(article, strip_boilerplate=strip_boilerplate), highlights
        )
    )


# By name: what is made of an article as it was read, its normalised reference, one
# sentence a line, and whether boilerplate is stripped.
TARGETS: Mapping[str, Callable[[str, str, bool], str]] = {
    "highlights": _highlights,
    "headline": _headline,
    "keyphrases": _keyphrases,
}
