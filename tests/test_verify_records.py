"""Tests of `precis verify` on records and bundles, and of jobs that refuse damage."""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import contents, error_lines, exit_code
from support.command_line import precis as run_command
from support.damaged_results import (
    describe_again,
    edit_description,
    findings,
    shards_of,
)
from support.extractor_trainings import labelled_records

import precis
from precis.model import files
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import load_dataset
from precis.model.records.tfrecord import frame


@pytest.fixture
def records(prepared_records: Path, tmp_path: Path) -> Path:
    """A copy of records with dead letters."""
    return Path(shutil.copytree(prepared_records, tmp_path / "records"))


@pytest.fixture
def copied_bundle(bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundle, tmp_path / "bundle"))


def edit(records: Path, change: Callable[[dict[str, Any]], None]) -> None:
    edit_description(records / "dataset.json", change)


def list_again(records: Path, path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        listed = (*shards_of(content), *content["dead_letters"], *content["files"])
        describe_again(listed, records, path)

    edit(records, change)


def test_whole_records_have_no_findings(prepared_records, records_folder):
    result = precis.verify(folder=prepared_records)
    count = sum(path.is_file() for path in prepared_records.rglob("*"))
    written = load_dataset(str(prepared_records)).counts["written"]
    assert result[:4] == ("records", [], count, written)
    listed = json.loads((prepared_records / "dataset.json").read_bytes())
    assert {file["file"] for file in listed["files"]} == {
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    }
    assert listed["dead_letters"]


FILES = ["*.tfrecord", "tokenizer/vocab.txt", "dead_letters/*"]


@pytest.mark.parametrize("pattern", FILES)
def test_damaged_files_of_records_are_named(records, pattern):
    path = sorted(records.glob(pattern))[0]
    name = str(path.relative_to(records))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert findings(records)[0].startswith(f"{name}: has ")
    path.write_bytes(content[:-1] + b"#")
    assert findings(records)[0].startswith(f"{name}: has another content than was ")
    path.unlink()
    assert findings(records)[0] == f"{name}: is missing"


@pytest.mark.parametrize("name", ["x", "tokenizer/x", "train-9.tfrecord", "a/b/c"])
def test_additional_files_of_records_are_named(records, name):
    files.write_bytes(str(records / name), b"")
    assert findings(records) == [f"{name}: is no part of the result"]


def test_damaged_records_in_a_shard_are_named(records):
    """Records whose checksums in dataset.json are right."""
    path = sorted(records.glob("*.tfrecord"))[0]
    content = path.read_bytes()
    for damage, problem in (
        (
            content[:20] + b"\xff" + content[21:],
            "damaged at byte 0 (checksum of the re",
        ),
        (content[:-1], "the file ends within a record, at byte "),
        (content + frame(b"x"), "has "),
    ):
        path.write_bytes(damage)
        list_again(records, path)
        (line,) = findings(records)
        assert line.startswith(f"{path.name}: {problem}")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c.update(format_version=7), "its format_version is 7, and this pre"),
        (lambda c: c.update(splits={"a": 1}), "its list of files is damaged: "),
        (lambda c: c.pop("seed"), "is damaged: TypeError("),
        (
            lambda c: c["counts"].update(written=1),
            "counts.written is 1, and the shards",
        ),
        (
            lambda c: c["counts"].update(failed=77),
            "counts.failed is 77, and the dead l",
        ),
    ],
)
def test_values_of_a_description_are_named(records, change, line):
    edit(records, change)
    assert findings(records)[0].startswith(f"dataset.json: {line}")


def test_another_tokenizer_is_named(records):
    """dataset.json describes its files, but has another fingerprint."""
    edit(records, lambda c: c.update(tokenizer_fingerprint="0" * 64))
    assert findings(records) == [
        "tokenizer: is not the tokenizer that dataset.json names"
    ]


def test_a_missing_or_edited_description_of_records_is_named(records):
    path = records / "dataset.json"
    content = path.read_text()
    path.write_text(content.replace('"seed"', '"seed" '))
    assert findings(records) == [
        "dataset.json: its checksum is not that in _SUCCESS; one of them was changed"
    ]
    message = "dataset.json: was changed since it was written: its checksum is not that"
    with pytest.raises(DataError, match=message):
        load_dataset(str(records))
    path.unlink()
    assert findings(records) == [
        "dataset.json: is missing: the records are not finished"
    ]


