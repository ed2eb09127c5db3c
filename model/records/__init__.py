"""Records: `example` is one training example, `tfrecord` the framing of its file,
`dataset` the description of a folder of them.
"""
