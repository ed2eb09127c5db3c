#!/bin/sh
# fastwarc stops without an error after a response that is chunked and gzipped.
#
# One would guess that an iterator over an archive returns all its records, or raises an
# error. With fastwarc 2.0.1 and `auto_decode="all"` a response with both
# `Transfer-Encoding: chunked` and `Content-Encoding: gzip`, which most servers send, is
# the last one that is returned, read or not, in a plain and in a compressed archive:
#
#     identity, identity, identity        3 records
#     gzip, identity, identity            3 records
#     chunked, identity, identity         3 records
#     chunked + gzip, identity, identity  1 record
#
# With `auto_decode="none"`, and the body decoded by other means, all three come.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet fastwarc==2.0.1
"$folder/venv/bin/python" - "$folder/a.warc" <<'PYTHON'
import gzip
import sys

from fastwarc.warc import ArchiveIterator

PAGE = b"<p>Rain.</p>"
ZIPPED = gzip.compress(PAGE)


def record(headers, body):
    http = b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n" + body
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0>\r\n"
        b"WARC-Date: 2024-05-01T10:00:00Z\r\nWARC-Target-URI: http://a/\r\n"
        b"Content-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(http), http)
    )


def chunked(body):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


GZIP, CHUNKED = b"Content-Encoding: gzip\r\n", b"Transfer-Encoding: chunked\r\n"
for headers, body, expected in (
    (b"", PAGE, 3),
    (GZIP, ZIPPED, 3),
    (CHUNKED, chunked(PAGE), 3),
    (CHUNKED + GZIP, chunked(ZIPPED), 1),
):
    with open(sys.argv[1], "wb") as file:
        file.write(record(headers, body) + record(b"", PAGE) * 2)
    found = {
        mode: sum(1 for _ in ArchiveIterator(sys.argv[1], auto_decode=mode))
        for mode in ("all", "none")
    }
    print(headers, found)
    assert found == {"all": expected, "none": 3}, found
PYTHON
