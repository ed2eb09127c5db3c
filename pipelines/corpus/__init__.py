"""Where documents come from: `document` says what one is, `source` reads the `--corpus`
syntax, and each scheme has a module.

`lines`, `listing` and `records` hold what several schemes share. A scheme has two
functions: `list_tasks`, which looks at the corpus without reading it through, and
    `read`, which yields the documents of one task and an `Unreadable` for every record
    that is none.
"""
