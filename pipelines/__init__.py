"""Beam pipelines and the command line: `cli` parses, `options` and `flags` define the
flags; `prepare`, `train`, `summarize` and `evaluate` are the four jobs. They may import
`precis.model`, which never imports them. docs/ARCHITECTURE.md has the map.
"""
