"""Uses models of the Hugging Face hub as bundles: hf://ORG/NAME@REVISION.

    hf://facebook/bart-large-cnn     a commit of the branch `main`
      -> the files that the import needs, in the cache of huggingface_hub (HF_HOME)
      -> ~/.cache/precis/hub/facebook/bart-large-cnn/COMMIT-VERSION/, the bundle

PRECIS_CACHE replaces ~/.cache/precis. Only complete bundles are there, and a complete
bundle needs no network.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from precis.model import files
from precis.model.config import installed_version
from precis.model.errors import JobError, PrecisError, UsageError
from precis.model.progress.stages import stage
from precis.model.storage.hub import HUB, naming_refusals

_NAME = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w.-][\w./-]*))?")


def bundle_folder(name: str) -> str:
    """The folder of a model's bundle, given its name with a commit; every version of
    precis has another folder.
    """
    place = name.removeprefix(HUB).replace("@", "/")
    return files.join(_cache_folder(), f"{place}-{installed_version()}")


def is_imported(folder: str) -> bool:
    """Whether the bundle in a folder of the cache is complete."""
    from precis.model.bundle.manifest import MANIFEST_FILE

    return files.exists(files.join(folder, MANIFEST_FILE))


def is_hub_name(value: Any) -> bool:
    """Whether a value of a flag names a model of the hub."""
    return isinstance(value, str) and value.startswith(HUB)


def hub_name(path: str) -> str:
    """The hub name of a bundle in the cache; other paths are returned unchanged."""
    if not path.startswith(f"{_cache_folder()}/"):
        return path
    from precis.model.bundle.manifest import open_stored

    return str(open_stored(path).manifest["provenance"]["checkpoint"])


def _cache_folder() -> str:
    place = os.environ.get("PRECIS_CACHE") or "~/.cache/precis"
    return files.join(os.path.abspath(os.path.expanduser(place)), "hub")


def with_local_bundles(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces names of the hub in flags by the folders of their bundles."""
    named = {flag: local_bundle(name) for flag, name in hub_flags(flags).items()}
    return {**flags, **named}


def hub_flags(flags: Mapping[str, Any]) -> dict[str, str]:
    """The flags that name models of the hub."""
    named = {flag: value for flag, value in flags.items() if is_hub_name(value)}
    named.pop("output", None)  # Refused with the other flags.
    return named


@cache
def local_bundle(name: str) -> str:
    """The folder of the bundle of a hub model, which is imported on first use; other
    paths are returned unchanged. A process always uses the first commit it saw.

    The import runs in its own process: search processes need a parent in which
    TensorFlow has computed nothing, and the process returns its memory.

    Raises:
      UsageError: the model does not exist, it cannot be imported, or the hub cannot be
          reached.
      JobError: the import failed, for example on a damaged checkpoint.
    """
    if not is_hub_name(name):
        return name
    name = resolve_model(name)
    folder = bundle_folder(name)
    if not is_imported(folder):
        command = [sys.executable, "-P", "-m", "precis", "import", name, "--quiet"]
        with stage("download and import", note=name):
            done = subprocess.run(command, capture_output=True, text=True)
        if code := done.returncode:
            killed = f"{name}: the import ended with {code}; most often memory ran out"
            message = [killed, *done.stderr.strip().splitlines()][-1]
            error = UsageError if code == UsageError.exit_code else JobError
            raise error(message.removeprefix("precis import: "))
    return folder


def resolve_model(name: str) -> str:
    """Adds to a model's name the commit that the hub gives, or its cache if the hub
    cannot be reached.

    Raises:
      UsageError: the name is invalid, or the model does not exist.
    """
    from huggingface_hub import HfApi, errors

    with _naming_refusals(name):
        if not (written := _NAME.fullmatch(name)):
            raise errors.HFValidationError("not the name of a model of the hub")
        repository, revision = written.groups()
        found = HfApi().resolve_revision(repository, revision=revision)
    return f"{HUB}{repository}@{found.resolved}"


def download(name: str) -> str:
    """Downloads the files of a checkpoint that an import needs.

    Returns:
      The folder of the files in the cache of the hub.

    Raises:
      UsageError: the checkpoint cannot be imported.
      DataError: a file is damaged.
    """
    from huggingface_hub import snapshot_download
    from tqdm import tqdm

    from precis.model.bundle.checkpoints import importer
    from precis.model.tokenization.imported import read_tokenizer

    repository, commit = name.removeprefix(HUB).split("@")
    bar: Any = partial(tqdm, disable=True)
    fetch = partial(snapshot_download, repository, revision=commit, tqdm_class=bar)
    with stage("download", note=name), _naming_refusals(name):
        folder = str(fetch(allow_patterns=[*importer.DESCRIPTION_FILES]))
        try:
            read_tokenizer(folder, importer.read_checkpoint_settings(folder))
            fetch(allow_patterns=importer.WEIGHTS_FILE)
            return str(fetch(allow_patterns=importer.weight_files(folder)))
        except PrecisError as error:
            raise type(error)(str(error).replace(folder, name)) from error


def _naming_refusals(name: str) -> contextlib.AbstractContextManager[None]:
    """Turns errors of huggingface_hub into one line with a way out."""
    return naming_refusals(
        name,
        form="write hf://ORG/NAME, or hf://ORG/NAME@REVISION",
        offline=f"run `precis import {name}` once with a connection",
    )
