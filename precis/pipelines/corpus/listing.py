"""Finds the files of a corpus, with checksums or problems, and makes tasks of them.

    link to a file                       read under the name of the link
    link to a folder                     followed, except to a folder above itself
    link to nothing, or to itself        dangling_link
    FIFO, socket, device                 not_a_file
    file that may not be opened          permission_denied
    file that cannot be read otherwise   read_error
    folder that cannot be listed         file_unreadable

If a pattern matches a local file under two names, it is read twice.

Names that begin with `_` or `.` are not data, as in Spark and Hadoop, unless the
pattern has this character there, or the name is like `_day=1`:

    pattern            read                       not read
    out/*              out/part-0.json            out/_SUCCESS, out/.part-0.json.crc
    out/**/*.parquet   out/_day=1/a.parquet       out/_temporary/a.parquet
    out/_old/*.json    out/_old/a.json            out/_old/_b.json

Output folders are refused if the corpus reads from them, or would next time.
"""

import concurrent.futures
import errno
import functools
import glob
import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from precis.model import files
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.corpus import opening
from precis.pipelines.corpus.opening import local_name, written_name
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES, scheme_of
from precis.pipelines.corpus.task import UNREADABLE_SCHEME, CorpusFile, Fields, Task

ItemT = TypeVar("ItemT")
ANY_FOLDERS = "**"
_WILDCARDS = re.compile(r"[*?[]")
_NOT_HIDDEN = r"(?!\.|_[^=/]*(?:/|\Z))"
# Reading and hashing release the interpreter lock.
_HASHING_THREADS = 8
_HASHED_AT_ONCE = 10_000  # files that wait for a thread, of possibly millions
_UNREADABLE_FILES = 1000  # number of files per task
_MOST_FOLDERS = 20  # that are searched for tables
# What the folder of a table contains, its kind, and how to read it.
_COPY = "write its rows to files of their own, as with {}, and name those"
_TABLES = {
    "_delta_log": ("a Delta table", "read it with --corpus delta:{folder}"),
    "metadata/*.metadata.json": (
        "an Iceberg table",
        _COPY.format("Spark or `iceberg_scan` of DuckDB"),
    ),
    ".hoodie": ("a Hudi table", _COPY.format("Spark")),
}
_DANGLING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def list_files(pattern: str, scheme: str = "") -> list[CorpusFile]:
    """Lists the files that a glob matches, sorted by path.

    Links to files are files. Entries that are neither files nor folders, and unreadable
    files, are listed with a problem.

    Args:
      pattern: the glob.
      scheme: if given, only files with the endings of this scheme are listed.

    Raises:
      UsageError: nothing matches.
    """
    fs, name = files.filesystem(pattern)
    if files.is_local(pattern):
        source_files = _local_files(pattern, scheme)
    else:
        is_name = fs.isfile(name) and not _matches_itself(name)
        found = {name: fs.info(name)} if is_name else fs.glob(name, detail=True)
        found = {path: info for path, info in found.items() if info["type"] == "file"}
        names = found if is_name else filter(matcher(name), found)
        source_files = [
            _object_file(fs.unstrip_protocol(path), found[path])
            for path in _of_scheme(names, scheme)
        ]
    if not source_files and scheme:
        folder = pattern.removesuffix(f"/{ANY_FOLDERS}")
        raise UsageError(
            f"no name in the folder {folder} ends in "
            f"{' or '.join(SCHEMES[scheme].endings)}, compressed or not; name the "
            f"files, such as {folder}/*"
        )
    if not source_files:
        state = "in the working directory"
        if root := fixed_root(pattern):
            exists = fs.isdir(files.filesystem(root)[1])
            state = (
                f"the folder {root} exists" if exists else f"there is no folder {root}"
            )
        raise UsageError(
            f"no file matches {pattern} ({state}); check the path, quote the pattern, "
            "and write the first character of names that begin with _ or ."
        )
    return sorted(source_files)


