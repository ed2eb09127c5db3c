"""Facts that are copied, never invented: the setting supported.

A number or a name is a unit of pieces. A search may write a unit only as the source has
it: from its first piece, in the order of the source, to a piece where the source ends a
unit. Two units without a word between them must stand so in the source too.

    source     ▁John ▁Ker ##ry ▁paid ▁$   4   .   5   ##m  ▁to  ▁4   ▁banks
    begins       x     x         x    x   x                 x    x    x
    joined                  x                 x   x    x

    written    ▁Ker      may be followed by ##ry only
    written    ▁Ker ##ry may be followed by every word, but by no name or number that
                         does not follow there, and by no other ##piece
    written    4         may be followed by `.` only, as no unit of the source is this 4
    written    ▁4        may be followed by every word

Every hypothesis keeps the places of the source that its last unit may have been copied
from. So the source is an automaton whose states are sets of places, and a step of it
costs as much as a comparison with the source. Places of a hypothesis that writes
`▁$ 4 . 5`, and what `follow_facts` finds of its pieces:

    source     ▁John ▁Ker ##ry ▁paid ▁$   4   .   5   ##m  ▁to  ▁4   ▁banks
    ▁$                                                                        no unit
    4                                     x                                   begun
    .                                         x                               continued
    5                                             x                           continued
    ##m                                                x              continued; may end
"""

from typing import NamedTuple

from precis.model.backend import Tensor, ops
from precis.model.cache import Cache
from precis.model.logits import restore_chosen
from precis.model.search.scores import LOWEST_SCORE

FACTS = "facts"  # the name of its parts in a cache

# The classes of pieces that may be forbidden.
FREE = 0  # never by itself: most words, punctuation
FACT = 1  # begins a number or a name behind a space
OPENING = 2  # a word with a capital that may open a sentence without being a name
INNER = 3  # continues a word
INNER_NAME = 4  # has a capital and no space before it
INNER_NUMBER = 5  # has a digit and no space before it
CLASSES = 6


# What else is known of a piece, as bits of its marks.
WHOLE = 1  # a word with a capital that needs no support: `The`, but not `Theo`
CONNECTS = 2  # punctuation that may stand within a unit: `4.5`, `Jean-Claude`
WORD = 4  # ends in a letter or a digit
NUMBER = 8  # holds a digit or is the name of a number
SCALE = 16  # multiplies the number before it: `million`
OPENS = 32  # behind it a sentence begins


class PieceTable(NamedTuple):
    """What a search knows of the V pieces of a vocabulary, as int32 [V].

    Attributes:
      classes: one of the classes above.
      marks: the bits above.
      capitalised: the same piece with a capital, or -1.
    """

    classes: Tensor
    marks: Tensor
    capitalised: Tensor


class FactSource(NamedTuple):
    """What a search may copy facts from.

    Attributes:
      source: int32 [B, S], negative at padding.
      table: of the vocabulary that sources and summaries share.
    """

    source: Tensor
    table: PieceTable


class SourceUnits(NamedTuple):
    """The units of B sources.

    Attributes:
      tokens: int32 [B, S]; -1 at padding.
      joined: bool [B, S], belongs to the unit of the token before it.
      capitalised: int32 [B, S], the same piece with a capital where a unit begins; -1
          elsewhere and where there is none.
    """

    tokens: Tensor
    joined: Tensor
    capitalised: Tensor

    @property
    def begins(self) -> Tensor:
        """The first of each unit, bool [B, S]."""
        return (self.tokens >= 0) & ops.logical_not(self.joined)

    @property
    def ends(self) -> Tensor:
        """The last of each unit, bool [B, S]."""
        return ops.logical_not(_behind(self.joined))


class WrittenUnit(NamedTuple):
    """The unit that each hypothesis has written last.

    Attributes:
      places: bool [B, K, S], the places of the source that its last piece may be.
      is_open: bool [B, K], the last piece belongs to a unit.
      may_end: bool [B, K], the unit is as long as one of the source.
      is_adjacent: bool [B, K], the last piece is the end of a fact, so that another one
          follows it at once.
      marks: int32 [B, K], of the last piece.
    """

    places: Tensor
    is_open: Tensor
    may_end: Tensor
    is_adjacent: Tensor
    marks: Tensor


