"""Training: `data` feeds batches, `loss` and `schedule` are formulas, `step` is one
compiled step, `strategy` knows the devices, `checkpoint` keeps the state, `validation`
scores summaries, `loop` is the whole.
"""
