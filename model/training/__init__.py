"""Training: `record_sets` and `mixture` say what is read, `input_batches` feeds it,
`initialization` gives the first weights, `loss` and `schedule` are formulas,
`train_step` is one compiled step, `strategy` knows the devices, `checkpoint` keeps the
state, `validation` scores summaries, `loop` is the whole; `extractor` trains a sentence
scorer.
"""