def start_facts(cache: Cache, fact_source: FactSource | None, beams: int) -> Cache:
    """Adds the units of B sources to the cache of a search of K hypotheses."""
    if fact_source is None:
        return cache
    table = PieceTable(*(ops.convert_to_tensor(part) for part in fact_source.table))
    batch, length = ops.shape(fact_source.source)
    no = ops.zeros((batch, beams), dtype="bool")
    places = ops.zeros((batch, beams, length), dtype="bool")
    marks = ops.full((batch, beams), OPENS, dtype="int32")
    written = WrittenUnit(places, no, ops.logical_not(no), no, marks)
    return Cache(
        per_beam={**cache.per_beam, FACTS: written},
        per_document={
            **cache.per_document,
            FACTS: source_units(fact_source.source, table),
        },
        shared={**cache.shared, FACTS: table},
    )


def source_units(source: Tensor, table: PieceTable) -> SourceUnits:
    """Finds the units of sources, int32 [B, S]."""
    exists = source >= 0
    known = ops.maximum(source, 0)
    marks = ops.where(exists, ops.take(table.marks, known, axis=0), 0)
    is_inner = exists & (ops.take(table.classes, known, axis=0) >= INNER)
    was_word = _before(_has(marks, WORD))
    # `4.5`, but not `4.` at the end of a sentence.
    is_inside = _has(marks, CONNECTS) & was_word & _behind(is_inner)
    joined = (
        (is_inner & (was_word | _before(is_inside)))
        | is_inside
        | (_has(marks, SCALE) & _before(_has(marks, NUMBER)))
    )
    capitalised = ops.take(table.capitalised, known, axis=0)
    begins = exists & ops.logical_not(joined)
    return SourceUnits(source, joined, ops.where(begins, capitalised, -1))


def follow_facts(cache: Cache, tokens: Tensor) -> WrittenUnit | None:
    """Reads the last token of each hypothesis.

    Args:
      cache: before the step.
      tokens: int32 [B, K].

    Returns:
      The unit that each has written last; None where facts are not watched.
    """
    if FACTS not in cache.per_beam:
        return None
    before: WrittenUnit = cache.per_beam[FACTS]
    units: SourceUnits = cache.per_document[FACTS]
    table: PieceTable = cache.shared[FACTS]
    classes = ops.take(table.classes, tokens, axis=0)
    marks = ops.take(table.marks, tokens, axis=0)
    connects, is_inner = _has(marks, CONNECTS), classes >= INNER
    is_opening = _has(before.marks, OPENS) & ops.equal(classes, OPENING)
    # Needs no support. A word of the source may still tell how it goes on.
    is_free = _has(marks, WHOLE) | is_opening
    is_fact = ops.not_equal(classes, FREE) & ops.not_equal(classes, INNER)
    token = tokens[..., None]  # [B, K, 1]
    is_same = ops.equal(units.tokens[:, None], token)  # [B, K, S]
    is_next = _before(before.places)
    continued = is_same & is_next & units.joined[:, None]
    is_scaled = _has(marks, SCALE) & ops.any(continued, axis=-1)
    is_continued = before.is_open & (is_inner | connects | is_scaled)
    is_begun = (
        (is_fact | is_free)
        & ops.logical_not(is_continued)
        & ops.logical_not(is_inner & _has(before.marks, WORD))
    )
    is_capitalised = _has(before.marks, OPENS)[..., None] & ops.equal(
        units.capitalised[:, None], token
    )
    begun = (is_same & units.begins[:, None]) | is_capitalised
    is_adjacent = before.is_adjacent & ops.logical_not(is_free)
    begun = begun & (is_next | ops.logical_not(is_adjacent)[..., None])
    places = (continued & is_continued[..., None]) | (begun & is_begun[..., None])
    is_open = is_begun | is_continued
    return WrittenUnit(
        places=places,
        is_open=is_open,
        may_end=ops.any(places & units.ends[:, None], axis=-1)
        | (is_begun & is_free)
        | (is_continued & connects & before.may_end)
        | ops.logical_not(is_open),
        is_adjacent=is_open
        & ops.logical_not(connects)
        & ops.logical_not(is_begun & is_free),
        marks=marks,
    )


