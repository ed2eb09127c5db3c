"""`precis verify`: a run, records or a bundle -> what is wrong with it.

It writes nothing into the folder and needs neither Beam nor TensorFlow.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.manifest import CONFIG_FILE, WEIGHTS_FILE
from precis.model.errors import UsageError
from precis.model.tokenization.folder import TOKENIZER_FOLDER
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.flags.flags import option_names, read_flags
from precis.pipelines.options.verify import VERIFY, ComparedCorpusOptions
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    SUCCESS_FILE,
)
from precis.pipelines.verification.bundle import check_bundle, not_checked
from precis.pipelines.verification.findings import Finding, as_lines
from precis.pipelines.verification.records import check_records
from precis.pipelines.verification.run import check_run

_MANIFEST = DESCRIPTION_FILES["summaries"]  # a bundle's has the same name
_DATASET = DESCRIPTION_FILES["records"]
RUN = "run"
RECORDS = "records"
BUNDLE = "bundle"


class Verification(NamedTuple):
    """The result of a verification.

    Attributes:
      kind: `run`, `records` or `bundle`.
      findings: what is wrong, a line each; empty if nothing is.
      files, rows, bytes: of the result.
      compared_with: the corpus that the rows were compared with; "" without one.
      not_checked: files and folders of a bundle that nothing was compared with, and
          why, a line each.
      notes: what is no damage, but good to know, a line each.
    """

    kind: str
    findings: list[str]
    files: int
    rows: int
    bytes: int
    compared_with: str
    not_checked: list[str]
    notes: list[str]


def verify(**flags: Any) -> Verification:
    """Checks that a run, records or a bundle are complete and as they were written.

    Args:
      **flags: the fields of `VerifyOptions` and `CorpusOptions`.

    Returns:
      What is wrong with it, and how much was checked.

    Raises:
      UsageError: a flag that cannot be, or a folder that is none of the three.
    """
    options, _ = read_flags(VERIFY, flags)
    folder = options.folder.rstrip("/") or "/"
    kind, content = _read_description(folder)
    findings: list[Finding]
    if isinstance(content, Finding):
        findings = [content]
        content = {}
    elif kind == RUN:
        findings = list(check_run(folder, content, _run_corpus(content, flags)))
    elif kind == RECORDS:
        findings = list(check_records(folder, content))
    else:
        findings = list(check_bundle(folder))
    if kind != RUN and flags.get("corpus"):
        raise UsageError(f"--corpus goes with a run, and {folder} is a {kind}")
    return Verification(
        kind,
        as_lines(finding for finding in findings if not finding.is_note),
        *_measure(folder, content),
        flags.get("corpus", ""),
        not_checked(folder) if kind == BUNDLE else [],
        as_lines(finding for finding in findings if finding.is_note),
    )


def _read_description(folder: str) -> tuple[str, Any]:
    """The kind of a result, and the content of the file that describes it.

    The content is a finding where that file is missing or damaged.

    Raises:
      UsageError: the folder is nothing that can be verified.
    """
    names = {name for name in _TELLING if files.exists(files.join(folder, name))}
    if not names:
        raise UsageError(
            f"{folder} is neither a run nor records nor a bundle; name the --output of "
            "`precis summarize`, `precis prepare`, `precis import` or a training"
        )
    is_bundle = bool({CONFIG_FILE, WEIGHTS_FILE} & names)
    if _MANIFEST in names:
        content = _read_object(folder, _MANIFEST)
        if isinstance(content, Finding):
            return BUNDLE if is_bundle else RUN, content
        if content.get("kind") == "summaries":
            return RUN, content
        if {"sha256", "model_id"} <= set(content):
            return BUNDLE, content
        if _DATASET not in names:
            return _of_other_kind(folder, names, is_bundle)
    if _DATASET in names:
        return RECORDS, _read_object(folder, _DATASET)
    if is_bundle:
        return BUNDLE, Finding(_MANIFEST, "is missing: the bundle is not complete")
    if TOKENIZER_FOLDER in names:
        return RECORDS, Finding(_DATASET, "is missing: the records are not finished")
    return RUN, Finding(_MANIFEST, "is missing: the result is not finished")


# Files and folders that tell what a folder is.
_TELLING = (
    *(_MANIFEST, _DATASET, CONFIG_FILE, WEIGHTS_FILE, SUCCESS_FILE),
    *(TOKENIZER_FOLDER, DATA_FOLDER, DEAD_LETTERS_FOLDER, TASKS_FOLDER),
)


def _of_other_kind(folder: str, names: set[str], is_bundle: bool) -> tuple[str, Any]:
    """The finding for a manifest that is that of no run and of no bundle."""
    if is_bundle or SUCCESS_FILE in names:
        kind = BUNDLE if is_bundle else RUN
        return kind, Finding(_MANIFEST, f"is damaged: it is no manifest of a {kind}")
    raise UsageError(
        f"{folder}: its {_MANIFEST} is neither that of a run nor that of a bundle; "
        "exports and evaluations cannot be verified, but made again"
    )


def _read_object(folder: str, name: str) -> dict[str, Any] | Finding:
    """The JSON object in a file, or what is wrong with it."""
    try:
        content = files.read_json(files.join(folder, name))
    except (ValueError, RecursionError, OSError) as error:
        return Finding(name, f"is damaged: not JSON: {error}")
    if not isinstance(content, dict):
        return Finding(name, "is damaged: it holds no JSON object")
    return content


def _run_corpus(
    manifest: Mapping[str, Any], flags: Mapping[str, Any]
) -> CorpusOptions | None:
    """How the corpus is read: as the run did, but for the flags that are given."""
    if not flags.get("corpus"):
        return None
    provenance = manifest.get("provenance")
    recorded = provenance.get("flags", {}) if isinstance(provenance, dict) else {}
    names = option_names([ComparedCorpusOptions])
    of_run = {name: recorded[name] for name in names if name in recorded}
    given = {name: flags[name] for name in names if name in flags}
    (corpus,) = read_flags([ComparedCorpusOptions], {**of_run, **given})
    compared: CorpusOptions = corpus
    return compared


def _measure(folder: str, content: Mapping[str, Any]) -> tuple[int, int, int]:
    """The number of files, rows and bytes below a folder."""
    fs, name = files.filesystem(folder)
    sizes = [entry["size"] or 0 for entry in fs.find(name, detail=True).values()]
    rows = 0
    if isinstance(content.get("files"), list):
        parts = [file for file in content["files"] if isinstance(file, dict)]
        rows = sum(_number(file.get("rows")) for file in parts)
    if isinstance(content.get("splits"), dict):
        splits = [split for split in content["splits"].values()]
        rows = sum(
            _number(split.get("records")) for split in splits if isinstance(split, dict)
        )
    return len(sizes), rows, sum(sizes)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
