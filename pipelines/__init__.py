"""What moves documents: sources, Beam transforms, sinks and the command line.

`cli` parses, `options` holds the flags; `prepare`, `train`, `summarize` and `evaluate`
are the four jobs. All of them may import `model`; the reverse is never true.
docs/ARCHITECTURE.md has the floor plan.
"""
