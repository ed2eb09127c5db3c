"""The bundles, the records and the runs that a command reads."""

import itertools

from precis.model import files
from precis.model.bundle.manifest import BUNDLE_WAY_OUT, read_manifest
from precis.model.records.dataset import DATASET_FILE, load_dataset, require_oracle
from precis.model.records.tfrecord import read_frames
from precis.pipelines.doctor.findings import OK, PROBLEM, Check, Diagnosis
from precis.pipelines.doctor.request import Request
from precis.pipelines.verification.bundle import check_bundle as check_files
from precis.pipelines.verification.findings import as_lines
from precis.pipelines.warehouse.finished_run import open_run

_EXAMPLES = 10
_MOST_FINDINGS = 3


def check_bundle(path: str) -> Check[None]:
    """Verifies a bundle, as `precis verify` does.

    Raises:
      UsageError: the folder is no bundle.
    """
    manifest = read_manifest(path)
    findings = as_lines(check_files(path))
    for line in findings[:_MOST_FINDINGS]:
        yield Diagnosis(PROBLEM, "bundle", f"{path}: {line}", BUNDLE_WAY_OUT)
    if not findings:
        kind = manifest.get("kind", "")
        model = manifest["model_id"]
        yield Diagnosis(
            OK, "bundle", f"{path}: {kind} model {model}, as it was written"
        )


def check_run(folder: str) -> Check[None]:
    """Opens a run: its manifest, and the columns and rows of its parts.

    Raises:
      UsageError: the folder holds no finished run.
      DataError: the run is damaged.
    """
    run = open_run(folder)
    yield Diagnosis(OK, "run", f"{folder}: run {run.run_id} with {run.rows:,} rows")


def check_records(request: Request) -> Check[None]:
    """Opens the records of a training and reads ten examples of each set.

    Raises:
      UsageError: a folder holds no records.
      DataError: they are not finished, or damaged.
    """
    needs_labels = request.command != "train"
    for folder in str(request.value("records")).split(","):
        folder = folder.strip()
        info = load_dataset(folder)
        if needs_labels:
            require_oracle(info, folder)
        examples = 0
        for shard in info.splits.get("train", ()):
            listed_in = files.join(folder, DATASET_FILE)
            path = files.path_within(folder, shard.file, listed_in=listed_in)
            with files.open_read(path) as file:
                frames = read_frames(file, name=path)
                examples += sum(
                    1 for _ in itertools.islice(frames, _EXAMPLES - examples)
                )
            if examples == _EXAMPLES:
                break
        splits = ", ".join(f"{split} {info.records(split):,}" for split in info.splits)
        if not examples:
            yield Diagnosis(
                PROBLEM,
                "records",
                f"{folder} has no training example: {splits or 'no split'}",
                "prepare records from a corpus with documents of the split train",
            )
            continue
        yield Diagnosis(OK, "records", f"{folder}: {splits}; {examples} examples read")
