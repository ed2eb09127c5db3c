"""Networks: `layers` are the parts, `pointer` the copying output, `transformer` the whole, `build` makes one from its configuration.

Every network meets one contract, so that search, training and export never ask which one it is:

    encode(source, training) -> memory            source int32 [B, S]
    start(memory, beams, length) -> Cache         room for `length` steps of `beams` hypotheses
    step(tokens, cache, index) -> logits, Cache   tokens int32 [B, K], logits float32 [B, K, V]
    call(source, target, training) -> logits      teacher forcing; target int32 [B, T], logits float32 [B, T, V]

Logits are unnormalised log-probabilities. Shapes: B batch, S source, T target, H heads, D width, F feed-forward, V vocabulary, K beams.
Masks are boolean and True means "may be read".
"""
