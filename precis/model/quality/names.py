"""Capitalised names in a summary that its source does not hold.

A name is unsupported if the source does not have one of its words, or has two adjacent
words of it, but never in the same mention:

    source      Judge Orlando M. Hudson heard of Craig Hicks.
    supported   Orlando Hudson, Judge Hudson, Craig Hicks
    not         Orlando Hicks

The first word of a sentence always has a capital. OPENINGS are words that begin
sentences of news and are not names, even if the source does not have them. Other such
words are recognised by the source, by stop words and by their stems.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence, Set

from precis.model.quality.dates import MONTHS, WEEKDAYS
from precis.model.quality.numerals import FIRST_OF_SHARES, SCALES, SMALL, TENS
from precis.model.quality.tokens import is_quoted, plain, tokens
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import ChunkCache

_ADVERBS = """
about according across actually additionally afterward afterwards ago ahead almost alone
along already also although always amid among another anyone apparently around aside
away back because besides better beyond clearly currently decades despite earlier early
either else elsewhere enough especially even eventually ever every everyone everything
finally fortunately frequently generally great hours however hundreds indeed initially
inside instead just largely last late lately later latest least less likely long lots
many maybe meantime meanwhile millions minutes months moreover mostly much near nearly
neither never nevertheless new next nobody none nonetheless nothing now nowadays
occasionally often only originally otherwise outside overall per perhaps possible
possibly presumably previously probably quite rarely rather recently regardless roughly
several shortly similarly since so somebody someone something sometimes soon still
subsequently such suddenly surprisingly thankfully then therefore thousands thus today
together tomorrow tonight toward towards twice two typically ultimately unfortunately
unless unlike upon usually versus weeks well whatever whenever whether within without
worse years yes yesterday yet
"""

_NEWS = """
activists advocates agents aide aides analyst analysts attorney attorneys authorities
campaigners children citizens coach commentator commentators companies company
conservatives couple court critics customers defendant democrats detectives doctor
doctors driver drivers economists editor editors email emails employees engineers
evidence executives expert experts families family fans father fellow firefighters five
footage forensic former friends girl girls government group groups historian host
husband indictment insider insiders investigation investigator investigators investors
judge jury killer lawmaker lawmakers lawsuit lawyer lawyers leaders man manager medics
men mom mother mothers motorist neighbors neighbours news newspaper newspapers officer
officers official officials one opponents opposition organizers owner owners paramedics
parent parents passengers patients people photo photographer photos pictures player
players police politician politicians polls president pro producer producers professor
prosecution prosecutor prosecutors protesters protestors publisher report reporter
reporters reports rescuers research researcher researchers residents retailers rival
scientist scientists sheriff shoppers soldiers source sources spokesman spokesperson
spokeswoman statement student students studies study supporters survey survivors suspect
suspects teacher teachers teams teenager teenagers three tourists troops user users
victim victims video videos viewers visitors voters warning watch wife witness witnesses
woman women worker workers writer writers youth
"""

OPENINGS = frozenset([*_ADVERBS.split(), *_NEWS.split()])


# The text before the first word of a sentence or a quotation.
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;]|--|[-–—] |[\"“”‘`(\[])\W*$|(?:^|\s)['’]\W*$"
)
_TITLES = "mr mrs ms miss dr prof sir dame lord lady rev".split()
# The point after these words does not end a mention.
_SHORTENED = frozenset(["jr", "sr", "st", "gen", "gov", "rep", "sen", "lt", *_TITLES])
# Units are not compared: `Rs8,000` may be `8,000 rupees` in the source.
_UNITS = "am pm rs inr usd eur gbp jpy cny rmb aud cad nzd chf hkd sgd krw".split()
# Capitalised words that are not names, or are checked as numbers or dates.
NO_NAMES = STOP_WORDS.union(
    _TITLES, _UNITS, SMALL, TENS, SCALES, FIRST_OF_SHARES, MONTHS, WEEKDAYS
)
# Endings that distinguish a name from its people or things: America, American; Russian,
# Russians.
_ENDINGS = ("s", "i", "is", "n", "ns", "an", "ans", "ian", "ians")
_MIN_STEM_LETTERS = 4
# Words within a mention, around which names may change places: Department of Justice,
# Justice Department.
_LINKS = frozenset("of and the for de la le del der da al bin van von".split())
# Marks that end a mention.
_BREAK = re.compile(r'[,;:!?"()]')
# Abbreviated names, and the words of each that a source may have instead.
_ABBREVIATIONS = {
    "us": ("states", "america", "american", "americans"),
    "uk": ("kingdom", "britain", "british"),
    "un": ("nations",),
    "eu": ("european", "europe"),
}


class SourceNames:
    """The words of a source, and the names that they make.

    Attributes:
      text: the plain text of the source.
    """

    def __init__(self, text: str) -> None:
        """Stores a plain text."""
        self.text = text

    @functools.cached_property
    def lower_text(self) -> str:
        """The text in lower case, with a space at both ends."""
        return f" {self.text.lower()} "

    @functools.cached_property
    def vocabulary(self) -> set[str]:
        """The words of the source, in all forms in which a summary may name them.

        obama's   also obama, s
        o'brien   also o, brien, obrien
        u.s       also us, u, s
        """
        text = self.lower_text if self.text.isascii() else self.text
        chunks = set(text.split(" "))
        vocabulary = set(filter(str.isalpha, chunks))
        others = _FORMS.values_of(list(chunks - vocabulary))
        if not text.isascii():
            vocabulary = set(map(str.casefold, vocabulary))
        return vocabulary.union(" ".join(others).split())

    def quotes(self, word: str) -> bool:
        """Whether the text has a word unchanged: a fast check before `vocabulary`, true
        for most words.
        """
        text = self.lower_text
        if word.isalpha():
            return is_quoted(word, text)
        return f" {word} " in text or f" {word}. " in text

    def has(self, word: str) -> bool:
        """Whether a word is in the vocabulary."""
        return self.quotes(word) or word in self.vocabulary

    def joins(self, first: str, second: str) -> bool:
        """Whether two words may be adjacent: the source has them in the same mention,
        or has one of them in lower case.

        A mention consists of capitalised words with only spaces, hyphens, `_LINKS` and
        the points of initials between them.

        Args:
          first, second: the words in the form of `_key`.
        """
        mention: list[str] = []
        is_linked = False
        before: re.Match[str] | None = None
        parts = [
            part
            for part in _BREAK.split(self.text)
            for letters in [part.casefold().replace(".", "")]
            if first in letters or second in letters
        ]
        text = "\n".join(parts)
        for token in tokens(text):
            key = _key(token[0].casefold())
            is_name = token[0][0].isupper()
            if not is_name:
                if key in (first, second):
                    return True
                if key not in _LINKS:  # as most words
                    before = None
                    continue
            if before is None or not _is_joined(text, before, token):
                mention, is_linked = [], False
            before = token
            if not is_name:
                is_linked = True
            elif key == second and first in mention:
                return True
            elif is_linked and key == first and second in mention:
                return True
            else:
                mention.append(key)
        return False


def _is_joined(text: str, before: re.Match[str], token: re.Match[str]) -> bool:
    """Whether a word may belong to the same name as the one before it."""
    gap = text[before.end() : token.start()]
    is_short = len(before[0]) == 1 or before[0].casefold() in _SHORTENED
    is_inside = gap in (" ", "-") or (gap == ". " and is_short)
    return is_inside and not before[0].endswith("'s")


def joined_names(
    line: str, words: Iterable[re.Match[str]], source: SourceNames
) -> list[str]:
    """The names of a line that join words from several names of the source.

    Args:
      line: a plain line of the summary.
      words: the tokens of the line.
      source: the names of the source.
    """
    names: list[str] = []
    capitalised = [word for word in words if word[0][0].isupper()]
    for before, word in itertools.pairwise(capitalised):
        name = line[before.start() : word.end()]
        # A fast check: most names are in the text unchanged.
        if not _is_joined(line, before, word) or name.removesuffix("'s") in source.text:
            continue
        first, second = keys = [_key(each[0].casefold()) for each in (before, word)]
        are_names = all(
            len(key) > 1
            and key not in NO_NAMES
            and key not in OPENINGS
            and source.has(key)
            for key in keys
        )
        if are_names and not source.joins(first, second):
            names.append(name)
    return names


def unsupported_names(
    lines: Sequence[str],
    words_by_line: Sequence[Sequence[re.Match[str]]],
    source: SourceNames,
) -> list[str]:
    """The sequences of capitalised words that the source does not hold, as the summary
    writes them: `Angela Merkel`.

    Args:
      lines: the readable lines of the summary.
      words_by_line: the tokens of each line.
      source: the names of the source.
    """
    names: list[str] = []
    for line, words in zip(lines, words_by_line, strict=True):
        name_end = -1  # where the last unsupported word ends
        for token in words:
            start, end = token.span()
            if line[start].islower() or not line[start].isalpha():
                continue
            word = token[0].casefold()
            key = _key(word)
            is_no_name = key in NO_NAMES or key.split("'")[0] in STOP_WORDS
            if is_no_name or source.quotes(word.removesuffix("'s")):
                continue
            if _SENTENCE_START.search(line, 0, start) and _is_ordinary(
                token[0], key, lines, source
            ):
                continue
            if _is_known(key, source.vocabulary):
                continue
            if name_end >= 0 and not line[name_end:start].strip(" -"):
                names[-1] += line[name_end:end]
            else:
                names.append(line[start:end])
            name_end = end
    return names


def _forms(chunk: str) -> str:
    """The words of a text without spaces, in all forms of `vocabulary`."""
    # Only now without case, because some letters become longer.
    words = {each[0].casefold() for each in tokens(chunk)}
    for word in list(words):
        if ("." in word or "'" in word) and not word[0].isdigit():
            key = _key(word)
            words.update((key, key.replace("'", ""), *re.split("[.']", word)))
    return " ".join(words)


_FORMS = ChunkCache(functools.partial(map, _forms))


def _key(word: str) -> str:
    """The form in which a name is looked up: without points and possessive."""
    return word.replace(".", "").removesuffix("'s")


def _is_known(key: str, vocabulary: Set[str]) -> bool:
    """Whether the source has a name, also with another ending or in full."""
    if key in vocabulary or not vocabulary.isdisjoint(_ABBREVIATIONS.get(key, ())):
        return True
    forms = {key + ending for ending in _ENDINGS}
    forms |= {key.removesuffix(ending) for ending in _ENDINGS}
    return any(
        form in vocabulary and min(len(form), len(key)) >= _MIN_STEM_LETTERS
        for form in forms
    )


def _is_ordinary(
    word: str, key: str, lines: Iterable[str], source: SourceNames
) -> bool:
    """Whether the first word of a sentence is capitalised only because it is the first:
    it often begins sentences, the summary has it in lower case too, or the source has a
    word with the same stem.
    """
    if word[1:] != word[1:].lower():
        return False
    if key in OPENINGS or any(
        key == token[0] for line in lines for token in tokens(plain(line))
    ):
        return True
    start, root = key[:2], stem(key)
    alike = [other for other in source.vocabulary if other[:2] == start]
    return root in map(stem, alike)
