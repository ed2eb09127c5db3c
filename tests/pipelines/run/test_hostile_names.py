"""Names of files that were read from files: none leads a command out of the folder."""

import hashlib
import shutil

import pytest
from support.command_line import contents, exit_code, precis
from support.damaged_results import edit_description

from precis.model import files
from precis.model.errors import DataError

ABC = {"rows": 0, "bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}


# Between spaces.
OUTSIDE = (
    "../x.safetensors /etc/passwd a/../../x .. ..\\x . ./x a//x a/ \ud800/x "
    "gs://bucket/x a::file:///etc/passwd a\0b"
)


@pytest.mark.parametrize("name", [*OUTSIDE.split(" "), "", 3, None, ["a"]])
def test_a_name_that_leads_out_of_the_folder_is_refused(name):
    message = "f/index.json: it lists the file .*, which is not a plain name"
    with pytest.raises(DataError, match=message):
        files.path_within("f", name, listed_in="f/index.json")


def test_a_name_is_refused_where_a_folder_in_it_is_a_link_that_leads_out(tmp_path):
    for folder in ("run/data", "outside", "disk"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "run" / "data" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "run" / "data" / "part").symlink_to(tmp_path / "outside" / "part")
    (tmp_path / "run" / "same").symlink_to("data")
    (tmp_path / "link").symlink_to("run")
    folder = str(tmp_path / "link")
    with pytest.raises(DataError, match="it lists the file 'data/out/x', which is not"):
        files.path_within(folder, "data/out/x", listed_in="m")
    # Stores of files by their content put links in place of the files themselves.
    for name in ("data/part", "same/x", "split=a:b/part-0..1.parquet"):
        assert files.path_within(folder, name, listed_in="m") == f"{folder}/{name}"


@pytest.fixture
def place(extractive, prepared_records, tmp_path, monkeypatch):
    """A folder with a run, records, and a file beside them that is nobody's."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(extractive, "run")
    shutil.copytree(prepared_records, "records")
    (tmp_path / "victim").write_bytes(b"abc")
    return tmp_path


SAME = "summarize --output run"


@pytest.mark.parametrize(
    ("field", "command"),
    [
        ("files", f"{SAME} --task_bytes 4000 --min_source_words 0 --deduplicate"),
        ("dead_letters", "summarize --output other --reuse run"),
        ("files", "summarize --output other --reuse run"),
        ("files", "evaluate --input run"),
        ("dead_letters", "report run"),
        ("files", "verify run"),
        ("files", "loaders run --for duckdb --table t --output sql"),
    ],
)
def test_a_manifest_that_leads_out_is_refused(command, field, place, corpus, capfd):
    def add(manifest):
        manifest.setdefault(field, []).append({"file": "../victim", **ABC})

    edit_description(place / "run" / "manifest.json", add)
    before = contents(place)
    words = command.split()
    if words[0] == "summarize":
        words += ["--corpus", corpus, "--max_failed_share", "0.5"]
    assert exit_code(*words) == 1
    printed = "".join(capfd.readouterr())
    assert "json: it lists the file '../victim', which is not a plain" in printed
    shutil.rmtree("other", ignore_errors=True)  # The job that reuses has begun there.
    assert contents(place) == before


@pytest.mark.parametrize("name", ["../victim", "victim_path"])
def test_records_that_name_another_file_are_refused(name, place, prepare_flags, capfd):
    name = name.replace("victim_path", str(place / "victim"))

    def add(content):
        content["files"].append({"file": name, **ABC})

    edit_description(place / "records" / "dataset.json", add)
    before = contents(place)
    assert precis("prepare", output="records", **prepare_flags) == 1
    assert f"dataset.json: it lists the file '{name}', " in capfd.readouterr().err
    assert contents(place) == before
