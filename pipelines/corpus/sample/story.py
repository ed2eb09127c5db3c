"""The material of a story, and how an article is composed of it."""

from typing import NamedTuple

from precis.pipelines.corpus.sample.names import Draw


class Story(NamedTuple):
    """The material of one article and its summary.

    Attributes:
      openings: first sentences that set the scene; one is used.
      leads: sentences near the top that tell some of the facts and some other names;
          one is used.
      facts: what the summary needs, each in several wordings; all facts are told, in
          one wording each, in any order.
      asides: sentences about other people, places and figures; some are used.
      endings: last sentences; one is used or none.
      highlights: the summary, two sentences.
    """

    openings: list[str]
    leads: list[str]
    facts: list[list[str]]
    asides: list[str]
    endings: list[str]
    highlights: tuple[str, str]


# Layouts of an article, by the number of facts: o opening, l lead, f fact, a aside,
# e ending, | a new paragraph.
LAYOUTS = {
    2: (
        "ola|afa|faa|e",
        "lo|aaa|fa|fae",
        "ola|aa|faa|f",
        "lao|aafa|aaf",
        "ol|aaf|afa|e",
    ),
    3: (
        "ol|afa|faa|fe",
        "lo|aaf|aff|ae",
        "olf|aa|faa|fe",
        "lao|aff|afa|e",
        "ol|afaf|aaf|e",
        "ola|af|afa|fa",
    ),
    4: (
        "ol|afa|faf|fe",
        "lo|aaf|faf|fa",
        "olf|aaf|aff|e",
        "lao|af|faf|fe",
        "ol|afaf|aff|e",
        "ola|aff|afa|f",
    ),
}


def compose(draw: Draw, story: Story) -> str:
    """The article: paragraphs of sentences with an empty line between them."""
    sentences = {
        "o": [draw.one(story.openings)],
        "l": [draw.one(story.leads)],
        "f": [draw.one(wordings) for wordings in draw.shuffled(story.facts)],
        "a": draw.shuffled(story.asides),
        "e": [draw.one(story.endings)],
    }
    paragraphs = draw.one(LAYOUTS[len(story.facts)]).split("|")
    return "\n\n".join(
        " ".join(sentences[letter].pop() for letter in paragraph)
        for paragraph in paragraphs
    )
