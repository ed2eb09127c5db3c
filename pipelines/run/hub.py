"""Models of the Hugging Face hub in place of bundles: hf://ORG/NAME@REVISION.

    hf://facebook/bart-large-cnn     a commit of the branch `main`
      -> the files that an import reads, in the cache of huggingface_hub (HF_HOME)
      -> ~/.cache/precis/hub/facebook/bart-large-cnn/COMMIT-VERSION/, the bundle

PRECIS_CACHE moves ~/.cache/precis. A bundle is there only when it is complete, and then
its commit needs no network.
"""

import contextlib
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from filelock import FileLock

from precis.model import files
from precis.model.bundle.manifest import read_manifest
from precis.model.config import installed_version
from precis.model.errors import JobError, PrecisError, UsageError
from precis.model.progress.stages import stage

# The flags that name a bundle.
BUNDLE_FLAGS = (
    *("bundle", "extractive_bundle", "keyphrase_bundle", "checker"),
    *("encoder", "init_from", "tokenizer", "source_tokenizer"),
)
_SCHEME = "hf://"
_NAME = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w.-][\w./-]*))?")


class HubModel(NamedTuple):
    """A repository of the hub, as it was at a commit."""

    repository: str
    commit: str

    @property
    def name(self) -> str:
        """As a flag names it."""
        return f"{_SCHEME}{self.repository}@{self.commit}"

    @property
    def folder(self) -> str:
        """Of its bundle in the cache; each version of precis has its own."""
        place = f"{self.commit}-{installed_version()}"
        return files.join(_cache_folder(), self.repository, place)


def is_hub_name(value: Any) -> bool:
    """Whether a value of a flag names a model of the hub."""
    return isinstance(value, str) and value.startswith(_SCHEME)


def hub_name(path: str) -> str:
    """The name of the model whose bundle in the cache lies there; another path as it
    is.
    """
    if not path.startswith(f"{_cache_folder()}/"):
        return path
    return str(read_manifest(path)["provenance"]["checkpoint"])


def _cache_folder() -> str:
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    own = os.environ.get("PRECIS_CACHE") or files.join(caches, "precis")
    return files.join(os.path.abspath(own), "hub")


def with_local_bundles(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags, with the folders of bundles in place of names of the hub."""
    named = hub_flags(flags).items()
    return {**flags, **{flag: local_bundle(name) for flag, name in named}}


def hub_flags(flags: Mapping[str, Any]) -> dict[str, str]:
    """The flags that name models of the hub."""
    return {flag: flags[flag] for flag in BUNDLE_FLAGS if is_hub_name(flags.get(flag))}


@functools.cache
def local_bundle(name: str) -> str:
    """The folder of the bundle of a model of the hub, which is made when it is first
    asked for; another path as it is. A process keeps to the commit that it saw first.

    It is made in a process of its own: search processes are forked from one in which
    TensorFlow has computed nothing, and the memory is given back.

    Raises:
      UsageError: there is no such model, it cannot be imported, or the hub is not
        reached.
      JobError: the import failed, as where the checkpoint is damaged.
    """
    if not is_hub_name(name):
        return name
    model = resolve(name)
    if not os.path.exists(model.folder):
        command = [sys.executable, "-P", "-m", "precis", "import", model.name]
        command.append("--quiet")
        with stage("download and import", note=model.name):
            done = subprocess.run(command, capture_output=True, text=True)
        if code := done.returncode:
            killed = f"{name}: the import ended with {code}; most often memory is out"
            message = [killed, *done.stderr.strip().splitlines()][-1]
            error = UsageError if code == UsageError.exit_code else JobError
            raise error(message.removeprefix("precis import: "))
    return model.folder


def publish(model: HubModel, make: Callable[[str], object]) -> None:
    """Makes the bundle of a model, which is in the cache only when it is complete; of
    several processes one makes it, and the others wait for it.

    Args:
      model: of the hub.
      make: makes the bundle in the folder that it is given.
    """
    folder, aside = model.folder, f"{model.folder}{files.ASIDE}"
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not os.path.exists(folder):
            files.remove(aside)
            make(aside)
            os.replace(aside, folder)


def resolve(name: str) -> HubModel:
    """The commit that a name stands for: of the hub, or of its cache where the hub is
    not reached.

    Raises:
      UsageError: the name is none, or there is no such model.
    """
    from huggingface_hub import HfApi, errors

    with _naming_refusals(name):
        if not (written := _NAME.fullmatch(name)):
            raise errors.HFValidationError("this names no model of the hub")
        repository, revision = written.groups()
        found = HfApi().resolve_revision(repository, revision=revision)
    return HubModel(repository, found.resolved)


def download(model: HubModel) -> str:
    """Downloads the files of a checkpoint that an import reads.

    Returns:
      Their folder in the cache of the hub.

    Raises:
      UsageError: the checkpoint is none that can be imported.
      DataError: a file is damaged.
    """
    from huggingface_hub import snapshot_download
    from tqdm import tqdm

    from precis.model.bundle.checkpoints.importer import (
        DESCRIPTION_FILES,
        WEIGHTS_FILE,
        read_settings,
        weight_files,
    )
    from precis.model.tokenization.imported import read_tokenizer

    fetch = functools.partial(
        snapshot_download,
        repo_id=model.repository,
        revision=model.commit,
        tqdm_class=functools.partial(tqdm, disable=True),  # type: ignore[arg-type]
    )
    with stage("download", note=model.name), _naming_refusals(model.name):
        folder = str(fetch(allow_patterns=[*DESCRIPTION_FILES]))
        try:
            read_tokenizer(folder, read_settings(folder))
            fetch(allow_patterns=WEIGHTS_FILE)
            return str(fetch(allow_patterns=weight_files(folder)))
        except PrecisError as error:
            raise type(error)(str(error).replace(folder, model.name)) from error


@contextlib.contextmanager
def _naming_refusals(name: str) -> Iterator[None]:
    """Turns what huggingface_hub raises into one line with a way out."""
    from huggingface_hub import constants, errors

    offline = f"connect this machine once, for `precis import {name}`"
    # A class stands before the one that it is derived from.
    ways_out: dict[type[Exception], str] = {
        errors.HFValidationError: "write hf://ORG/NAME, or hf://ORG/NAME@REVISION",
        errors.RevisionNotFoundError: "name a branch, a tag or a commit",
        errors.RepositoryNotFoundError: "correct the name, or ask for access on the "
        "page of the model, and set HF_TOKEN",
        errors.HfHubHTTPError: "check HF_TOKEN, or run the same command again later",
        errors.HTTPError: offline,
        errors.LocalEntryNotFoundError: offline,
        errors.RevisionResolutionError: offline,
    }
    try:
        yield
    except tuple(ways_out) as error:
        way_out = next(
            text for kind, text in ways_out.items() if isinstance(error, kind)
        )
        said = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"{name}: {said}; {way_out}") from error
    except OSError as error:
        error.filename = error.filename or constants.HF_HUB_CACHE
        raise
