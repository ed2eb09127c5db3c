"""Models of the Hugging Face hub in place of bundles: hf://ORG/NAME@REVISION.

    hf://facebook/bart-large-cnn     a commit of the branch `main`
      -> the files that an import reads, in the cache of huggingface_hub (HF_HOME)
      -> ~/.cache/precis/hub/facebook/bart-large-cnn/COMMIT-IMPORTER/, the bundle

PRECIS_CACHE moves ~/.cache/precis. A bundle is there only when it is complete, and then
its commit needs no network. A repository that holds a bundle of precis is used as it
is.
"""

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from filelock import FileLock

from precis.model import files
from precis.model.bundle.manifest import (
    CHECKSUMS_FILE,
    FORMAT_VERSION,
    MANIFEST_FILE,
    TRAINING_FOLDER,
)
from precis.model.config import installed_version
from precis.model.errors import NO_ROOM, JobError, PrecisError, UsageError
from precis.model.progress.stages import stage

# The flags that name a bundle.
BUNDLE_FLAGS = (
    *("bundle", "extractive_bundle", "keyphrase_bundle", "checker"),
    *("encoder", "init_from", "tokenizer", "source_tokenizer"),
)
_SCHEME = "hf://"
_NAME = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w.-][\w./-]*))?")
# A bundle in the cache.
_PLACE = re.compile(r"([^/]+/[^/]+)/([0-9a-f]{40})-[0-9a-f]{8}")


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
        """Of its bundle in the cache; each version of the importer has its own."""
        place = f"{self.commit}-{_importer_key()}"
        return files.join(_cache_folder(), self.repository, place)

    @property
    def is_imported(self) -> bool:
        """Whether the bundle is there."""
        return files.exists(files.join(self.folder, MANIFEST_FILE))


def is_hub_name(value: Any) -> bool:
    """Whether a value of a flag names a model of the hub."""
    return isinstance(value, str) and value.startswith(_SCHEME)


def hub_name(path: str) -> str:
    """The name of the model whose bundle in the cache lies there; another path as it
    is.
    """
    root = f"{_cache_folder()}/"
    found = path.startswith(root) and _PLACE.fullmatch(path.removeprefix(root))
    return HubModel(*found.groups()).name if found else path


def _cache_folder() -> str:
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    own = os.environ.get("PRECIS_CACHE") or files.join(caches, "precis")
    return files.join(os.path.abspath(own), "hub")


@functools.cache
def _importer_key() -> str:
    """Names what decides which bundle a checkpoint becomes: the importer."""
    from precis.model.bundle import checkpoints

    (folder,) = checkpoints.__path__
    names = [name for name in files.list_folder(folder) if name.endswith(".py")]
    sources = [files.sha256_file(files.join(folder, name)) for name in names]
    return files.sha256_json([installed_version(), FORMAT_VERSION, sources])[:8]


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

    Raises:
      UsageError: there is no such model, it cannot be imported, or the hub is not
        reached.
      JobError: the import failed, as where the checkpoint is damaged.
    """
    if not is_hub_name(name):
        return name
    model = resolve(name)
    if not model.is_imported:
        checkpoint = download(model)
        if is_bundle(checkpoint):
            publish(model, functools.partial(shutil.copytree, checkpoint))
        else:
            _import_apart(model)
    return model.folder


def _import_apart(model: HubModel) -> None:
    """Imports a downloaded model in a process of its own: search processes are forked
    from one in which TensorFlow has computed nothing, and the memory is given back.
    """
    command = [sys.executable, "-P", "-m", "precis", "import", model.name, "--quiet"]
    with stage("import", note=model.name):
        done = subprocess.run(command, capture_output=True, text=True)
    if code := done.returncode:
        killed = f"{model.name}: the import ended with {code}; most often memory is out"
        message = [killed, *done.stderr.strip().splitlines()][-1]
        error = UsageError if code == UsageError.exit_code else JobError
        raise error(message.removeprefix("precis import: "))


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
        if not model.is_imported:
            files.remove(aside)
            files.remove(folder)
            make(aside)
            os.replace(aside, folder)


def resolve(name: str) -> HubModel:
    """The commit that a name stands for: of the hub, or of its cache where the hub is
    not reached.

    Raises:
      UsageError: the name is none, or there is no such model.
    """
    written = _NAME.fullmatch(name)
    if not written:
        raise UsageError(
            f"{name}: a model of the hub is written hf://ORG/NAME, as on its page, or "
            "hf://ORG/NAME@REVISION; write it so"
        )
    repository, revision = written.groups()
    from huggingface_hub import HfApi

    with _naming_refusals(name):
        found = HfApi().resolve_revision(repository, revision=revision)
    return HubModel(repository, found.resolved)


def download(model: HubModel) -> str:
    """Downloads the files of a checkpoint that an import reads, or all of a bundle.

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
        folder = str(fetch(allow_patterns=[*DESCRIPTION_FILES, CHECKSUMS_FILE]))
        if is_bundle(folder):
            return str(fetch(ignore_patterns=f"{TRAINING_FOLDER}/*"))
        try:
            read_tokenizer(folder, read_settings(folder))
            fetch(allow_patterns=WEIGHTS_FILE)
            return str(fetch(allow_patterns=weight_files(folder)))
        except PrecisError as error:
            raise type(error)(str(error).replace(folder, model.name)) from error


def is_bundle(folder: str) -> bool:
    """Whether a downloaded folder is a bundle of precis."""
    return files.exists(files.join(folder, CHECKSUMS_FILE))


@contextlib.contextmanager
def _naming_refusals(name: str) -> Iterator[None]:
    """Turns what huggingface_hub raises into one line with a way out."""
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    # A class stands before the one that it is derived from.
    refusals: dict[type[Exception], str] = {
        errors.HFValidationError: "that is no name of a model; write hf://ORG/NAME",
        errors.GatedRepoError: "the owners of the model let in whom they know; ask for "
        f"access on {hub}/{name.removeprefix(_SCHEME).partition('@')[0]}, and set "
        "HF_TOKEN",
        errors.RepositoryNotFoundError: f"{hub} has no such model, or it is private; "
        "correct the name, or set HF_TOKEN",
        errors.RevisionNotFoundError: "the model has no such revision; name a branch, "
        "a tag or a commit",
    }
    try:
        yield
    except tuple(refusals) as error:
        refusal = next(refusals[kind] for kind in refusals if isinstance(error, kind))
        raise UsageError(f"{name}: {refusal}") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        is_token = status in (401, 403)
        way_out = "check HF_TOKEN" if is_token else "run the same command again later"
        raise UsageError(f"{name}: {hub} answers {status}; {way_out}") from error
    except (
        errors.HTTPError,
        errors.LocalEntryNotFoundError,
        errors.RevisionResolutionError,
    ) as error:
        is_off = constants.HF_HUB_OFFLINE
        reason = "HF_HUB_OFFLINE is set" if is_off else f"{hub} is not reached"
        raise UsageError(
            f"{name}: {reason}, and {constants.HF_HUB_CACHE} does not hold this model; "
            f"connect this machine once, for `precis import {name}`"
        ) from error
    except OSError as error:
        if error.errno in NO_ROOM:
            error.filename = error.filename or constants.HF_HUB_CACHE
        raise
