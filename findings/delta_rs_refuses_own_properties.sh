#!/bin/sh
# delta-rs makes no table with a property of the user, but reads and writes such tables.
#
# The properties of a Delta table are a map of texts, and Spark takes any name in
# TBLPROPERTIES: an owner, a contact, the key by which rows are merged. One would guess
# that `configuration` of `write_deltalake` and `DeltaTable.create` takes them too, or
# that a library that refuses a name cannot use a table that has it.
#
# deltalake 1.6.6 refuses every name that it does not know, with or without a prefix:
#
#     DeltaError: Kernel: Generic delta kernel error: Error parsing property 'owner'
#
# A table whose log has the name is opened, read, appended to and merged into, and keeps
# it. `alter.set_table_properties` refuses it too, but with raise_if_not_exists=False it
# sets the property, in a version of its own. So a property that must be there from the
# first version needs another writer.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==25.0.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

folder = Path(sys.argv[1])
rows = pa.table({"key": [1]})


def refused(action):
    try:
        action()
    except DeltaError as error:
        assert "Error parsing property" in str(error), error
        return True
    return False


def properties(path):
    return DeltaTable(path).metadata().configuration


for number, name in enumerate(("owner", "news.owner", "delta.owner")):
    path = str(folder / f"new{number}")
    found = refused(lambda: write_deltalake(path, rows, configuration={name: "desk"}))
    found &= refused(
        lambda: DeltaTable.create(path, rows.schema, configuration={name: "desk"})
    )
    print(f"make a table with {name:12} refused {found}")
    assert found

path = str(folder / "table")
write_deltalake(path, rows)
altered = DeltaTable(path)
assert refused(lambda: altered.alter.set_table_properties({"owner": "desk"}))
altered.alter.set_table_properties({"owner": "desk"}, raise_if_not_exists=False)
print("set without raise_if_not_exists:", properties(path), "in version 1")
assert properties(path) == {"owner": "desk"} and DeltaTable(path).version() == 1

# As another writer would make it: the property stands in the first version.
other = folder / "other"
write_deltalake(str(other), rows)
(log,) = (other / "_delta_log").glob("*.json")
actions = [json.loads(line) for line in log.read_text().splitlines()]
for action in actions:
    if "metaData" in action:
        action["metaData"]["configuration"] = {"owner": "desk"}
log.write_text("".join(json.dumps(action) + "\n" for action in actions))
write_deltalake(str(other), pa.table({"key": [2]}), mode="append")
merge = DeltaTable(str(other)).merge(
    pa.table({"key": [3]}),
    predicate="target.key = source.key",
    source_alias="source",
    target_alias="target",
)
merge.when_not_matched_insert_all().execute()
keys = sorted(DeltaTable(str(other)).to_pyarrow_table()["key"].to_pylist())
print("read, appended and merged:", keys, properties(str(other)))
assert keys == [1, 2, 3] and properties(str(other)) == {"owner": "desk"}
PYTHON
