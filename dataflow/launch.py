"""The program of the Flex Template's launcher: the parameters of a launch become the
flags of `precis summarize`.

    launch.py --corpus=jsonl:gs://... --flat=true --runner=DataflowRunner ...

The parameters are described in metadata.json, which this prints:

    python dataflow/launch.py --print_metadata > dataflow/metadata.json
"""

import argparse
import dataclasses
import json
import sys
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from precis.pipelines.command_line.cli import main
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.flags.flags import flag_info, value_type
from precis.pipelines.options.summarize import SUMMARIZE

# Flags of a process that waits for the end of the job or works itself, and of data sets
# that are prepared on its disk.
NOT_IN_A_TEMPLATE = ("table", "workers", "data_dir")
READ_FOLDERS = ("bundle", "extractive_bundle", "keyphrase_bundle", "retry_failures")
_PATTERNS = {
    bool: "^(true|false)$",
    int: "^-?[0-9]+$",
    float: r"^-?[0-9]*\.?[0-9]+(e-?[0-9]+)?$",
}
_PATTERNS_BY_NAME = {
    "corpus": "^(((jsonl|csv|parquet|text|stories):gs://.+)|(sample:[0-9]*))$",
    "reuse": "^gs://[^,]+(, *gs://[^,]+)*$",
    **dict.fromkeys(("output", *READ_FOLDERS), "^gs://.+$"),
}
# Flags of Beam that a launch has no field for.
_OF_BEAM = (
    {
        "name": "sdk_container_image",
        "label": "Image of the workers",
        "helpText": "the image that dataflow/Dockerfile makes of the target cpu or gpu",
        "paramType": "TEXT",
        "regexes": ["^[^ ]+/[^ ]+$"],
    },
    {
        "name": "number_of_worker_harness_threads",
        "label": "Tasks at once in a worker process",
        "helpText": "1 is right where a network runs: each task holds a window of "
        "documents",
        "paramType": "TEXT",
        "isOptional": True,
        "regexes": ["^[0-9]+$"],
    },
    {
        "name": "dataflow_service_options",
        "label": "Options of the service",
        "helpText": "such as worker_accelerator=type:nvidia-tesla-t4;count:1;"
        "install-nvidia-driver",
        "paramType": "TEXT",
        "isOptional": True,
    },
)


def fields() -> Iterator[tuple[dataclasses.Field, type]]:
    """The flags of `precis summarize` that are parameters, each with its type."""
    for concern in SUMMARIZE:
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            if field.name not in NOT_IN_A_TEMPLATE:
                yield field, value_type(hints[field.name])


def metadata() -> dict[str, Any]:
    """The description of the template."""
    return {
        "name": "precis summarize",
        "description": COMMANDS["summarize"].text.summary,
        "parameters": [*map(_parameter, *zip(*fields(), strict=True)), *_OF_BEAM],
    }


def _parameter(field: dataclasses.Field, kind: type) -> dict[str, Any]:
    info = flag_info(field)
    folder = "WRITE" if field.name == "output" else "READ"
    is_folder = field.name in ("output", *READ_FOLDERS)
    parameter: dict[str, Any] = {
        "name": field.name,
        "label": field.name.replace("_", " ").capitalize(),
        "helpText": info.help,
        "paramType": f"GCS_{folder}_FOLDER" if is_folder else "TEXT",
    }
    if field.default is not dataclasses.MISSING:
        parameter["isOptional"] = True
    pattern = _PATTERNS_BY_NAME.get(field.name) or _PATTERNS.get(kind)
    if info.choices:
        pattern = f"^({'|'.join(info.choices)})$"
    if pattern:
        parameter["regexes"] = [pattern]
    return parameter


def command_line(parameters: Sequence[str]) -> list[str]:
    """The command line of precis: `--flat=false` becomes `--no-flat`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for field, kind in fields():
        if kind is bool:
            parser.add_argument(f"--{field.name}", choices=("true", "false"))
    switches, others = parser.parse_known_args(parameters)
    return [
        "summarize",
        *others,
        *(
            f"--{name}" if value == "true" else f"--no-{name}"
            for name, value in vars(switches).items()
            if value
        ),
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--print_metadata"]:
        print(json.dumps(metadata(), indent=2))
    else:
        sys.exit(main(command_line(sys.argv[1:])))
