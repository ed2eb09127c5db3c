"""The files that this process is writing, so that none stays when a signal ends it."""

names: set[str] = set()