def named_files(paths: Sequence[str]) -> list[CorpusFile]:
    """The files of some paths, sorted, with checksums or problems."""
    with concurrent.futures.ThreadPoolExecutor(_HASHING_THREADS) as pool:
        return sorted(pool.map(_read_state, paths))


def folder_pattern(where: str) -> str:
    """The glob of all files below a folder; a name of anything else stays."""
    fs, name = files.filesystem(where)
    name = absolute_path(where) if files.is_local(where) else name
    if fs.isfile(name) or not fs.isdir(name) or _matches_itself(name):
        return where
    return f"{glob.escape(where.rstrip('/'))}/{ANY_FOLDERS}"


def _of_scheme(names: Iterable[str], scheme: str) -> list[str]:
    """The names with an ending of a scheme; all names for the scheme ""."""
    names = list(names)
    if not scheme:
        return names
    fitting = [name for name in names if scheme_of(name) == scheme]
    others = set(names).difference(fitting)
    if fitting and others:
        say(
            f"precis: note: {len(others):,} files in the folder are not read, because "
            f"their names do not end in {' or '.join(SCHEMES[scheme].endings)}; first: "
            f"{written_name(min(others))}"
        )
    return fitting


def refuse_tables(pattern: str, source_files: Iterable[CorpusFile]) -> None:
    """Refuses Parquet files of a table, which may hold rows that it no longer has.

    Raises:
      UsageError: the message names the table and how to read it.
    """
    is_local = files.is_local(pattern)
    # table/day=1/a.parquet, and of Iceberg table/data/day=1/a.parquet
    folders = {re.sub("/[^/]+=.*", "", posixpath.dirname(f.path)) for f in source_files}
    folders |= {posixpath.dirname(each) for each in folders}
    folders = {each for each in folders if files.is_local(each) == is_local}
    for folder in (fixed_root(pattern) or ".", *sorted(folders)[:_MOST_FOLDERS]):
        fs, name = files.filesystem(folder)
        for mark, (kind, way_out) in _TABLES.items():
            if fs.glob(f"{glob.escape(local_name(name))}/{mark}"):
                raise UsageError(
                    f"{folder} is {kind}, whose Parquet files may hold rows that were "
                    f"deleted or replaced; {way_out.format(folder=folder)}"
                )


def fixed_root(pattern: str) -> str:
    """The folder of a glob up to its first wildcard, without a final slash.

    news/2024-*/*.txt   ->  news
    gs://bucket/*.txt   ->  gs://bucket
    *.txt               ->  (empty)
    """
    return re.split(r"[*?[{]", pattern, maxsplit=1)[0].rpartition("/")[0]


def absolute_path(path: str) -> str:
    """The absolute path, in the form of `os`, of a path that the user gave."""
    from fsspec.implementations.local import make_path_posix

    path = local_name(path.removeprefix("file://"))
    return str(make_path_posix(path)).rstrip("/") or "/"


def split_pattern(name: str) -> tuple[str, list[str]]:
    """Splits a pattern into the folder before the first wildcard, and the rest."""
    parts = name.split("/")
    wild = [place for place, part in enumerate(parts) if _WILDCARDS.search(part)]
    fixed = wild[0] if wild else len(parts)
    return "/".join(parts[:fixed]) or "/", [part for part in parts[fixed:] if part]


@functools.lru_cache
def matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """A function that matches names with a pattern; a wildcard at the beginning of a
    name does not match `_` or `.` there.
    """
    from fsspec.utils import glob_translate

    parts = f"{pattern}/*" if pattern.endswith(ANY_FOLDERS) else pattern
    regexes = (
        f"(?:{_NOT_HIDDEN}[^/]+/)*"
        if part == ANY_FOLDERS
        else _NOT_HIDDEN * bool(_WILDCARDS.match(part))
        + glob_translate(part)[:-2]
        + "/"
        for part in parts.split("/")
    )
    return re.compile("".join(regexes).removesuffix("/") + r"\Z").match


def _matches_itself(name: str) -> bool:
    """Whether a name, as a pattern, matches the file of that name: `*.txt` does,
    `a[1].txt` does not.
    """
    try:
        return bool(_WILDCARDS.search(name) and matcher(name)(name))
    except ValueError:
        return False


