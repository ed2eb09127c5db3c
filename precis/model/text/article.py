"""An article: a document and the values derived from its text."""

import copy
import functools
import hashlib
import itertools
from collections.abc import Sequence

from precis.model.text.boilerplate import story_start
from precis.model.text.document import STANDARD, Document, TextSettings
from precis.model.text.language import ENGLISH, is_english, language_of
from precis.model.text.normalization import normalise, one_line
from precis.model.text.sentences import Sentence, split_sentences
from precis.model.text.words import read_words
from precis.model.text.wrapping import shown_line, unwrapped_lines


class Article:
    """A document with the values derived from its text.

    Each value is computed once, when it is first used; so a job makes one article per
    document and passes it on.

    document.article  "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
    normalised        "(CNN) -- Rain fell. It was cold.\\nNobody came."
    story_start       9
    body              "Rain fell. It was cold. Nobody came."
    sentences                  [9, 19)     [21, 33)     [35, 47)

    Without cleaning, `body` is `document.article`, and `story_start` is 0.

    Attributes:
      document: the document as it was read.
      settings: how its values are derived.
    """

    def __init__(self, document: Document, settings: TextSettings = STANDARD) -> None:
        """Stores its arguments, the text of the document without HTML if so asked for.

        Raises:
          ValueError: the HTML would take minutes, see `html.to_text`.
        """
        if settings.clean == "html":
            from precis.model.text.html import to_text

            document = document._replace(article=to_text(document.article))
        self.document, self.settings = document, settings
        self._is_raw = settings.clean == "none"

    @classmethod
    def from_text(cls, text: str, settings: TextSettings = STANDARD) -> "Article":
        """Makes an article from a text that is not in a corpus."""
        return cls(Document("", "", text, None, {}), settings)

    def with_id_and_split(self, document_id: str, split: str) -> "Article":
        """This article with another id and split; derived values are kept."""
        article = copy.copy(self)
        article.document = self.document._replace(document_id=document_id, split=split)
        return article

    @functools.cached_property
    def story_start(self) -> int:
        """The first character of `document.article` after the boilerplate."""
        return 0 if self._is_raw else story_start(self.document.article)

    @functools.cached_property
    def normalised(self) -> str:
        """The normalised text, boilerplate included."""
        return normalise(self.document.article)

    @functools.cached_property
    def body(self) -> str:
        """The input of a network: the normalised story on one line, no boilerplate.

        Without cleaning it is the text as it was read, without lone surrogates, which
        cannot be encoded. It is empty if there is only white space.
        """
        if self._is_raw:
            return self._raw if self.normalised else ""
        if any(len(line.splitlines()) > 1 for line in self._lines):
            return one_line("\n".join(map(shown_line, self._lines)))
        text = self.normalised.replace("\n", " ")
        if self.story_start == 0:
            return text
        # Boilerplate ends with a bracket or white space, which compose with no other
        # character. So the normalised text begins with the normalised boilerplate.
        boilerplate = one_line(self.document.article[: self.story_start])
        return text[len(boilerplate) :].lstrip(" ")

    @functools.cached_property
    def language(self) -> str | None:
        """The language of the settings, else of the body; see `language_of`."""
        return self.settings.language or language_of(self.body)

    @property
    def is_english(self) -> bool:
        """Whether the rules for English apply to the text."""
        return is_english(self.language)

    @functools.cached_property
    def _lines(self) -> list[str]:
        """The lines of the story, with line breaks; a wrapped paragraph is one line."""
        lines = self.document.article[self.story_start :].splitlines(keepends=True)
        return unwrapped_lines(lines) if len(lines) > 1 else lines

    @functools.cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the story."""
        text, language = self.document.article, self.language or ENGLISH
        start, lines = self.story_start, self._lines
        return tuple(split_sentences(text, start=start, language=language, lines=lines))

    @functools.cached_property
    def sentence_texts(self) -> list[str]:
        """The text of each sentence."""
        return [sentence.text for sentence in self.sentences]

    @functools.cached_property
    def sentence_lines(self) -> tuple[str, ...]:
        """The text of each sentence, normalised and on one line."""
        return tuple(map(one_line, self.sentence_texts))

    @functools.cached_property
    def joined_words(self) -> str:
        """The words of the text as it was read, boilerplate included, joined by spaces.

        If a sentence ends within a word (`the U.` `S.`), the word is divided there, so
        that every word of a sentence is a word of the article.
        """
        *sentences, head = self._words_by_piece
        return " ".join(filter(None, [head, *sentences]))

    @functools.cached_property
    def words_by_sentence(self) -> dict[str, str]:
        """The words of each sentence, joined by spaces, by the text of the sentence."""
        return dict(zip(self.sentence_texts, self._words_by_piece, strict=False))

    @functools.cached_property
    def _words_by_piece(self) -> Sequence[str]:
        return read_words(self.pieces).joined

    def keep_words(self, words: Sequence[str]) -> None:
        """Stores the words of `pieces`, for callers that read many articles together.

        Args:
          words: the words of each piece, from `read_words`.
        """
        self._words_by_piece = words

    @property
    def pieces(self) -> list[str]:
        """Each sentence with the text, without words, up to the next sentence; and last
        the text before the first sentence.
        """
        text = self.document.article
        starts = [sentence.start for sentence in self.sentences]
        first = starts[0] if starts else len(text)
        ends = [*starts[1:], len(text)]
        pieces = [
            each.text + text[each.end : end]
            for each, end in zip(self.sentences, ends, strict=False)
        ]
        return [*pieces, text[:first]]

    @property
    def has_split_words(self) -> bool:
        """Whether a sentence may end within a word of the text."""
        pairs = itertools.pairwise(self.sentences)
        return any(before.end == after.start for before, after in pairs)

    @functools.cached_property
    def content_sha256(self) -> str:
        """The sha256 of `normalised` in hexadecimal; without cleaning, the sha256 of
        the text as it was read, because then a network sees every difference.
        """
        text = self._raw if self._is_raw else self.normalised
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cached_property
    def _raw(self) -> str:
        """The text as it was read, without lone surrogates."""
        return self.document.article.encode("utf-8", "ignore").decode()


def body_parts(article: Article) -> list[str]:
    """Cuts the body of an article at the borders of its sentences; the joined parts
    are the body.

    article.body   "Rain fell. It was cold. Nobody came. --"
    body_parts     "Rain fell."  " It was cold."  " Nobody came. --"

    A part is a sentence with the space before it and the marks without words after it.
    Sentences are offsets into the text as it was read. If a normalised part differs
    from the body, because characters of two sentences compose, the rest of the body is
    one part.
    """
    body = article.body
    *pieces, head = article.pieces
    pieces = pieces or [""]
    pieces[0] = head[article.story_start :] + pieces[0]
    parts = []
    begin = 0
    for line in map(one_line, pieces):
        place = begin + body.startswith(" ", begin)
        if not line:
            continue
        if not body.startswith(line, place):
            break
        parts.append(body[begin : place + len(line)])
        begin = place + len(line)
    if begin < len(body):
        parts.append(body[begin:])
    return parts
