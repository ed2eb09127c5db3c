"""Files in repositories of the Hugging Face hub: hf://datasets/ORG/NAME@REVISION/PATH.

    hf://datasets/ORG/NAME@main/a.parquet      may have other bytes after each commit
    hf://datasets/ORG/NAME@COMMIT/a.parquet    always has the same bytes

Jobs read files at a commit. A file that is read as a whole is downloaded to the cache
of huggingface_hub (HF_HOME); from others, such as the footer of a Parquet file, only
the needed ranges are requested.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, TypeVar

from precis.model.errors import UsageError
from precis.model.storage.store import ObjectStore

HUB = "hf://"
_FORM = "write hf://datasets/ORG/NAME/PATH, or hf://datasets/ORG/NAME@REVISION/PATH"
_OFFLINE = (
    "check the network and HF_HUB_OFFLINE, or download the files once with "
    "`hf download` and name their local paths"
)

T = TypeVar("T")


class HubStore(ObjectStore):
    """The repositories of the hub, for reading."""

    def at_commit(self, name: str) -> str:
        """A name with the commit of its branch or tag, or of the branch `main`.

        Raises:
          UsageError: the repository or the revision does not exist, it may not be read,
            or the hub cannot be reached.
        """
        from huggingface_hub import HfApi, constants, errors, parse_hf_uri

        with naming_refusals(self._path(name), form=_FORM, offline=_OFFLINE):
            uri = parse_hf_uri(self._path(name))
            if uri.is_bucket:
                raise errors.HFValidationError("a bucket has no commits")
            HfApi().auth_check(uri.id, repo_type=uri.type)
            found = HfApi().resolve_revision(
                uri.id, repo_type=uri.type, revision=uri.revision
            )
        folder = constants.REPO_TYPES_URL_PREFIXES.get(uri.type, "")
        return f"{folder}{uri.id}@{found.resolved}/{uri.path_in_repo}"

    def fetch(self, name: str) -> None:
        """Downloads a file at a commit to the cache, unless it is there."""
        from huggingface_hub import hf_hub_download
        from tqdm import tqdm

        bar: Any = partial(tqdm, disable=True)
        download = partial(hf_hub_download, tqdm_class=bar, **_place(name))
        self._ask(name, download)

    def open(self, name: str, mode: str = "rb") -> IO[bytes]:
        """Opens a file, of the cache if it is there."""
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(**_place(name))
        return open(cached, "rb") if isinstance(cached, str) else super().open(name)

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except Exception as error:
            path = self._path(name)
            if text := _refusal(error, form=_FORM, offline=_OFFLINE):
                raise OSError(errno.EIO, text, path) from error
            raise


def _place(name: str) -> dict[str, Any]:
    """The repository and the path of a name, for functions of huggingface_hub."""
    from huggingface_hub import parse_hf_uri

    uri = parse_hf_uri(f"{HUB}{name}")
    place = {"repo_id": uri.id, "repo_type": uri.type, "revision": uri.revision}
    return {**place, "filename": uri.path_in_repo}


@contextlib.contextmanager
def naming_refusals(name: str, *, form: str, offline: str) -> Iterator[None]:
    """Turns errors of huggingface_hub into one line with a way out.

    Args:
      name: the name of the model or file.
      form: the way out of an invalid name.
      offline: the way out if the hub cannot be reached.

    Raises:
      UsageError: the hub or its client refused something in the block.
    """
    from huggingface_hub import constants

    try:
        yield
    except Exception as error:
        if text := _refusal(error, form=form, offline=offline):
            raise UsageError(f"{name}: {text}") from error
        if isinstance(error, OSError):
            error.filename = error.filename or constants.HF_HUB_CACHE
        raise


def _refusal(error: Exception, *, form: str, offline: str) -> str:
    """What the hub or its client said, and the way out; "" for other errors."""
    import httpx2
    from huggingface_hub import errors

    # Derived classes come before their base classes.
    ways_out: dict[type[Exception], str] = {
        errors.HFValidationError: form,
        errors.HfUriError: form,
        errors.RevisionNotFoundError: "name a branch, a tag or a commit",
        errors.RepositoryNotFoundError: "correct the name, or request access on its "
        "page and set HF_TOKEN",
        errors.HfHubHTTPError: "check HF_TOKEN, or run the same command again later",
        httpx2.HTTPError: offline,
        errors.OfflineModeIsEnabled: offline,
        errors.LocalEntryNotFoundError: offline,
        errors.RevisionResolutionError: offline,
    }
    said = " ".join(str(error).split()).rstrip(".")
    fitting = (ways_out[kind] for kind in ways_out if isinstance(error, kind))
    way_out = next(fitting, "")
    return f"{said}; {way_out}" if way_out else ""
