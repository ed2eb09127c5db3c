"""An article: one document, cleaned and cut once for everything downstream."""

import functools
import hashlib
import itertools

from precis.model.text.boilerplate import story_start
from precis.model.text.document import Document
from precis.model.text.normalization import normalise, one_line
from precis.model.text.sentences import Sentence, split_sentences
from precis.model.text.words import words


class Article:
    """A document with everything that is derived from its text.

    A job makes the article once and passes it on; each derived value is computed when
    it is first asked for, and once.

    Attributes:
      document: as it was read.
      story_start: the first character of `document.article` behind the boilerplate.
    """

    def __init__(self, document: Document, *, strip_boilerplate: bool = True) -> None:
        self.document = document
        self.story_start = story_start(document.article) if strip_boilerplate else 0

    @classmethod
    def from_text(cls, text: str, *, strip_boilerplate: bool = True) -> "Article":
        """The article of a text that stands in no corpus."""
        document = Document("", "", text, None, {})
        return cls(document, strip_boilerplate=strip_boilerplate)

    @functools.cached_property
    def normalised(self) -> str:
        """The normalised text, boilerplate included; content hashes are made of it."""
        return normalise(self.document.article)

    @functools.cached_property
    def body(self) -> str:
        """What a network reads: the story without boilerplate, normalised, on one
        line.
        """
        if self.story_start == 0:
            return self.normalised.replace("\n", " ")
        return one_line(self.document.article[self.story_start :])

    @functools.cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the story: `document.article[start:end] == text`."""
        return tuple(split_sentences(self.document.article, start=self.story_start))

    @functools.cached_property
    def sentence_lines(self) -> tuple[str, ...]:
        """The text of each sentence, normalised and on one line."""
        return tuple(one_line(sentence.text) for sentence in self.sentences)

    @functools.cached_property
    def words(self) -> list[str]:
        """The words of the text as it was read, boilerplate included.

        Where a sentence ends within a word (`the U.` `S.`), the word is cut there too,
        so that no sentence holds a word that the article lacks.
        """
        text = self.document.article
        if not self._word_cuts:
            return words(text)
        pieces = itertools.pairwise([0, *self._word_cuts, len(text)])
        return [word for start, end in pieces for word in words(text[start:end])]

    @property
    def has_split_words(self) -> bool:
        """Whether a sentence may end within a word of the text."""
        return bool(self._word_cuts)

    @functools.cached_property
    def _word_cuts(self) -> list[int]:
        """Where a sentence begins with no space between it and the one before."""
        pairs = itertools.pairwise(self.sentences)
        return [before.end for before, after in pairs if before.end == after.start]

    @functools.cached_property
    def content_sha256(self) -> str:
        """The sha256 of `normalised` in hexadecimal."""
        return hashlib.sha256(self.normalised.encode()).hexdigest()
