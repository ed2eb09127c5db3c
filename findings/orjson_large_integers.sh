#!/bin/sh
# orjson reads an integer of 2**64 or more as a float and says nothing.
#
# One would guess that orjson.loads gives the integer, as json.loads does, or refuses it,
# as orjson.dumps refuses it ("Integer exceeds 64-bit range"). With orjson 3.13.0 it gives
# the nearest double, so that identifiers which differ become equal:
#
#     loads('18446744073709551617') -> 1.8446744073709552e+19
#     loads('18446744073709551617') == loads('18446744073709551616')
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet orjson==3.13.0
"$folder/venv/bin/python" - <<'PYTHON'
import json
import orjson

text, other = "18446744073709551617", "18446744073709551616"
found = orjson.loads(text)
print("json  ", json.loads(text))
print("orjson", repr(found))
assert json.loads(text) == 2**64 + 1
assert type(found) is float and found == orjson.loads(other)
try:
    orjson.dumps(2**64 + 1)
except orjson.JSONEncodeError as error:
    print("orjson.dumps", error)
else:
    raise AssertionError("orjson.dumps writes it")
PYTHON
