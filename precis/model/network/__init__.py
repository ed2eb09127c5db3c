"""Networks, in keras.ops.

build.py               makes a network from its configuration
config.py              the configurations
architectures.py       names of architectures and sizes
generator.py           the base of all networks that write summaries
transformer.py         the encoder-decoder, and the encoder as a network
decoder_only.py        one stack of blocks for source and summary
recurrent.py           GRUs with attention
selector.py            scores sentences from their vectors
layers.py              linear layers, norms, attention, feed-forward, masks
blocks.py              the block of encoder and decoder, and stacks of them
positions.py           token embeddings and positions
pointer.py             the pointer-generator output, and the parts a loss reads
convolutional_gate.py  filters the states of an encoder
gradients.py           the attention formula; attention and norm with their gradients
decoder_step.py        a decoder of blocks: whole targets, and the step of a search

All networks that write summaries have the same interface, so that search, training and
export do not depend on the kind of network:

    encode(source, training) -> memory              source int32 [B, S]
    start(memory, beams, length) -> cache               with room for `length` steps
    step(tokens, cache, index) -> logits, cache     int32 [B, K] -> float32 [B, K, V]
    call(source, target, training) -> logits        int32 [B, T] -> float32 [B, T, V]
    predict_next(source, target, training)          what a loss needs of `call`
    attention(source, target)                       the attention maps of all blocks

`call`, `predict_next` and `attention` use teacher forcing. The cache is a
`model.cache.Cache`; a cache that was given to a step must not be used again. Logits are
unnormalised log-probabilities.

Shapes: B batch, S source, T target, H heads, D width, F feed-forward, V vocabulary, K
beams, M slots of a KV cache. Masks are boolean; True marks what may be attended to.
"""
