"""The copy constraint: numbers and names are written only as the source has them.

A number or a name is a unit of pieces. A written unit starts at the first piece of a
source unit, follows the source piece by piece, and ends only where a source unit ends.
Two units with no word between them must follow each other in the source too.

    source     ▁John ▁Ker ##ry ▁paid ▁$   4   .   5   ##m  ▁to  ▁4   ▁banks
    begins       x     x         x    x   x                 x    x    x
    joined                  x                 x   x    x

    written    ▁Ker      may be followed by ##ry only
    written    ▁Ker ##ry may be followed by any word, except another ##piece, and a name
                         or number that does not follow in the source
    written    4         may be followed by `.` only, as no source unit ends at this 4
    written    ▁4        may be followed by any word

Each hypothesis keeps the source places that its last piece may be copied from. A step
costs as much as comparing a token with the source. The places of a hypothesis that
writes `▁$ 4 . 5 ##m`, and what `follow_facts` says of each piece:

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

FACTS = "facts"  # the name of the cache entries of this module

# Classes of pieces, by when they are forbidden.
FREE = 0  # never forbidden by its class: most words, punctuation
FACT = 1  # begins a number or a name after a space
OPENING = 2  # a word with a capital that may open a sentence without being a name
INNER = 3  # continues a word
INNER_NAME = 4  # has a capital and no space before it
INNER_NUMBER = 5  # has a digit and no space before it
CLASSES = 6


# Other properties of a piece, as bits of its marks.
WHOLE = 1  # a capitalised word that need not be in the source: `The`, but not `Theo`
CONNECTS = 2  # punctuation that may occur within a unit: `4.5`, `Jean-Claude`
WORD = 4  # ends in a letter or a digit
NUMBER = 8  # holds a digit or is the name of a number
SCALE = 16  # multiplies the number before it: `million`
OPENS = 32  # a sentence begins after it


class PieceTable(NamedTuple):
    """The properties of the V pieces of a vocabulary, each int32 [V].

    Attributes:
      classes: the class, FREE to INNER_NUMBER.
      marks: the bits WHOLE to OPENS.
      capitalised: the id of the same piece with a capital, or -1.
    """

    classes: Tensor
    marks: Tensor
    capitalised: Tensor


class FactSource(NamedTuple):
    """The sources that a search may copy facts from.

    Attributes:
      source: int32 [B, S], negative at padding.
      table: the pieces of the vocabulary that sources and summaries share.
    """

    source: Tensor
    table: PieceTable


class SourceUnits(NamedTuple):
    """The units of B sources.

    Attributes:
      tokens: int32 [B, S]; -1 at padding.
      joined: bool [B, S], whether a token belongs to the unit of the token before it.
      capitalised: int32 [B, S], at the first token of a unit the same piece with a
          capital; -1 elsewhere, or if there is no such piece.
    """

    tokens: Tensor
    joined: Tensor
    capitalised: Tensor

    @property
    def begins(self) -> Tensor:
        """Whether a token is the first of a unit, bool [B, S]."""
        return (self.tokens >= 0) & ops.logical_not(self.joined)

    @property
    def ends(self) -> Tensor:
        """Whether a token is the last of a unit, bool [B, S]."""
        return ops.logical_not(_behind(self.joined))


class WrittenUnit(NamedTuple):
    """The unit that each hypothesis has written last.

    Attributes:
      places: bool [B, K, S], the source places that the last piece may be copied from.
      is_open: bool [B, K], whether the last piece belongs to a unit.
      may_end: bool [B, K], whether the unit may end here; True if no unit is open.
      is_adjacent: bool [B, K], whether the last piece belongs to a fact, so that a
          fact written next follows with no word between them.
      marks: int32 [B, K], the marks of the last piece.
    """

    places: Tensor
    is_open: Tensor
    may_end: Tensor
    is_adjacent: Tensor
    marks: Tensor


def start_facts(cache: Cache, fact_source: FactSource | None, beams: int) -> Cache:
    """Adds the units of B sources to the cache of a search with K hypotheses."""
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
    """Finds the units of sources, int32 [B, S], negative at padding."""
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
    """Follows the last token of each hypothesis through the units of its source.

    Args:
      cache: the cache before the step.
      tokens: int32 [B, K], the last tokens.

    Returns:
      The last unit of each hypothesis; None without the copy constraint.
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
    # Need not be in the source; if it is, the source may say how the unit continues.
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
    """Puts the last units of the hypotheses into the cache that a step returned."""
    if written is None:
        return cache
    return cache._replace(per_beam={**cache.per_beam, FACTS: written})


def must_continue(cache: Cache) -> Tensor:
    """Whether the last unit of each hypothesis is incomplete, bool [B, K]; None
    without the copy constraint.
    """
    if FACTS not in cache.per_beam:
        return None
    return ops.logical_not(cache.per_beam[FACTS].may_end)


def lower_new_facts(logits: Tensor, cache: Cache) -> Tensor:
    """Lowers the logits of tokens that would invent a fact.

    Args:
      logits: float32 [B, K, V] of the next token.
      cache: the cache, with the units up to the last token of each hypothesis.

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
    # A single matrix product, so that the whole vocabulary is written only once.
    members = ops.one_hot(table.classes, CLASSES, axis=0, dtype=logits.dtype)  # [C, V]
    lowered = logits + ops.matmul(
        ops.cast(forbidden, logits.dtype) * LOWEST_SCORE, members
    )
    ids, is_allowed = _supported_tokens(written, units, table)
    known = ops.maximum(ids, 0)  # [B, 2 S]
    is_fact = ops.not_equal(ops.take(table.classes, known, axis=0), FREE)
    # Only the logits of these tokens were lowered.
    is_lowered = is_fact[:, None] | must_continue[..., None]
    chosen = ops.broadcast_to(known[:, None], ops.shape(is_allowed))
    return restore_chosen(lowered, logits, chosen, is_allowed & is_lowered)


def _supported_tokens(
    written: WrittenUnit, units: SourceUnits, table: PieceTable
) -> tuple[Tensor, Tensor]:
    """The source tokens that may be written next.

    Returns:
      int32 [B, 2 S], the source tokens, then the same with a capital; bool
      [B, K, 2 S], whether each is allowed.
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
    """Whether marks have a bit, bool of the same shape."""
    return ops.not_equal(ops.bitwise_and(marks, bit), 0)


def _before(values: Tensor) -> Tensor:
    """The value one place earlier, False at the first place; bool [..., S]."""
    return ops.concatenate([ops.zeros_like(values[..., :1]), values[..., :-1]], axis=-1)


def _behind(values: Tensor) -> Tensor:
    """The value one place later, False at the last place; bool [..., S]."""
    return ops.concatenate([values[..., 1:], ops.zeros_like(values[..., :1])], axis=-1)