def test_dead_letters_of_other_records_are_named(records):
    path = sorted((records / "dead_letters").iterdir())[0]
    lines = gzip.decompress(path.read_bytes()).splitlines()
    letter = {**json.loads(lines[0]), "run_id": "other"}
    changed = b"\n".join([json.dumps(letter).encode(), *lines[1:]])
    path.write_bytes(gzip.compress(changed))
    list_again(records, path)
    name = f"dead_letters/{path.name}"
    assert findings(records) == [f"{name}, row 0: run_id is of another run"]


def test_the_same_prepare_repairs_damaged_records(
    records, prepared_records, prepare_flags, one_time, capsys
):
    names = []
    for pattern in FILES:
        path = sorted(records.glob(pattern))[0]
        path.write_bytes(path.read_bytes()[:-1])
        names.append(str(path.relative_to(records)))
    assert run_command("prepare", output=records, **prepare_flags) == 0
    lines = error_lines(capsys.readouterr().err, "prepare")
    assert sorted(lines[: len(names)]) == sorted(
        f"precis prepare: {name} is damaged; repairing" for name in names
    )
    assert contents(records) == contents(prepared_records)


def test_a_whole_bundle_has_no_findings(bundle, capsys):
    assert exit_code("verify", str(bundle)) == 0
    assert capsys.readouterr().out.startswith(f"bundle {bundle} is as it was written (")


def test_the_state_of_a_training_beside_a_bundle_is_no_finding(copied_bundle):
    (copied_bundle / "training" / "checkpoints").mkdir(parents=True)
    (copied_bundle / "training" / "losses.jsonl").write_text("{}")
    assert findings(copied_bundle) == []
    (copied_bundle / "trainings").write_text("foreign")
    assert findings(copied_bundle) == ["trainings: is no part of the result"]


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json"])
def test_damaged_files_of_a_bundle_are_named(copied_bundle, name):
    path = copied_bundle / name
    path.write_bytes(path.read_bytes()[:-1])
    assert findings(copied_bundle)[0].startswith(
        f"{name}: missing, or its checksum dif"
    )
    path.unlink()
    assert findings(copied_bundle)[0].startswith(
        f"{name}: missing, or its checksum dif"
    )


def test_a_damaged_tokenizer_of_a_bundle_is_named(copied_bundle):
    path = copied_bundle / "tokenizer" / "vocab.txt"
    path.write_bytes(path.read_bytes() + b"x\n")
    line, other = findings(copied_bundle)
    assert line.startswith("tokenizer: is damaged or missing: ")
    assert other.startswith("tokenizer/vocab.txt: its checksum is not that in SHA256S")


def test_another_tokenizer_of_a_bundle_is_named(copied_bundle, prepared_records):
    shutil.rmtree(copied_bundle / "tokenizer")
    shutil.copytree(prepared_records / "tokenizer", copied_bundle / "tokenizer")
    expected = "tokenizer: is not the tokenizer that manifest.json names"
    assert findings(copied_bundle)[0] == expected


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"model_id": "', '"model_id": "0', "manifest.json: its model_id is 0"),
        ('"format_version": 1', '"format_version": 7', "manifest.json: format_version"),
        ('"config.json"', '"../c"', "../c: manifest.json: it names the file '../c'"),
        ("{", "[", "manifest.json: is damaged: not JSON"),
        ('"model_id"', '"x"', "manifest.json: is damaged: it is no manifest of a bund"),
    ],
)
def test_an_edited_manifest_of_a_bundle_is_named(copied_bundle, old, new, line):
    path = copied_bundle / "manifest.json"
    content = path.read_text().replace(old, new, 1)
    if new == '"../c"':  # Its model_id is that of the checksums, with other names.
        from precis.model.bundle.manifest import content_model_id

        manifest = json.loads(content)
        content = json.dumps({**manifest, "model_id": content_model_id(manifest)})
    path.write_text(content)
    assert any(found.startswith(line) for found in findings(copied_bundle))