def _local_files(pattern: str, scheme: str) -> list[CorpusFile]:
    """Lists the local files that a pattern matches, with checksums or problems."""
    name = absolute_path(pattern)
    errors: list[OSError] = []
    # `notes[1].txt` may be the name of a file, although as a pattern it matches
    # another. `*.txt` is always a pattern, also if a file has that name.
    if os.path.lexists(name) and not _matches_itself(name):
        found = [] if os.path.isdir(name) else [name]
    else:
        try:
            found = list(_walk(*split_pattern(name), errors))
        except ValueError as error:
            raise UsageError(
                f"{pattern}: {error}; write **/ for folders of any depth"
            ) from error
    found = _of_scheme(found, scheme)
    states = [
        CorpusFile(
            written_name(error.filename),
            0,
            "",
            problem=opening.UNREADABLE,
            detail=f"the folder cannot be listed: {error.strerror}",
        )
        for error in errors
        if not isinstance(error, FileNotFoundError | NotADirectoryError)
    ]
    with concurrent.futures.ThreadPoolExecutor(_HASHING_THREADS) as pool:
        for start in range(0, len(found), _HASHED_AT_ONCE):
            states += pool.map(_read_state, found[start : start + _HASHED_AT_ONCE])
    return states


def _walk(root: str, parts: list[str], errors: list[OSError]) -> Iterator[str]:
    """Finds the files below a folder that match the parts of a pattern.

    Args:
      root: the folder, in the form of `os`.
      parts: the parts of the pattern; `**` is any number of folders.
      errors: a list to which the errors of unreadable folders are added.
    """
    is_match = matcher("/".join(parts))
    fixed = parts.index(ANY_FOLDERS) if ANY_FOLDERS in parts else len(parts)
    names_hidden = any(part[0] in "_." for part in parts[fixed:])
    for folder, folders, names in os.walk(
        root, onerror=errors.append, followlinks=True
    ):
        inner = folder[len(root) :].strip("/")
        depth = len(inner.split("/")) if inner else 0
        yield from (
            os.path.join(folder, name)
            for name in names
            if is_match(os.path.join(inner, name))
        )
        if depth < fixed:
            is_on_way = matcher("/".join(parts[: depth + 1]))
            folders[:] = [
                name
                for name in folders
                if depth + 1 < len(parts) and is_on_way(os.path.join(inner, name))
            ]
        else:
            folders[:] = [
                name
                for name in folders
                if names_hidden or matcher("*")(name)
                if not _leads_back(folder, name, root)
            ]


def _leads_back(folder: str, name: str, root: str) -> bool:
    """Whether an entry of a folder links to a folder above it, at or below a root."""
    path = os.path.join(folder, name)
    if not os.path.islink(path):
        return False
    while not os.path.samefile(path, folder):
        if len(folder) <= len(root):
            return False
        folder = os.path.dirname(folder)
    return True


def _read_state(name: str) -> CorpusFile:
    """A file with its checksum or its problem."""
    path = written_name(name) if files.is_local(name) else name
    try:
        if files.is_local(path):
            return opening.read_state(path)
        fs, name = files.filesystem(path)
        return _object_file(path, fs.info(name))
    except PermissionError as error:
        problem, detail = "permission_denied", f"{error.strerror}"
    except OSError as error:
        problem, detail = "read_error", f"{error.strerror or error}"
        if error.errno in _DANGLING and os.path.islink(name):
            problem = "dangling_link"
            detail = f"the link leads to {written_name(os.readlink(name))}: {detail}"
        elif error.errno == errno.EINVAL:
            problem = "not_a_file"
    return CorpusFile(path, 0, "", problem=problem, detail=detail)


def _object_file(path: str, info: Mapping[str, Any]) -> CorpusFile:
    return CorpusFile(path, info["size"], opening.object_version(info))


