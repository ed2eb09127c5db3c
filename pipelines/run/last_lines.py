"""The last lines of a command: what it made, where that lies, what takes it next."""

import dataclasses
import itertools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.config import flag_name
from precis.model.progress.stages import say
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.job_progress import is_quiet
from precis.pipelines.run.program import precis_program

# Above this share of documents that a network does not read to their end, a command
# says so.
_NOTABLE_CUT_SHARE = 0.25
# The flags of a corpus that say which documents to take, and in what pieces.
_OF_ONE_RUN = ("corpus", "split", "limit", "sample", "sample_seed", "task_bytes")


def listed(counts: Mapping[str, int]) -> str:
    """Counts by name in one line."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def duration(seconds: float) -> str:
    """Seconds as days, hours, minutes: `2 d 3 h`, `1 h 5 min`, `3 min 20 s`, `12 s`."""
    whole = round(seconds)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for (name, size), (lower_name, lower) in zip(units, units[1:], strict=False):
        if whole >= size:
            rest = whole % size // lower
            return f"{whole // size} {name} {rest} {lower_name}"
    return f"{whole} s"


def warn_of_cuts(command: str, *, share: float, what: str, way_out: str) -> None:
    """Warns where a network does not read many of the documents to their end.

    Args:
      command: the command that says so.
      share: of the documents that are cut.
      what: what is too long, behind the words "12% of".
      way_out: what to do.
    """
    if share > _NOTABLE_CUT_SHARE:
        say(f"precis {command}: warning: {share:.0%} of {what}; {way_out}")


def end_with(output: Any, *command: Any) -> None:
    """The last lines of a command: where its result lies, and what takes it."""
    print(f"wrote {output}")
    suggest_next(*command)


def end_with_template(beam_args: Sequence[str], output: str) -> None:
    """The last lines of a command whose job was saved for Dataflow."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    cloud = GoogleCloudOptions(list(beam_args))
    print(f"nothing ran yet: the job that writes {output} is saved")
    end_with(
        cloud.template_location,
        *("gcloud", "dataflow", "jobs", "run", cloud.job_name or "precis"),
        *("--project", cloud.project, "--region", cloud.region),
        *("--gcs-location", cloud.template_location),
    )


def suggest_next(*command: Any) -> None:
    """Prints a command line to go on with."""
    program, *arguments = map(str, command)
    if program == "precis":
        program = precis_program()
    say_next(shlex.join([program, *arguments]))


def say_next(text: str) -> None:
    """Prints what to do with a result, but not for --quiet."""
    if not is_quiet():
        print(f"next: {text}")


def unused_output(name: str) -> str:
    """The name of an output that is not there yet: `summaries`, or `summaries-2`."""
    names = itertools.chain(
        [name], (f"{name}-{number}" for number in itertools.count(2))
    )
    return next(each for each in names if not files.exists(each))


def corpus_flags_of_records(records: Any) -> list[str]:
    """The flags of the corpus that records were made from."""
    from precis.model.records.dataset import load_dataset

    folder = records if isinstance(records, str) else records[0]
    recorded = load_dataset(folder.split(",")[0].strip()).provenance.get("flags", {})
    flags = ["--corpus", recorded.get("corpus", "SCHEME:WHERE")]
    for field in dataclasses.fields(CorpusOptions):
        value = recorded.get(field.name, field.default)
        if field.name in _OF_ONE_RUN or value == field.default:
            continue
        name = flag_name(field.name)
        if isinstance(value, bool):
            flags.append(f"--{name}" if value else f"--no-{name}")
        else:
            flags += [f"--{name}", str(value)]
    return flags
