"""Records: the training examples that `precis prepare` writes.

example     one training record as a `tf.train.Example`, framed in a TFRecord file
dataset     dataset.json, the description of a folder of records
"""
