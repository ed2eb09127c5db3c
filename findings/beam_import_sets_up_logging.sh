#!/bin/sh
# Importing apache-beam without its extra gcp sets up the root logger of the program.
#
# One would guess that an import leaves logging to the program, so that a call of
# logging.basicConfig after the imports takes effect. Beam 2.77.0 imports its clients of
# BigQuery in `import apache_beam`. Where apitools (of the extra gcp) is missing, they
# call logging.warning, which adds a handler to a root logger that has none. From then on
# basicConfig changes nothing: neither its level nor its format is used.
#
#     import logging, apache_beam       WARNING:root:apitools not found, ...
#     logging.basicConfig(level=INFO)
#     logging.info("hello")             nothing is written
#
# With the extra gcp the same program writes "hello". So basicConfig is called before Beam
# is imported, or with force=True.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apache-beam==2.77.0
"$folder/venv/bin/python" - 2>"$folder/written" <<'PYTHON'
import logging

assert not logging.getLogger().handlers
import apache_beam

print("handlers after the import:", logging.getLogger().handlers)
assert logging.getLogger().handlers
logging.basicConfig(level=logging.INFO, format="mine: %(message)s")
logging.info("hello")
assert logging.getLogger().level == logging.WARNING
logging.basicConfig(level=logging.INFO, format="mine: %(message)s", force=True)
logging.info("hello after force")
PYTHON
cat "$folder/written"
grep --quiet "apitools not found" "$folder/written"
grep --quiet "mine: hello after force" "$folder/written"
if grep --quiet --line-regexp "mine: hello" "$folder/written"; then exit 1; fi
