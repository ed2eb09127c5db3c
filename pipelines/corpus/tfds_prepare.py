"""Prepares data sets of TensorFlow Datasets (TFDS), downloaded or from raw stories."""

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import tensorflow_datasets as tfds

from precis.model import files
from precis.model.errors import UsageError

_URL_LISTS = {
    "train_urls": "all_train.txt",
    "val_urls": "all_val.txt",
    "test_urls": "all_test.txt",
}
_STORIES = ("cnn/stories", "dailymail/stories")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
# Requested before a download: without a network TFDS tries for minutes.
_PROBE_URLS = {"cnn_dailymail": "https://drive.google.com"}
_PROBE_URL = "https://storage.googleapis.com"
_PROBE_SECONDS = 5


def prepared_builder(name: str, data_dir: str) -> Any:
    """The builder of a prepared data set, which is downloaded if it is not prepared.

    Args:
      name: `cnn_dailymail`, or `cnn_dailymail/3.4.0` with a version.
      data_dir: where TFDS keeps its data sets; "" for its default.

    Raises:
      UsageError: there is no such data set, or it cannot be downloaded.
    """
    path, _, last = name.rpartition("/")
    set_name, version = (path, last) if _VERSION.fullmatch(last) else (name, None)
    try:
        builder = tfds.builder(set_name, version=version, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, AssertionError, ValueError) as error:
        raise UsageError(
            f"tfds:{name} is no data set that TensorFlow Datasets knows: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if builder.is_prepared():
        return builder
    problem = _download(builder)
    if problem:
        way_out = "run again where there is a network"
        if builder.name == "cnn_dailymail":
            way_out = "prepare it from raw stories with --stories_dir and --urls_dir"
        raise UsageError(
            f"tfds:{name} is not prepared in {builder.data_dir} and cannot be "
            f"downloaded ({problem}); copy a prepared data_dir there and name it with "
            f"--data_dir, or {way_out}"
        )
    return builder


def _download(builder: Any) -> str:
    """Downloads and prepares a data set; returns the problem, or "" without one."""
    problem = _unreachable(_PROBE_URLS.get(builder.name, _PROBE_URL))
    if problem:
        return problem
    try:
        builder.download_and_prepare()
    except Exception as error:  # The builders raise errors of many types.
        message = str(error).splitlines()[0] if str(error) else ""
        return f"the download failed: {type(error).__name__}: {message}"
    return ""


def _unreachable(url: str) -> str:
    """Why a host does not answer within seconds, or "" if it does."""
    answers: list[str] = []

    def send_request() -> None:
        request = urllib.request.Request(url, method="HEAD")
        try:
            urllib.request.urlopen(request, timeout=_PROBE_SECONDS).close()
            answers.append("")
        except urllib.error.HTTPError:
            answers.append("")  # A refusal is an answer too.
        except OSError as error:
            answers.append(f"{url} does not answer: {error}")

    # In a thread, because the look-up of a host name has no time limit.
    thread = threading.Thread(target=send_request, daemon=True)
    thread.start()
    thread.join(_PROBE_SECONDS)
    return answers[0] if answers else f"{url} does not answer"


def prepare_from_stories(stories_dir: str, urls_dir: str, data_dir: str) -> str:
    """Prepares cnn_dailymail from raw stories with the builder of TFDS.

    Nothing happens if the data set is prepared already.

    Args:
      stories_dir: holds `cnn/stories` and `dailymail/stories`.
      urls_dir: holds `all_train.txt`, `all_val.txt` and `all_test.txt`; the sha1 of a
          URL is the name of its story.
      data_dir: where TFDS keeps its data sets; "" for its default.

    Returns:
      The folder of the prepared data set.

    Raises:
      UsageError: a folder or a list is not there.
    """
    url_lists = {key: files.join(urls_dir, name) for key, name in _URL_LISTS.items()}
    story_folders = [files.join(stories_dir, name) for name in _STORIES]
    for path in [*story_folders, *url_lists.values()]:
        if not files.exists(path):
            raise UsageError(
                f"{path} is missing; --stories_dir holds {' and '.join(_STORIES)}, "
                f"--urls_dir {', '.join(_URL_LISTS.values())}"
            )
    paths = {"cnn_stories": stories_dir, "dm_stories": stories_dir, **url_lists}
    builder = _story_builder(paths)(data_dir=data_dir or None)
    builder.download_and_prepare()
    return str(builder.data_dir)


class _LocalFiles:
    """A download manager that returns local paths instead of downloads."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def download_and_extract(self, urls: Mapping[str, str]) -> dict[str, str]:
        return {key: self._paths[key] for key in urls}


def _story_builder(paths: Mapping[str, str]) -> Any:
    """The class of a builder of cnn_dailymail that reads local files."""
    upstream = tfds.builder_cls("cnn_dailymail")
    # TFDS names a data set after its class and refuses to register the name twice.
    with tfds.core.registered.skip_registration():

        class CnnDailymail(upstream):  # type: ignore[misc,valid-type]
            def _split_generators(self, dl_manager: Any) -> Any:
                return super()._split_generators(_LocalFiles(paths))

    return CnnDailymail