def keep_facts(cache: Cache, written: WrittenUnit | None) -> Cache:
    """The cache of a network's step with the units of its hypotheses."""
    if written is None:
        return cache
    return cache._replace(per_beam={**cache.per_beam, FACTS: written})


def must_continue(cache: Cache) -> Tensor:
    """Whether the unit of each hypothesis is incomplete, bool [B, K]; None where facts
    are not watched.
    """
    if FACTS not in cache.per_beam:
        return None
    return ops.logical_not(cache.per_beam[FACTS].may_end)


def lower_new_facts(logits: Tensor, cache: Cache) -> Tensor:
    """Lowers the logits of tokens that would invent a fact.

    Args:
      logits: float32 [B, K, V] of the next token.
      cache: with the units of each hypothesis, the last token included.

    Returns:
      float32 [B, K, V], LOWEST_SCORE or below at forbidden tokens.
    """
    if FACTS not in cache.per_beam:
        return logits
    written: WrittenUnit = cache.per_beam[FACTS]
    units: SourceUnits = cache.per_document[FACTS]
    table: PieceTable = cache.shared[FACTS]
    must_continue = ops.logical_not(written.may_end)
    always = ops.ones_like(must_continue)
    by_class = [
        ops.zeros_like(must_continue),
        always,
        ops.logical_not(_has(written.marks, OPENS)),
        written.is_open,
        written.is_open | ops.logical_not(_has(written.marks, WORD)),
        always,
    ]
    forbidden = ops.stack([part | must_continue for part in by_class], axis=-1)
    # One product writes the whole vocabulary once.
    members = ops.one_hot(table.classes, CLASSES, axis=0, dtype=logits.dtype)  # [C, V]
    lowered = logits + ops.matmul(
        ops.cast(forbidden, logits.dtype) * LOWEST_SCORE, members
    )
    ids, is_allowed = _supported_tokens(written, units, table)
    known = ops.maximum(ids, 0)  # [B, 2 S]
    is_fact = ops.not_equal(ops.take(table.classes, known, axis=0), FREE)
    # Only these were lowered.
    is_lowered = is_fact[:, None] | must_continue[..., None]
    chosen = ops.broadcast_to(known[:, None], ops.shape(is_allowed))
    return restore_chosen(lowered, logits, chosen, is_allowed & is_lowered)


def _supported_tokens(
    written: WrittenUnit, units: SourceUnits, table: PieceTable
) -> tuple[Tensor, Tensor]:
    """The tokens of the source that may be written next.

    Returns:
      int32 [B, 2 S]: each token of the source, then each with a capital; bool
      [B, K, 2 S]: whether it is allowed.
    """
    is_next = _before(written.places)  # [B, K, S]
    goes_on = is_next & units.joined[:, None]
    classes = ops.take(table.classes, ops.maximum(units.tokens, 0), axis=0)
    begins = (
        written.may_end[..., None]
        & units.begins[:, None]
        & ops.logical_not(written.is_open[..., None] & (classes >= INNER)[:, None])
    )
    follows = begins & (is_next | ops.logical_not(written.is_adjacent)[..., None])
    opens = begins & _has(written.marks, OPENS)[..., None]
    opens = opens & (units.capitalised >= 0)[:, None]
    ids = ops.concatenate([units.tokens, units.capitalised], axis=1)
    return ids, ops.concatenate([goes_on | follows, opens], axis=-1)


def _has(marks: Tensor, bit: int) -> Tensor:
    """Whether marks have a bit; bool of their shape."""
    return ops.not_equal(ops.bitwise_and(marks, bit), 0)


def _before(values: Tensor) -> Tensor:
    """The value at the place before, False at the first place; bool [..., S]."""
    return ops.concatenate([ops.zeros_like(values[..., :1]), values[..., :-1]], axis=-1)


def _behind(values: Tensor) -> Tensor:
    """The value at the place behind, False at the last place; bool [..., S]."""
    return ops.concatenate([values[..., 1:], ops.zeros_like(values[..., :1])], axis=-1)
