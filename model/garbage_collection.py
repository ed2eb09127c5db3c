"""How often Python looks for garbage in a process that is a job's own."""

import gc

# Objects that are made before Python looks among the youngest, and how often it does so
# before it looks among the older ones. By default it looks at every 700.
_THRESHOLDS = (50_000, 20, 20)


def collect_rarely() -> None:
    """Has Python look for cyclic garbage rarely in this process.

    A job makes many small objects that live as long as a document, and no cycles worth
    mentioning: the summaries of news took a quarter less time.
    """
    gc.set_threshold(*_THRESHOLDS)
