"""`precis summarize --engine ctranslate2`: the rows of TensorFlow from the network that
CTranslate2 computes, and what it refuses.
"""

import functools
import importlib.util
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import read_table
from support.command_line import precis, write_jsonl
from support.corpus_records import story
from support.huggingface_bundles import save_layout, write_small_checkpoint
from support.small_checkpoint import write_checkpoint, write_tokenizer
from support.summarize_runs import manifest_of, rows_of, settings_of

from precis.model.bundle.ctranslate2_model import converted_bundle
from precis.model.bundle.network_bundle import open_bundle
from precis.model.errors import UsageError
from precis.pipelines.bundles.import_checkpoint import import_checkpoint

pytestmark = pytest.mark.parity
if importlib.util.find_spec("ctranslate2") is None:
    pytest.skip("`make test-slow` installs ctranslate2", allow_module_level=True)
# Where no token is forbidden both engines have the same probabilities, and where a
# document is done once the beam has ended, the same hypotheses.
PLAIN = {"no_repeat_ngram": 0, "min_summary_tokens": 0, "early_stopping": "first_k"}
ENGINE = {"engine": "ctranslate2"}
AUTO = {"engine": "auto", "beam_width": 3, **PLAIN}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A function that gives the bundle of a kind of network; `own` is one of ours, and
    `unforced` is a T5 without forced tokens.
    """
    made: dict[str, str] = {}

    def make(kind: str) -> str:
        folder = tmp_path_factory.mktemp(kind)
        if kind == "own":
            return save_layout(folder, "bart")
        if kind == "unforced":
            write_checkpoint(folder, kind="t5", generation=None)
            write_tokenizer(folder)
        else:
            write_small_checkpoint(folder, kind)
        output = str(folder / "bundle")
        import_checkpoint(checkpoint=str(folder), output=output)
        return output

    return lambda kind: made.get(kind) or made.setdefault(kind, make(kind))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    lines = [story(number) for number in range(60)]
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "news.jsonl", lines)


def run(corpus, output, bundle, **flags):
    """The rows that a command writes; two search processes."""
    flags = {"limit": 12, "workers": 2, "min_source_words": 0, **flags}
    flags.setdefault("long_documents", "head")
    flags |= {"extractive": "lead", "output": str(output)}
    assert precis("summarize", corpus=corpus, bundle=bundle, **flags) == 0
    return rows_of(output)


@pytest.mark.parametrize("kind", ["bart", "pegasus", "t5", "flan"])
def test_the_rows_are_those_of_tensorflow(kind, bundle, corpus, tmp_path):
    """With the tokens that BART begins and ends with, and its length penalty."""
    flags = {**PLAIN, "n_best": 2}
    close = functools.partial(pytest.approx, abs=2e-3)
    ours, theirs = (
        run(corpus, tmp_path / name, bundle(kind), **flags, **engine)
        for name, engine in (("ours", {}), ("theirs", ENGINE))
    )
    for row, other in zip(ours, theirs, strict=True):
        for one, same in zip(row["abstractive"], other["abstractive"], strict=True):
            assert same["text"] == one["text"]
            assert same["score"] == close(one["score"])
        measures, same = row["abstractive_quality"], other["abstractive_quality"]
        for name in ("mean_log_prob", "beam_margin"):
            assert same.pop(name) == close(measures.pop(name))
        assert same == measures
        for name in ("settings_id", "decode_id"):
            assert row[name] != other[name]
        for name in ("summary", "source_tokens", "written_tokens", "model_id"):
            assert row[name] == other[name]


def test_precisions_are_other_settings_with_rows_of_their_own(bundle, corpus, tmp_path):
    flags = {**ENGINE, "limit": 60}
    here = [tmp_path / name for name in ("float32", "int8", "again")]
    rows = [
        run(corpus, here[0], bundle("own"), **flags),
        run(corpus, here[1], bundle("own"), **flags, precision="int8", reuse=here[0]),
        run(corpus, here[2], bundle("own"), **flags, precision="int8", reuse=here[1]),
    ]
    assert [manifest_of(each)["counts"]["reused"] for each in here] == [0, 0, 60]
    assert manifest_of(here[1])["provenance"]["flags"]["engine"] == "ctranslate2"
    assert len({row["settings_id"] for row in rows[0] + rows[1]}) == 2
    assert [row["summary"] for row in rows[1]] == [row["summary"] for row in rows[2]]
    # Eight bits change some of these summaries, and none is empty.
    same = [a["summary"] == b["summary"] for a, b in zip(*rows[:2], strict=True)]
    assert not all(same) and all(row["abstractive"][0]["text"] for row in rows[1])
    converted = os.listdir(bundle("own") + ".ctranslate2")
    names = sorted(name.rpartition("-")[2] for name in converted)
    assert names == ["float32", "float32.lock", "int8", "int8.lock"]


def test_auto_takes_it_for_equal_tokens(bundle, corpus, tmp_path, monkeypatch, capsys):
    greedy = {**AUTO, "beam_width": 1, "early_stopping": "never", "unfinished": "last"}
    assert settings_of(bundle=bundle("t5"), **greedy).options.engine == "ctranslate2"
    network = bundle("unforced")
    rows = {
        engine: run(corpus, tmp_path / engine, network, **{**AUTO, "engine": engine})
        for engine in ("tensorflow", "ctranslate2", "auto")
    }
    texts = {name: [row["summary"] for row in each] for name, each in rows.items()}
    assert texts["auto"] == texts["tensorflow"] and len({*texts["auto"]}) > 3
    for name in ("settings_id", "decode_id"):
        ids = [rows[engine][0][name] for engine in rows]
        assert ids[2] == ids[1] != ids[0]
    provenance = manifest_of(tmp_path / "auto")["provenance"]
    assert provenance["flags"]["engine"] == "ctranslate2"
    said = capsys.readouterr().err
    assert f"auto is ctranslate2 for {network}: it writes the same tokens" in said
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as if not installed
    flags = {"bundle": network, "corpus": corpus, **AUTO, "extractive": "lead"}
    flags |= {"limit": 12, "long_documents": "head", "min_source_words": 0}
    assert precis("summarize", **flags, output=str(tmp_path / "auto")) == 2
    said = capsys.readouterr().err
    assert "auto is tensorflow for" in said and "is not installed; pip install" in said
    assert "other settings: --engine ctranslate2 there, not given here" in said


def test_auto_says_which_rule_of_a_network_could_change_a_token(bundle, capsys):
    for kind, reason in read_table("refusals")["rules of networks"].items():
        settings = settings_of(bundle=bundle(kind), **AUTO)
        assert settings.options.engine == "tensorflow"
        said = capsys.readouterr().err
        assert re.search(f"may write other tokens, as {reason}", said)


def test_a_network_is_converted_once_or_elsewhere_for_a_while(bundle, monkeypatch):
    folder = bundle("mt5")
    contents = open_bundle(folder)

    def convert(precision):
        with converted_bundle(folder, contents, precision) as converted:
            return converted, os.stat(f"{converted}/model.bin").st_mtime_ns

    with ThreadPoolExecutor(2) as pool:
        (first, made), second = pool.map(convert, ["int8"] * 2)
    assert second == (first, made) == convert("int8")
    assert os.path.dirname(first) == f"{folder}.ctranslate2"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert convert("int8") == (first, made)
    elsewhere, _ = convert("float32")
    assert not elsewhere.startswith(folder) and not os.path.exists(elsewhere)


@pytest.mark.parametrize(("flags", "message"), read_table("refusals")["engine"])
def test_what_ctranslate2_does_not_do_is_refused(flags, message, bundle):
    with pytest.raises(UsageError, match=message):
        settings_of(**{"bundle": bundle("bart"), **ENGINE, **flags})


def test_networks_of_other_families_are_refused(tmp_path, capsys):
    for changes, words in (
        ({"pointer": True}, "write: .* pointer is True here, but False there; leave"),
        ({"positions": "rotary"}, "positions is rotary here"),
    ):
        folder = save_layout(tmp_path / str(len(words)), "bart", **changes)
        with pytest.raises(UsageError, match=f"ctranslate2` runs only .*{words}"):
            settings_of(bundle=folder, **ENGINE)
        assert settings_of(bundle=folder, **AUTO).options.engine == "tensorflow"
        said = capsys.readouterr().err
        assert "does not run this network: transformers has no equal network" in said
