"""The cache of a search: the tensors that a network keeps from one step to the next.

A cache has three parts, which differ in what a search does with their tensors:

    part          axes            hypotheses reordered   documents dropped
    per_beam      [B, K, ...]     moved                  selected
    per_document  [B * n, ...]    -                      selected
    shared        any             -                      -

A network with self-attention keeps the keys and values of the written tokens in slots
that are never moved. At each step, hypothesis k writes a new slot. `attention_mask`
marks for each hypothesis which of the M slots hold its tokens, and a search reorders
only this mask:

    slots written by k =    0 1   0 1   0 1
    K = 2, 3 steps:  k = 0  x .   . x   x .    its parent at step 2 was hypothesis 1
                     k = 1  x .   . x   . x    x: may be read

A cache that was given to a step must not be used again: buffers are written in place.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model.backend import (
    allocate_buffer,
    gather_beams,
    ops,
    tree,
    with_unknown_size,
)

# The cache entry of a network that continues its source: the source, int32 [B, S],
# padded on the left with negative ids. Its last token serves as the start token.
PROMPT = "prompt"


class Cache(NamedTuple):
    """What a step needs from earlier steps, as nested tensors by name.

    Attributes:
      per_beam: tensors [B, K, ...] for each hypothesis; `attention_mask` bool [B, K, M]
          belongs to a `kv_cache`.
      per_document: tensors for each document. The first axis is B, or a multiple of B
          with all rows of a document adjacent. `kv_cache` is a `KVCache`.
      shared: tensors of the network, such as prepared weights.
    """

    per_beam: dict[str, Any]
    per_document: dict[str, Any]
    shared: dict[str, Any]


class KVCache(NamedTuple):
    """Keys and values of the written tokens in M slots, K for each step.

    Attributes:
      self_keys: the keys of each block, [B * G * M/K, K * D/H] in the dtype of the
          network. A row holds the K slots of one step.
      self_values: the values of each block, as the keys.
      positions: int32 [B, M], the position of the token in each slot. The slots of the
          last step that there is room for come last.
    """

    self_keys: tuple[Any, ...]
    self_values: tuple[Any, ...]
    positions: Any


def reorder_beams(cache: Cache, parents: Any) -> Cache:
    """Lets hypothesis k of each document continue hypothesis parents[:, k].

    Args:
      cache: the cache of B documents with K hypotheses each.
      parents: int32 [B, K].
    """
    per_beam = tree.map_structure(
        lambda tensor: gather_beams(tensor, parents), cache.per_beam
    )
    return cache._replace(per_beam=per_beam)


def select_documents(cache: Cache, documents: Any) -> Cache:
    """Keeps some of the B documents, int32 [N], in the given order."""
    batch = ops.shape(tree.flatten(cache.per_beam)[0])[0]

    def select(tensor: Any) -> Any:
        size, *inner = ops.shape(tensor)
        rows = size // batch
        by_document = ops.reshape(tensor, (batch, rows, *inner))
        selected = ops.take(by_document, documents, axis=0)
        return ops.reshape(selected, (ops.shape(documents)[0] * rows, *inner))

    per_beam, per_document = tree.map_structure(
        select, (cache.per_beam, cache.per_document)
    )
    return Cache(per_beam, per_document, cache.shared)


def grow(cache: Cache, *, written: Any, more: int) -> Cache:
    """Makes room for more steps and drops the slots that no hypothesis may read.

    Args:
      cache: the cache; without a KV cache, it is returned unchanged.
      written: int32 scalar, the number of steps so far.
      more: the number of steps to make room for.
    """
    if "kv_cache" not in cache.per_document:
        return cache
    mask, past = cache.per_beam["attention_mask"], cache.per_document["kv_cache"]
    batch, beams, slots = ops.shape(mask)
    kept = _slots_in_use(mask)
    count = ops.shape(kept)[1]
    old_mask = ops.take_along_axis(
        mask, ops.broadcast_to(kept[:, None], (batch, beams, count)), axis=2
    )
    new_mask = ops.zeros((batch, beams, more * beams), dtype="bool")
    new_positions = ops.broadcast_to(
        written + _positions(more, beams), (batch, more * beams)
    )
    positions = [ops.take_along_axis(past.positions, kept, axis=1), new_positions]
    keys, values = tree.map_structure(
        lambda buffer: _grow_buffer(buffer, kept, slots=slots, beams=beams, more=more),
        (past.self_keys, past.self_values),
    )
    kv_cache = KVCache(keys, values, ops.concatenate(positions, axis=1))
    attention_mask = ops.concatenate([old_mask, new_mask], axis=2)
    return cache._replace(
        per_beam={**cache.per_beam, "attention_mask": attention_mask},
        per_document={**cache.per_document, "kv_cache": kv_cache},
    )


def start_kv_cache(
    attentions: Sequence[Any], *, batch: Any, beams: int, length: int
) -> tuple[Any, KVCache]:
    """Makes an empty KV cache with room for `length` steps.

    Args:
      attentions: the self-attention of each block, for heads, head width and dtype.
      batch: B, a number or a scalar tensor.
      beams: K.
      length: the number of steps to make room for.

    Returns:
      The attention mask, bool [B, K, M], False everywhere, and the cache.
    """

    def buffers() -> tuple[Any, ...]:
        return tuple(
            allocate_buffer(
                (batch * attention.kv_heads * length, beams * attention.head_width),
                attention.compute_dtype,
            )
            for attention in attentions
        )

    mask = ops.zeros((batch, beams, length * beams), dtype="bool")
    positions = ops.broadcast_to(_positions(length, beams), (batch, length * beams))
    return with_unknown_size(mask, axis=2), KVCache(
        buffers(), buffers(), with_unknown_size(positions, axis=1)
    )


def open_slots(attention_mask: Any, kv_cache: KVCache, index: Any) -> tuple[Any, Any]:
    """Makes the slots of the step at position `index` readable.

    Args:
      attention_mask: bool [B, K, M].
      kv_cache: the KV cache.
      index: int32 scalar.

    Returns:
      The attention mask with these slots readable, and the rows of the keys and values
      that hold them, int32 [B * H], one for each document and head.
    """
    _, beams, slots = ops.shape(attention_mask)
    steps = slots // beams
    step = steps - 1 - kv_cache.positions[0, -1] + index
    own_slot = step * beams + ops.arange(beams, dtype="int32")[:, None]  # [K, 1]
    is_own = ops.equal(ops.arange(slots, dtype="int32"), own_slot)  # [K, M]
    heads = ops.shape(kv_cache.self_keys[0])[0] // steps  # B * H
    rows = ops.arange(heads, dtype="int32") * steps + step
    return ops.logical_or(attention_mask, is_own), rows


def _positions(steps: int, beams: int) -> Any:
    """The step of each slot, int32 [1, steps * K]: 0 0 1 1 2 2 for K = 2."""
    return ops.arange(steps * beams, dtype="int32")[None] // beams


def _slots_in_use(attention_mask: Any) -> Any:
    """Finds the slots that some hypothesis may read.

    Unused slots are added until the number is the same for all documents and a multiple
    of 4 K. A multiple of K would be enough, but the first product of each new shape is
    slow.

    Args:
      attention_mask: bool [B, K, M].

    Returns:
      int32 [B, P], the slots in use, ascending, followed by unused ones.
    """
    _, beams, slots = ops.shape(attention_mask)
    every = ops.arange(slots, dtype="int32")
    is_free = ops.cast(
        ops.logical_not(ops.any(attention_mask, axis=1)), "int32"
    )  # [B, M]
    most = ops.max(ops.sum(1 - is_free, axis=1))
    # Slots in use first, each group in ascending order.
    order = ops.argsort(is_free * slots + every, axis=-1)
    size = 4 * beams
    count = ops.minimum((most + size - 1) // size * size, slots)
    return ops.cast(order[:, :count], "int32")


def _grow_buffer(buffer: Any, kept: Any, *, slots: Any, beams: int, more: int) -> Any:
    """Keeps some slots of keys or values and appends room for more steps.

    Args:
      buffer: [B * H * M/K, K * D/H].
      kept: int32 [B, P], the slots to keep.
      slots: M.
      beams: K.
      more: the number of steps to make room for.
    """
    batch, count = ops.shape(kept)
    width = buffer.shape[-1]  # K * D/H
    heads = ops.shape(buffer)[0] * beams // slots  # B * H
    first = ops.reshape(ops.arange(heads, dtype="int32") * slots, (batch, -1, 1))
    rows = first + kept[:, None]  # [B, H, P]
    past = ops.take(ops.reshape(buffer, (-1, width // beams)), rows, axis=0)
    past = ops.reshape(past, (heads, count // beams, width))
    room = allocate_buffer((heads, more, width), buffer.dtype)
    return ops.reshape(ops.concatenate([past, room], axis=1), (-1, width))
