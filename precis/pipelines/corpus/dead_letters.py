"""Dead letters: records that could not be processed, with the reason for each.

A record without a result is never dropped silently: it is published with the job's
result and counted. The files are gzipped JSON lines, so that a glob for the Parquet
files of a result does not match them.
"""

import base64
import contextlib
import gzip
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from precis.model import files
from precis.model.errors import DataError
from precis.model.isolation import Failure, attempt
from precis.model.progress.counters import count
from precis.model.text.article import Article
from precis.pipelines.corpus.compression import CODECS
from precis.pipelines.corpus.formats import OTHER_FORMAT, fitting_encoding
from precis.pipelines.corpus.opening import CHANGED, UNREADABLE
from precis.pipelines.corpus.options import FailureOptions
from precis.pipelines.corpus.task import EMPTY_ARTICLE, WHOLE_FILE, DeadLetter

# Problems with an unknown number of lost records: damaged compressed files and files
# that cannot be read.
_DAMAGED = (*CODECS.values(), "utf16", "arrow")
UNCOUNTED = {
    **{f"read/broken_{codec}": f"{codec} file(s) are damaged" for codec in _DAMAGED},
    "read/broken_warc": "web archive(s) are damaged",
    f"read/{OTHER_FORMAT}": "file(s) are of another format",
    f"read/{CHANGED}": "file(s) changed after the corpus was listed",
    f"read/{UNREADABLE}": "file(s) or folder(s) could not be read",
}


def document_letter(article: Article, failure: Failure) -> DeadLetter:
    """The dead letter of a document that failed."""
    document = article.document
    # It is nearly always computed already, and computing it may be what failed.
    digest = attempt(article, lambda failed: failed.content_sha256, stage=failure.stage)
    return DeadLetter(
        failure.stage,
        failure.reason,
        failure.detail,
        document.document_id or None,
        document.source_file,
        document.source_position,
        error_class=failure.error_class,
        retryable=failure.retryable,
        content_sha256=None if isinstance(digest, Failure) else digest,
    )


def letter_values(letter: DeadLetter) -> dict[str, Any]:
    """The fields of a letter for JSON, with its bytes in base64."""
    raw = None if letter.raw is None else base64.b64encode(letter.raw).decode()
    return {**letter._asdict(), "raw": raw}


NAMED_LETTERS = 3  # number of letters that a message names
# The number of dead letters from which the encoding of their file is guessed.
_LETTERS_FOR_ENCODING = 100


class DeadLetterWriter(contextlib.AbstractContextManager["DeadLetterWriter"]):
    """Writes the dead letters of one task.

        with DeadLetterWriter(path, task=3, run_id=job.run_id) as dead_letters:
            dead_letters.write(letter)

    The file is published when the block ends. Without a letter there is no file.

    Attributes:
      path: the file; "" if letters are only counted.
      rows: the number of letters.
      reasons: the number of lost records by `stage/reason`, without empty articles.
      failed: the number of lost records by source file.
      empty: the number of articles without text, by source file.
    """

    def __init__(self, path: str, *, task: int, run_id: str) -> None:
        self.path = path
        self.rows = 0
        self.reasons: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.empty: Counter[str] = Counter()
        self._constants = {"task": task, "run_id": run_id}
        self._block = contextlib.ExitStack()
        self._file: gzip.GzipFile | None = None

    def write(self, letter: DeadLetter) -> None:
        """Writes a letter and counts it."""
        if letter.reason == EMPTY_ARTICLE:
            self.empty[letter.source_file] += letter.records
        else:
            self.failed[letter.source_file] += letter.records
            self.reasons[f"{letter.stage}/{letter.reason}"] += letter.records
        self.rows += 1
        count(dead_letters=letter.records)
        if not self.path:
            return
        if self._file is None:
            aside = self._block.enter_context(files.write_aside(self.path))
            # Without name and time, equal letters give equal bytes.
            self._file = self._block.enter_context(
                gzip.GzipFile("", "wb", fileobj=aside, mtime=0)
            )
        values = {**letter_values(letter), **self._constants}
        self._file.write(orjson.dumps(values) + b"\n")

    def __exit__(self, *error: Any) -> bool | None:
        if error[0] is not None:  # The letters are not published.
            count(dead_letters=-(self.failed.total() + self.empty.total()))
        return self._block.__exit__(*error)


def read_dead_letters(path: str) -> Iterator[dict[str, Any]]:
    """Reads the dead letters of a file, with `raw` as bytes."""
    with files.open_read(path) as opened, gzip.open(opened) as lines:
        for letter in map(orjson.loads, lines):
            raw = letter["raw"]
            yield {**letter, "raw": None if raw is None else base64.b64decode(raw)}


def count_unanswered(reasons: Mapping[str, int]) -> int:
    """Counts the records, by `stage/reason`, that failed because of a server and may
    succeed later.
    """
    return sum(
        lost
        for name, lost in reasons.items()
        if Failure(*name.partition("/")[::2], detail="").is_of_server
    )


