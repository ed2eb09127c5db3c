"""The files that this process is writing, so that none stays when a signal ends it."""

import threading

names: set[str] = set()
# Held while a file is begun, and for ever by the thread that ends the process.
beginning = threading.Lock()
