"""The probability that a sentence of English news is informative by itself.

Captions, headings, links to other pages, openers such as "It starts with buildings.",
and broken sentences are not. The probability is a logistic regression on features of
the sentence. Its weights were fitted to 1,600 judged sentences of summaries, 9 % of
which told nothing or were broken; docs/METHODS.md says how well it finds them.

    sentence                                              confidence
    Troops seized the old bridge and two villages.        0.82
    Photo: the old bridge.                                0.01
"""

import functools
import math
import operator
import re
from collections.abc import Sequence

_VERBS = frozenset(
    (
        "is are was were be been has had have having will would can could may might "
        "must shall should did does do 's 're 've 'll 'd said says say told tell "
        "tells became become becomes died won wins made make makes took take takes "
        "came come comes went go goes got get gets began begin begins left leave "
        "leaves led lead leads fled ran run runs fell fall falls gave give gives saw "
        "see sees lost lose loses met meet meets held hold holds spent spend spends "
        "face faces remain remains found find finds knew know knows thought think "
        "thinks kept keep keeps brought bring brings bought buy buys built build "
        "builds caught hit hits cut cuts put puts set sets let lets shot struck stood "
        "stand stands sat sit sits wore wear wears wrote write writes spoke speak "
        "speaks broke break breaks drove drive drives grew grow grows threw sent send "
        "sends sold sell sells paid pay pays felt feel feels heard hear hears read "
        "reads rose rise rises chose show shows want wants need needs seem seems look "
        "looks live lives work works play plays call calls ask asks believe believes "
        "claim claims include includes expect expects plans hopes try tries use uses "
        "help helps start starts turn turns moves follows allows mean means n't isn "
        "aren wasn weren hasn haven hadn couldn wouldn shouldn doesn didn don owe owes"
    ).split()
)
_VERB_TOKEN = re.compile(r"n't\b|'(?:s|re|ve|ll|d)\b|\w+")
_WORD = re.compile(r"\w+")
# Weights of the constant 1, the logarithm of the number of words, "no verb", and the
# patterns: a clause that needs another clause; a colon; a dash; a verb in the past; an
# end within a clause; the reader or the writer; a word of a caption or of a link.
_CONSTANT, _LOG_WORDS, _NO_VERB = -4.48, 2.58, -1.89
_SIGNS = {
    r"^\W*(?:because|unless|why|how|what|when|where|who|if|which)\b[^,]*$": -2.84,
    r":": -1.84,
    r" (?:--?|–|—) ": -0.86,
    r"\b(?:was|were|had|has been|have been|did|\w{3,}ed)\b": 0.66,
    r"\b(?:and|or|but|the|a|an|of|to|with|for|in|by|as|that|which|who|is|are|was|"
    r"were) ?\.?\s*$": -1.82,
    r"\b(?:i|my|me|we|our|us|you|your)\b": -1.0,
    r"\b(?:pictured?|above|below|left|right|clockwise|photos?|image|file|poses|"
    r"posing|seen|scene|here|see|video|watch|gallery|read|download|show|map)\b": -0.68,
}
_PATTERNS = tuple(map(re.compile, _SIGNS))  # of text in lower case
_WEIGHTS = (_CONSTANT, _LOG_WORDS, _NO_VERB, *_SIGNS.values())
_MAX_CACHED_CHARACTERS = 1_000


def sentence_confidence(sentence: str) -> float:
    """The probability that a sentence is informative by itself, from 0 to 1."""
    is_short = len(sentence) <= _MAX_CACHED_CHARACTERS
    return (_cached_confidence if is_short else _confidence)(sentence)


def _confidence(sentence: str) -> float:
    text = sentence.lower()
    features = (
        1.0,
        math.log(max(len(_WORD.findall(text)), 1)),
        not has_verb(text),
        *(pattern.search(text) is not None for pattern in _PATTERNS),
    )
    return logistic(_WEIGHTS, features)


# Several steps ask for the sentences of the same document.
_cached_confidence = functools.lru_cache(4096)(_confidence)


def logistic(weights: Sequence[float], features: Sequence[float]) -> float:
    """The probability of a logistic regression, from 0 to 1."""
    logit = sum(map(operator.mul, weights, features))
    return 0.5 * (1.0 + math.tanh(0.5 * logit))  # tanh does not overflow


def has_verb(text: str) -> bool:
    """Whether an English text has a word that looks like a verb."""
    tokens = (
        match[0] for match in _VERB_TOKEN.finditer(text.lower().replace("’", "'"))
    )
    return any(
        token in _VERBS or (len(token) > 3 and token.endswith("ed")) for token in tokens
    )