def range_task(
    file: CorpusFile, start: int, stop: int, size_bytes: int, fields: Fields
) -> Task:
    """A task that reads the range [start, stop) of a file."""
    task = Task(files=(file,), start=start, stop=stop, fields=fields)
    return task._replace(version=file.version, size_bytes=size_bytes)


def files_task(group: Sequence[CorpusFile], scheme: str = "") -> Task:
    """A task that reads some files as a whole."""
    version = combined_version(file.version or file.problem for file in group)
    size_bytes = sum(file.size_bytes for file in group)
    return Task(0, scheme, tuple(group), version=version, size_bytes=size_bytes)


def unreadable_tasks(source_files: Sequence[CorpusFile]) -> list[Task]:
    """Tasks for files with a problem; each file is one lost record."""
    return [
        files_task(source_files[start : start + _UNREADABLE_FILES], UNREADABLE_SCHEME)
        for start in range(0, len(source_files), _UNREADABLE_FILES)
    ]


def groups_of(
    items: Iterable[ItemT], size_of: Callable[[ItemT], int], most: int
) -> Iterator[list[ItemT]]:
    """Groups consecutive items up to a total size of `most`; a larger item is alone."""
    group: list[ItemT] = []
    size = 0
    for item in items:
        size += size_of(item)
        if group and size > most:
            yield group
            group = []
            size = size_of(item)
        group.append(item)
    if group:
        yield group


def combined_version(versions: Iterable[str]) -> str:
    """Combines versions into one, which changes when any of them does."""
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:16]


def cut_range(size: int, pieces: int) -> list[int]:
    """The edges of equal pieces of [0, size): `cut_range(10, 3)` is [0, 3, 6, 10]."""
    return [size * piece // pieces for piece in range(pieces + 1)]


def check_output_apart(
    output: str, options: CorpusOptions, tasks: Iterable[Task]
) -> None:
    """Checks that no corpus file is in the output, and the output not in the corpus.

        --corpus               --output
        text:news/*.txt        news/out    allowed: the pattern matches no file there
        text:news/*            news/out    refused: the pattern matches the folder
        text:news/**/*.txt     news/out    refused
        jsonl:runs/in/*.jsonl  runs        refused

    Links are resolved before paths are compared.

    Raises:
      UsageError: the output and the corpus overlap.
    """
    place = resolve(output)
    resolve_folder = functools.cache(resolve)
    for path in {path for task in tasks for path in task.paths}:
        folder, name = posixpath.split(path)
        is_link = files.is_local(path) and os.path.islink(local_name(path))
        at = resolve(path) if is_link else posixpath.join(resolve_folder(folder), name)
        if is_within(at, place):
            raise UsageError(
                f"{at}, a file of the corpus, is in --output {output}; name a folder "
                "outside the corpus"
            )
    for scheme, where in parse_addresses(options.corpus):
        if SCHEMES[scheme].has_files and _reaches(folder_pattern(where), place):
            raise UsageError(
                f"--output {output} is inside {options.corpus}, so the next run would "
                "read what this run writes; name a folder outside the corpus"
            )


def resolve(path: str) -> str:
    """Resolves the links of a path, and removes a final slash; also takes URLs."""
    if files.is_local(path):
        return os.path.realpath(absolute_path(path))
    fs, name = files.filesystem(path)
    return str(fs.unstrip_protocol(name)).rstrip("/")


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or is below it; both come from `resolve`."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _reaches(pattern: str, place: str) -> bool:
    """Whether a pattern matches a folder, a folder above it, or files below it."""
    name = absolute_path(pattern) if files.is_local(pattern) else pattern
    root, parts = split_pattern(name)
    root = resolve(root)
    if not parts or not is_within(place, root):
        return False
    folders = [part for part in place[len(root) :].split("/") if part]
    fixed = parts.index(ANY_FOLDERS) if ANY_FOLDERS in parts else len(parts)
    pairs = zip(parts[:fixed], folders, strict=False)
    below = [] if any(part[0] in "_." for part in parts[fixed:]) else folders[fixed:]
    is_seen = fixed == len(parts) or all(map(matcher("*"), below))
    return is_seen and all(matcher(part)(folder) for part, folder in pairs)
