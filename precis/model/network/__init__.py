"""Networks, in keras.ops.

build.py               makes a network from its configuration
config.py              the configurations
architectures.py       names of architectures and sizes
generator.py           the base of all networks that write summaries
transformer.py         encoder-decoder, and an encoder alone
decoder_only.py        one stack of blocks for source and summary
recurrent.py           GRUs with attention
selector.py           scores sentences from their vectors
layers.py              linear layers, norms, attention, feed-forward, masks
blocks.py              the block of encoder and decoder, and stacks of them
positions.py           token embeddings and positions
pointer.py             the pointer-generator output, and the parts a loss reads
convolutional_gate.py  filters the states of an encoder
gradients.py           the attention formula; attention and norm with their gradients
decoder_step.py        a decoder of blocks: whole targets, and the step of a search

A network that writes summaries meets one contract, so that search, training and export
never ask for its kind:

    encode(source, training) -> memory              source int32 [B, S]
    start(memory, beams, length) -> cache                       room for `length` steps
    step(tokens, cache, index) -> logits, cache     int32 [B, K] -> float32 [B, K, V]
    call(source, target, training) -> logits        int32 [B, T] -> float32 [B, T, V]
    predict_next(source, target, training)          the parts of `call` for a loss
    attention(source, target)                       the attention maps of all blocks

`call`, `predict_next` and `attention` are teacher-forced. The cache is a
`model.cache.Cache`; a step consumes the cache that it is given. Logits are unnormalised
log-probabilities.

Shapes: B batch, S source, T target, H heads, D width, F feed-forward, V vocabulary, K
beams, M slots of a KV cache. Masks are boolean; True may be read.
"""
