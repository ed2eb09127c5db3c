"""The bundle of a summarizer: two bundles in one folder, and the flags that it stands
for.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    EXTRACTIVE,
    KEYPHRASES,
    SUMMARIZER,
    TAKEN_BY,
    open_stored,
    refuse_other_kind,
)
from precis.model.bundle.summarizer_bundle import (
    open_summarizer_bundle,
    save_summarizer_bundle,
    with_flags_of_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.pipelines.summarize.summary_settings import read_settings
from precis.pipelines.verify.verify import verify


@pytest.fixture
def parts(bundle, selector_bundle, tmp_path) -> Path:
    """A folder with a selector and a writer, neither of them trained."""
    folder = tmp_path / "summarizer"
    shutil.copytree(bundle, folder / "writer")
    shutil.copytree(selector_bundle, folder / "extractor")
    return folder


@pytest.fixture
def summarizer(parts) -> Path:
    save_summarizer_bundle(str(parts), provenance={"command": "train-summarizer"})
    return parts


def change(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_summarizer_comes_back_wherever_its_folder_lies(summarizer, tmp_path):
    opened = open_summarizer_bundle(str(summarizer))
    assert opened[ABSTRACTIVE] == f"{summarizer}/writer"
    assert opened[EXTRACTIVE] == f"{summarizer}/extractor"
    model_id = open_stored(str(summarizer), SUMMARIZER).model_id
    moved = shutil.move(summarizer, tmp_path / "moved")
    again = open_summarizer_bundle(str(moved))
    assert again[ABSTRACTIVE] == f"{moved}/writer"
    assert open_stored(str(moved), SUMMARIZER).model_id == model_id
    manifest = json.loads((Path(moved) / "manifest.json").read_text())
    assert manifest["kind"] == SUMMARIZER in TAKEN_BY
    assert manifest["provenance"] == {"command": "train-summarizer"}
    names = {"config.json", "extractor/manifest.json", "writer/manifest.json"}
    assert set(manifest["sha256"]) == names
    assert verify(folder=moved).findings == []


def test_no_summarizer_is_made_without_its_parts(parts):
    shutil.rmtree(parts / "writer")
    with pytest.raises(UsageError, match="writer: not a complete bundle"):
        save_summarizer_bundle(str(parts), provenance={})
    shutil.copytree(parts / "extractor", parts / "writer")
    message = "writer: a bundle of kind extractive, but kind abstractive is needed"
    with pytest.raises(UsageError, match=message):
        save_summarizer_bundle(str(parts), provenance={})
    assert not (parts / "manifest.json").exists()


@pytest.mark.parametrize("name", ["extractor", "writer"])
def test_a_part_that_is_missing_or_another_one_is_named(name, summarizer):
    path = summarizer / name / "manifest.json"
    message = f"{path}: missing, or its checksum differs from manifest.json's; copy"
    change(path, provenance={"step": 7})
    with pytest.raises(DataError, match=message):
        open_summarizer_bundle(str(summarizer))
    change(summarizer / "config.json", writer="../w")
    with pytest.raises(DataError, match="config.json: missing, or its checksum"):
        open_summarizer_bundle(str(summarizer))
    save_summarizer_bundle(str(summarizer), provenance={})
    shutil.rmtree(path.parent)
    with pytest.raises(DataError, match=message):
        with_flags_of_bundle({"bundle": summarizer})
    findings = verify(folder=summarizer).findings
    assert any(f"{name}/manifest.json" in finding for finding in findings)


PARTS_TAKEN = [
    ((ABSTRACTIVE,), "name {}/writer"),
    ((ENCODER, ABSTRACTIVE), "name {}/writer"),
    ((EXTRACTIVE,), "name {}/extractor"),
    ((KEYPHRASES,), "use it as `bundle=` of `precis summarize`"),
]


@pytest.mark.parametrize(("kinds", "way_out"), PARTS_TAKEN)
def test_a_command_that_takes_a_part_names_it(kinds, way_out, summarizer):
    message = f"{summarizer}: a bundle of kind summarizer, but kind "
    message += f"{' or '.join(kinds)} is needed here; {way_out.format(summarizer)}"
    with pytest.raises(UsageError, match=f"{re.escape(message)}$"):
        open_stored(str(summarizer), *kinds)


def test_only_a_summarizer_is_opened_as_one_and_replaced_by_one(summarizer, bundle):
    message = "a bundle of kind abstractive, but kind summarizer is needed here"
    with pytest.raises(UsageError, match=message):
        open_summarizer_bundle(str(bundle))
    with pytest.raises(UsageError, match="holds a bundle of the kind abstractive"):
        refuse_other_kind(str(bundle), SUMMARIZER)
    refuse_other_kind(str(summarizer), SUMMARIZER)


# The flags that it stands for.
def test_a_summarizer_stands_for_the_flags_of_both_bundles(summarizer):
    flags = {"bundle": summarizer, "corpus": "sample:3"}
    assert with_flags_of_bundle(flags) == {
        **{"corpus": "sample:3", "write": "sentences", "extractive": "neural,lead"},
        "bundle": f"{summarizer}/writer",
        "extractive_bundle": f"{summarizer}/extractor",
        **{"supported": "numbers,names", "common_pieces": 768, "beam_width": 2},
        **{"early_stopping": "bound", "no_repeat_ngram": 0},
    }


GIVEN = [
    {"extractive_bundle": "other"},
    {"extractive": "lead"},
    {"extractive": ["neural", "luhn"], "write": "article"},
    {"beam_width": 3, "written_sentences": 3},
]


@pytest.mark.parametrize("given", GIVEN)
def test_flags_that_are_given_win(given, summarizer):
    whole = with_flags_of_bundle({"bundle": str(summarizer)})
    assert with_flags_of_bundle({"bundle": str(summarizer), **given}) == whole | given


def test_a_writer_of_lines_is_not_given_whole_articles(parts):
    writer = parts / "writer"
    several = ((), ("highlights",), ("cuts", "highlights"), ("sentences", "cuts"))
    for targets in several:
        data = [{"target": target} for target in targets]
        change(writer / "manifest.json", provenance={"data": data})
        if "sentences" not in targets:
            assert read_settings({"bundle": writer}).model_ids["model_id"]
    message = f"{writer}: this network learned to shorten single sentences, .*; "
    with pytest.raises(UsageError, match=f"{message}in Python, .* with write=.sent"):
        read_settings({"bundle": writer})
    save_summarizer_bundle(str(parts), provenance={})
    for flags in ({"bundle": writer}, {"bundle": parts, "write": "article"}):
        with pytest.raises(UsageError, match=f"{message}name .*, --bundle {parts}$"):
            read_settings(flags)
    # Sentences are what it is for; this selector has learned too little.
    with pytest.raises(UsageError, match="does not know the importance of words"):
        read_settings({"bundle": parts})