def test_files_of_a_bundle_that_are_missing_or_additional_are_named(copied_bundle):
    (copied_bundle / "tokenizer" / "x").touch()
    assert findings(copied_bundle) == ["tokenizer/x: is no part of the result"]
    (copied_bundle / "manifest.json").unlink()
    assert findings(copied_bundle) == [
        "manifest.json: is missing: the bundle is not complete"
    ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A summarizer, whose parts were trained, and a classifier of keyphrases."""
    base = tmp_path_factory.mktemp("trained")
    records = labelled_records(base)
    network = {"width": 8, "feed_forward": 8, "heads": 2, "validation_steps": 9}
    precis.train(records=records, output=base / "s" / "writer", steps=1, **network)
    precis.train_extractor(records=records, output=base / "s" / "extractor", epochs=1)
    precis.train_keyphrases(records=records, output=base / "keyphrases")
    save_summarizer_bundle(str(base / "s"), provenance={})
    return base


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s", "keyphrases"])
def test_every_damage_of_every_file_of_a_bundle_is_named(trained, name):
    """A file is damaged, or the state of a training, which is named as not checked."""
    folder = trained / name
    whole = precis.verify(folder=folder)
    assert whole.findings == []
    apart = [line.partition(":")[0] for line in whole.not_checked]
    states = ["extractor/training/", "writer/training/"]
    assert apart == (states if name == "s" else [])
    for file, content in contents(folder).items():
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 1])
        for damaged in (
            content[:middle] + flipped + content[middle + 1 :],
            content + b"\n",
            None,
        ):
            path = folder / file
            path.unlink() if damaged is None else path.write_bytes(damaged)
            result = precis.verify(folder=folder)
            path.write_bytes(content)
            named = [*result.findings, *result.not_checked]
            begins = any(file.startswith(line.partition(":")[0]) for line in named)
            # A checksum that is another one is named with the file that it is of.
            is_list = file.endswith("SHA256SUMS") and "SHA256SUMS" in str(named)
            assert begins or is_list, (file, damaged)
    assert precis.verify(folder=folder) == whole


def test_a_bundle_stays_whole_when_its_card_is_written_anew(copied_bundle, capsys):
    (copied_bundle / "training").mkdir()
    card = copied_bundle / "README.md"
    card.write_text("other words")
    assert findings(copied_bundle) == [
        "README.md: its checksum is not that in SHA256SUMS; one of them was changed; "
        "`precis card BUNDLE --output BUNDLE/README.md` writes both anew"
    ]
    flags = ("--license", "mit", "--output", str(card))
    assert exit_code("card", str(copied_bundle), *flags) == 0
    capsys.readouterr()
    assert exit_code("verify", str(copied_bundle)) == 0
    assert capsys.readouterr().out.startswith(
        "not checked: training/: the state of the training, no part of it\n"
        f"bundle {copied_bundle} is as it was written where it was checked ("
    )


def test_a_bundle_of_an_earlier_version_is_checked_without_checksums(copied_bundle):
    (copied_bundle / "SHA256SUMS").unlink()
    (copied_bundle / "README.md").unlink()
    result = precis.verify(folder=copied_bundle)
    assert result.findings == []
    (line,) = result.not_checked
    assert line.startswith("SHA256SUMS: is missing, as in bundles of earlier versions;")
    precis.card(bundle=copied_bundle, output=copied_bundle / "README.md")
    assert contents(copied_bundle).keys() & {"SHA256SUMS", "README.md"} == {"README.md"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda text: text[:-9],
            "SHA256SUMS: is damaged: not as precis writes it; copy the bundle again",
        ),
        (
            lambda text: text[text.index("\n") + 1 :],
            "SHA256SUMS: lists other files than the bundle: README.md",
        ),
        (
            lambda text: text + f"{'0' * 64}  ../x\n",
            "SHA256SUMS: is damaged: not as precis writes it; copy the bundle again",
        ),
        (
            lambda text: f"{'0' * 64}  ../x\n{text}",
            "SHA256SUMS: lists other files than the bundle: ../x",
        ),
    ],
)
def test_an_edited_list_of_checksums_is_named(copied_bundle, change, line):
    path = copied_bundle / "SHA256SUMS"
    path.write_text(change(path.read_text()))
    assert findings(copied_bundle) == [line]


def test_a_corpus_goes_with_a_run_alone(bundle):
    with pytest.raises(
        UsageError, match="--corpus goes with a run, and .* is a bundle"
    ):
        findings(bundle, corpus="sample:3")


def test_verifying_needs_neither_beam_nor_tensorflow(
    extractive, prepared_records, bundle
):
    program = (
        "import sys\n"
        "from precis.pipelines.command_line.cli import main\n"
        "assert all(main(['verify', folder]) == 0 for folder in sys.argv[1:])\n"
        "assert main(['digest', sys.argv[1]]) == 0\n"
        "heavy = {'tensorflow', 'apache_beam', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    folders = [str(extractive), str(prepared_records), str(bundle)]
    done = subprocess.run(
        [sys.executable, "-c", program, *folders], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
