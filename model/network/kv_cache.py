"""What hypotheses wrote: keys and values in slots that a search never moves, and for
each hypothesis which of them are its own past.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.backend import allocate_buffer, has_static_shapes, with_unknown_size
from precis.model.network.layers import MASKED, MultiHeadAttention


class Own(NamedTuple):
    """What the hypotheses wrote in one block: keys and values, each [B * H * M / K, K *
    D/H], a row holding the K slots of one step.
    """

    keys: Any
    values: Any


class Past(NamedTuple):
    """The slots of all blocks.

    Attributes:
      own: of each block.
      first: int32 scalar; the slots of the step at position `index` begin at K * (first
          + index).
      positions: int32 [B, M], the position whose step a slot is for.
    """

    own: tuple[Own, ...]
    first: Any
    positions: Any


def start_past(
    attentions: Sequence[MultiHeadAttention], *, batch: Any, beams: int, length: int
) -> tuple[Any, Past]:
    """An empty past of the self-attention of each block, with room for `length` steps,
    and which slots are readable: none.

    Returns:
      float32 [B, K, M], 0 where a hypothesis may read a slot and MASKED where not, and
      the past.
    """
    own = tuple(_make_own(attention, batch, beams, length) for attention in attentions)
    positions = ops.broadcast_to(
        ops.arange(length * beams, dtype="int32")[None] // beams,
        (batch, length * beams),
    )
    readable = ops.full((batch, beams, length * beams), MASKED, dtype="float32")
    return with_unknown_size(readable, axis=2), Past(
        own, ops.convert_to_tensor(0, "int32"), with_unknown_size(positions, axis=1)
    )


def grow_past(
    readable: Any, past: Past, *, heads: int, written: Any, more: int
) -> tuple[Any, Past]:
    """The same after `written` steps with room for `more`, without the slots that
    nobody reads.
    """
    batch, beams, _ = ops.shape(readable)
    kept = _slots_in_use(readable)
    count = ops.shape(kept)[1]
    own = tuple(
        _grow_own(one, kept, heads=heads, beams=beams, more=more) for one in past.own
    )
    old = ops.take_along_axis(
        readable, ops.broadcast_to(kept[:, None], (batch, beams, count)), axis=2
    )
    room = ops.full((batch, beams, more * beams), MASKED, dtype="float32")
    new = ops.broadcast_to(
        written + ops.arange(more * beams, dtype="int32")[None] // beams,
        (batch, more * beams),
    )
    positions = ops.concatenate(
        [ops.take_along_axis(past.positions, kept, axis=1), new], axis=1
    )
    return ops.concatenate([old, room], axis=2), Past(
        own, ops.cast(count // beams - written, "int32"), positions
    )


def narrow_past(past: Past, documents: Any, *, batch: Any) -> Past:
    """The past of some of the documents, int32 [N] of B."""

    def of_heads(buffer: Any) -> Any:
        size = buffer.shape[-1]
        return ops.reshape(
            ops.take(ops.reshape(buffer, (batch, -1, size)), documents, axis=0),
            (-1, size),
        )

    own = keras.tree.map_structure(of_heads, past.own)
    return past._replace(own=own, positions=ops.take(past.positions, documents, axis=0))


def open_slots(readable: Any, past: Past, index: Any) -> tuple[Any, Any]:
    """What is readable at the step at position `index`, each hypothesis's slot of this
    step included, and the place of these slots.
    """
    _, beams, slots = ops.shape(readable)
    place = past.first + index
    own = (
        place * beams + ops.arange(beams, dtype="int32")[:, None]
    )  # [K, 1], one for each hypothesis
    return ops.where(ops.arange(slots, dtype="int32") == own, 0.0, readable), place


def _make_own(
    attention: MultiHeadAttention, batch: Any, beams: int, length: int
) -> Own:
    """Empty keys and values with room for `length` steps."""
    shape = (batch * attention.heads * length, beams * attention.head_width)
    return Own(
        allocate_buffer(shape, attention.compute_dtype),
        allocate_buffer(shape, attention.compute_dtype),
    )


def _slots_in_use(readable: Any) -> Any:
    """The slots that some hypothesis reads, and as many others as make the number the
    same for all documents and a multiple of 4 K.

    Of 4 K and not K, because a product of a new shape has to be prepared once.

    Args:
      readable: float32 [B, K, M], 0 or MASKED.

    Returns:
      int32 [B, P], in the order of the slots for those in use. Where shapes must be
      known beforehand: all slots.
    """
    batch, beams, slots = ops.shape(readable)
    if has_static_shapes():
        return ops.broadcast_to(ops.arange(slots, dtype="int32"), (batch, slots))
    is_free = ops.cast(ops.max(readable, axis=1) < MASKED / 2, "int32")  # [B, M]
    most = ops.max(ops.sum(1 - is_free, axis=1))
    # Slots in use first, each group in its order.
    order = ops.argsort(is_free * slots + ops.arange(slots, dtype="int32"), axis=-1)
    size = 4 * beams
    return ops.cast(
        order[:, : ops.minimum((most + size - 1) // size * size, slots)], "int32"
    )


def _grow_own(own: Own, kept: Any, *, heads: int, beams: int, more: int) -> Own:
    """The kept slots, int32 [B, P], followed by room for `more` steps."""
    batch, count = ops.shape(kept)
    size = own.keys.shape[-1]  # K * D/H
    pairs = batch * heads

    def grow(buffer: Any) -> Any:
        slots = ops.shape(buffer)[0] // pairs * beams
        rows = ops.arange(pairs, dtype="int32")[:, None] * slots + ops.repeat(
            kept, heads, axis=0
        )  # [B * H, P]
        past = ops.take(
            ops.reshape(buffer, (-1, size // beams)), rows, axis=0
        )  # [B * H, P, D/H]
        room = allocate_buffer((pairs, more, size), buffer.dtype)
        return ops.reshape(
            ops.concatenate(
                [ops.reshape(past, (pairs, count // beams, size)), room], axis=1
            ),
            (-1, size),
        )

    return Own(*map(grow, own))