def check_failures(
    counts: Mapping[str, int],
    reasons: Mapping[str, int],
    sources: Mapping[str, Mapping[str, int]],
    *,
    allowed: FailureOptions,
    dead_letters: str,
) -> None:
    """Fails a job that lost too many records.

    Args:
      counts: the number of documents by outcome; uses `read`, `failed` and `empty`.
      reasons: the number of lost records by `stage/reason`.
      sources: the counts of each source file, at least of files that lost records.
      allowed: the highest shares of failed records and of empty articles.
      dead_letters: the folder of the dead letters, for the message.

    Raises:
      DataError: too many records failed, all of a file, or an unknown number.
    """
    uncounted = [
        f"{reasons[reason]} {words}"
        for reason, words in UNCOUNTED.items()
        if reasons.get(reason)
    ]
    left_out = counts.get("other_split", 0) + counts.get("not_selected", 0)
    read = counts["read"] - left_out
    failed, empty = counts["failed"], counts["empty"]
    is_within_share = failed <= allowed.max_failed_share * read
    if reasons and allowed.max_failed_share < 1:
        lost, unread = _lost_files(sources, dead_letters)
        if unread and is_within_share:
            uncounted.append(f"{len(unread)} file(s) hold no record that can be read")
        if uncounted:
            raise DataError(
                f"{' and '.join(uncounted)}, so an unknown number of records is "
                f"lost; see {dead_letters}, replace the files, or run the command "
                "again with --max_failed_share 1 to leave those records out"
                + name_first([*lost, *unread])
            )
    if not is_within_share:
        most_frequent_first = sorted(reasons.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{reason} {count}" for reason, count in most_frequent_first)
        way_out = "fix the records and name another --output"
        if unanswered := count_unanswered(reasons):
            way_out = f"run the same command to retry {unanswered} of them"
        raise DataError(
            f"{failed} of {read} records failed ({listed}), more than "
            f"--max_failed_share {allowed.max_failed_share:g} allows; see "
            f"{dead_letters}, {way_out}, or raise the share and run the same command"
            + _encoding_hint(reasons, dead_letters)
            + name_first(_lost_records(dead_letters))
        )
    if empty > allowed.max_empty_share * read:
        raise DataError(
            f"{empty} of {read} articles have no text, more than --max_empty_share "
            f"{allowed.max_empty_share:g} allows; check --article_field, or raise the "
            "share and run the same command"
            + name_first(_lost_records(dead_letters, are_empty=True))
        )


def _lost_files(
    sources: Mapping[str, Mapping[str, int]], folder: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A dead letter for each file that lost an unknown number of records; and one for
    each file that has several records of which none can be read.
    """
    lost, records = {}, Counter[str]()
    first: dict[str, dict[str, Any]] = {}
    for letter in _lost_records(folder):
        path = letter["source_file"]
        if f"{letter['stage']}/{letter['reason']}" in UNCOUNTED:
            lost[path] = letter
        elif letter["stage"] == "read" and letter["source_position"] != WHOLE_FILE:
            records[path] += letter["records"]
            first.setdefault(path, letter)
    for path, number in records.items():
        readable = sources[path]["read"] - sources[path].get("not_selected", 0) - number
        if readable or number == 1:
            del first[path]
    return list(lost.values()), list(first.values())


def read_letters(folder: str) -> Iterator[dict[str, Any]]:
    """Reads the dead letters of a job, in the order of its tasks."""
    paths = files.glob(files.join(folder, "*.gz"))
    return itertools.chain.from_iterable(map(read_dead_letters, paths))


def _lost_records(folder: str, *, are_empty: bool = False) -> Iterator[dict[str, Any]]:
    """The dead letters of records that failed, or of articles without a text."""
    for letter in read_letters(folder):
        if (letter["reason"] == EMPTY_ARTICLE) == are_empty:
            yield letter


def name_first(letters: Iterable[Mapping[str, Any]]) -> str:
    """Names the first dead letters, for the end of a message; "" if there are none.

        ; first: num.jsonl, byte 0: 'article' holds a value of type int; num.jsonl, ...

    Paths below the current folder are relative.
    """
    said = []
    for letter in itertools.islice(letters, NAMED_LETTERS):
        place = letter["source_file"].removeprefix(files.join(os.getcwd(), ""))
        if letter["source_position"] != WHOLE_FILE:
            place += f", {letter['source_position']}"
        said.append(f"{place}: {letter['detail']}")
    return f"; first: {'; '.join(said)}" if said else ""


def _encoding_hint(reasons: Mapping[str, int], folder: str) -> str:
    """Suggests an encoding if most records failed because they are not UTF-8, or says
    that they are no text.
    """
    if 2 * reasons.get("read/invalid_utf8", 0) < sum(reasons.values()):
        return ""
    letters = _lost_records(folder)
    raws = (each["raw"] for each in letters if each["reason"] == "invalid_utf8")
    raw = b"".join(itertools.islice(raws, _LETTERS_FOR_ENCODING))
    if fitting := fitting_encoding(raw):
        return f"; the texts are not UTF-8; try --encoding {fitting}"
    return "; they are binary data; name files of text"
