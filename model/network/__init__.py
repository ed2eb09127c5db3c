"""Networks: `generator` is what all that write share, `transformer`, `decoder_only` and
`recurrent` are the kinds, `build` makes one.

`layers`, `positions`, `pointer` and `convolutional_gate` are the parts; `decoder_step` and `kv_cache` the
decoder's inner loop as searches run it, `gradients` what has one written by
hand.

Every network meets one contract, so that search, training and export never ask which
one it is:

    encode(source, training) -> memory            source int32 [B, S]
    start(memory, beams, length) -> Cache         room for `length` steps of `beams` hypotheses; counts_coverage=True counts what is read
    step(tokens, cache, index) -> logits, Cache   tokens int32 [B, K], logits float32 [B, K, V]; consumes the cache it is given
    grow(cache, written, more) -> Cache           after `written` steps, room for `more`
    narrow(cache, documents) -> Cache             of some of the documents, int32 [N]
    call(source, target, training) -> logits      teacher forcing; target int32 [B, T], logits float32 [B, T, V]
    predict_next(source, target, training)        the same in the parts that a loss reads
    attention(source, target)                     what every block reads

A cache has `beams`, tensors [B, K, ...] that a search reorders with its hypotheses, and
`shared`, which it hands on as it is. Logits are unnormalised log-probabilities. Shapes:
B batch, S source, T target, H heads, D width, F feed-forward, V vocabulary, K beams.
Masks are boolean and True means "may be read".
"""
