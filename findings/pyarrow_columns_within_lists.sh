#!/bin/sh
# pyarrow leaves out, without a word, a column within a list that is named as a struct's is.
#
# One would guess that columns=["body.text"] selects `text` wherever the schema shows it, as
# columns=["doc.text"] does, or that it is refused, as pq.read_table refuses it. With
# pyarrow 25.0.1 ParquetFile.read and iter_batches give a table without the column: in lists
# they want the levels that Parquet stores. Their names depend on the writer, and pyarrow
# itself writes two. So a program cannot build the name from the Arrow schema.
#
#     body: list<struct<text>>    body.text                   no column, no error
#                                 body.list.element.text      the column
#       with use_compliant_nested_type=False                  body.list.item.text
#
# So the whole column `body` is read, and `text` is taken from its values.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.parquet as pq

table = pa.table({"doc": [{"text": "a"}], "body": [[{"text": "b"}]], "id": [1]})
pq.write_table(table, "new.parquet")
pq.write_table(table, "old.parquet", use_compliant_nested_type=False)
for file, name, expected in (
    ("new.parquet", "doc.text", ["doc"]),
    ("new.parquet", "body.text", []),
    ("new.parquet", "body.list.element.text", ["body"]),
    ("old.parquet", "body.list.element.text", []),
    ("old.parquet", "body.list.item.text", ["body"]),
):
    found = pq.ParquetFile(file).read(columns=[name, "id"]).column_names
    print(file, name, found)
    assert found == [*expected, "id"]
try:
    pq.read_table("new.parquet", columns=["body.text"])
except pa.ArrowInvalid as error:
    print("read_table:", str(error)[:60])
else:
    raise SystemExit("read_table takes the name")
PYTHON
