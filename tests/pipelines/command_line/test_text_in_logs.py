"""No text of a document reaches a log, whatever is wrong with the document; only the
message about a value of `--keep_fields` shows its beginning.
"""

import json
import logging

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code, write_jsonl

MARK = "Zyzzyva"
TEXT = f"{MARK} rain fell on Monday. It was cold in {MARK}."


def _write_jsonl(folder):
    good = {"article": TEXT, "highlights": TEXT, "note": TEXT, "n": 1}
    lines = [
        *(good, {"id": "a", "article": f"{MARK} " * 3000}, {"article": [TEXT, 7]}),
        *({**good, "highlights": {MARK: 1}}, {**good, "n": "many"}),
        *({**good, "split": f"{MARK} {MARK}"}, {"article": " ", "note": TEXT}),
        *(json.dumps([TEXT]), json.dumps(good)[:-9]),
        b'{"article": "' + MARK.encode() + b' caf\xe9"}',
        f'{{"article": NaN, "note": "{MARK}"}}',
    ]
    flags = ["--split_field", "split", "--keep_fields", "note,n:int64"]
    return write_jsonl(folder / "a.jsonl", lines), flags, "read 11,"


def _write_csv(folder):
    rows = [f"1,{TEXT}", f"{MARK}", f'2,"{MARK}\n\n{TEXT}"', f'3,"{MARK} never']
    (folder / "a.csv").write_text("\n".join(["id,article", *rows, TEXT]))
    return f"csv:{folder}/a.csv", [], "read 5,"


def _write_text(folder):
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_bytes(TEXT.encode() + b"\xff")
    (folder / "c.txt").write_text(TEXT * 30_000)
    return f"text:{folder}/*.txt", ["--max_record_mb", "1"], "read 3,"


def _write_parquet(folder):
    texts = [TEXT.encode(), None, MARK.encode() + b"\xe9", b" "]
    article = pa.array(texts, pa.binary()).view(pa.string())
    note = pa.array([TEXT, MARK, MARK, MARK])
    pq.write_table(pa.table({"article": article, "note": note}), folder / "a.parquet")
    return f"parquet:{folder}/a.parquet", ["--keep_fields", "note"], "read 4,"


@pytest.mark.parametrize(
    "write", [_write_jsonl, _write_csv, _write_text, _write_parquet]
)
def test_no_text_of_a_document_is_logged_or_printed(tmp_path, capfd, caplog, write):
    corpus, flags, counted = write(tmp_path)
    caplog.set_level(logging.DEBUG)
    line = ["summarize", "--verbose", "--corpus", corpus, *flags]
    output = ["--output", str(tmp_path / "out")]
    if write is _write_jsonl:
        assert exit_code(*line, *output, "--max_failed_share", "0") == 1
    assert exit_code(*line, *output, "--max_failed_share", "1") == 0
    said, errors = capfd.readouterr()
    assert counted in said.replace("\n", ",")
    assert ("max_failed_share" in errors) is (write is _write_jsonl)
    assert caplog.records
    logged = "".join(map(str, (vars(record) for record in caplog.records)))
    for text in (said, errors, caplog.text, logged):
        assert MARK not in text
