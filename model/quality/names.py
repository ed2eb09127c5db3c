"""Capitalised names in a summary that its source does not hold.

The first word of a sentence has a capital whatever it is. OPENINGS are words of a
reporter that begin sentences of news without being names, even if the source does not
have them; others are recognised by the source, by stop words and by their stems.
"""

import re
from collections.abc import Iterable, Sequence, Set

from precis.model.quality.dates import MONTHS, WEEKDAYS
from precis.model.quality.numerals import FIRST_OF_SHARES, SCALES, SMALL, TENS
from precis.model.quality.tokens import plain, tokens
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS

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
# Units are not compared: `Rs8,000` may be `8,000 rupees` in the source.
_UNITS = "am pm rs inr usd eur gbp jpy cny rmb aud cad nzd chf hkd sgd krw".split()
# Capitalised words that are no names, or are checked as numbers or dates.
NO_NAMES = STOP_WORDS.union(
    _TITLES, _UNITS, SMALL, TENS, SCALES, FIRST_OF_SHARES, MONTHS, WEEKDAYS
)
# Endings that distinguish a name from its people or things: America, American; Russian,
# Russians.
_ENDINGS = ("s", "i", "is", "n", "ns", "an", "ans", "ian", "ians")
_MIN_STEM_LETTERS = 4
# Abbreviated names, and the words of each that a source may have instead.
_ABBREVIATIONS = {
    "us": ("states", "america", "american", "americans"),
    "uk": ("kingdom", "britain", "british"),
    "un": ("nations",),
    "eu": ("european", "europe"),
}


def vocabulary_of(words: Iterable[str]) -> set[str]:
    """The words of a source in all forms in which a summary may name them.

    obama's   also obama, s
    o'brien   also o, brien, obrien
    u.s       also us, u, s
    """
    vocabulary = set(words)
    for word in [word for word in vocabulary if not word.isalpha()]:
        if ("." in word or "'" in word) and not word[0].isdigit():
            key = _key(word)
            vocabulary.update((key, key.replace("'", ""), *re.split("[.']", word)))
    return vocabulary


def unsupported_names(
    lines: Sequence[str],
    words_by_line: Sequence[Sequence[str]],
    vocabulary: Set[str],
) -> list[str]:
    """The sequences of capitalised words that the source does not hold, as the summary
    writes them: `Angela Merkel`.

    Args:
      lines: of the summary, readable.
      words_by_line: the words of each line.
      vocabulary: `vocabulary_of` the source.
    """
    names: list[str] = []
    for line, words in zip(lines, words_by_line, strict=True):
        if vocabulary >= set(words):  # as in every extract
            continue
        name_end = -1  # where the last unsupported word ends
        for token in tokens(plain(line)):
            start, end = token.span()
            if line[start].islower() or not line[start].isalpha():
                continue
            key = _key(token[0].casefold())
            is_no_name = key in NO_NAMES or key.split("'")[0] in STOP_WORDS
            if is_no_name or _is_known(key, vocabulary):
                continue
            if _SENTENCE_START.search(line, 0, start) and _is_ordinary(
                token[0], key, lines, vocabulary
            ):
                continue
            if name_end >= 0 and not line[name_end:start].strip(" -"):
                names[-1] += line[name_end:end]
            else:
                names.append(line[start:end])
            name_end = end
    return names


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
    word: str, key: str, lines: Iterable[str], vocabulary: Set[str]
) -> bool:
    """Whether the first word of a sentence is capitalised only because it is the first.

    It is if it often begins sentences, if the summary has it in lower case too, or if
    the source has a word of the same stem.
    """
    if word[1:] != word[1:].lower():
        return False
    if key in OPENINGS or any(
        key == token[0] for line in lines for token in tokens(plain(line))
    ):
        return True
    return any(
        other[:2] == key[:2] and stem(other) == stem(key) for other in vocabulary
    )
