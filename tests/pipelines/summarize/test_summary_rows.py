"""Tests of windows of documents as summary rows, without Beam: sentences, keyphrases,
quality, and the text to show.
"""

import os
import re
import shutil
import sys
from collections import Counter
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from support import read_table
from support.extractive_documents import sentences_of
from support.small_checkpoint import write_checkpoint, write_tokenizer
from support.summarize_runs import (
    MAX_SOURCE_TOKENS,
    articles_of,
    first_rows,
    save_network,
    settings_of,
    story,
)

from precis.model import files
from precis.model.config import WriterKind
from precis.model.errors import DataError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.inference.passages import BEST_SENTENCES, EncodedDocument
from precis.model.inference.selector_bundle import load_selector
from precis.model.inference.summarizer import LineOrigin, Summary
from precis.model.keyphrases.candidates import frequent_keyphrases
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.references import reference_phrases
from precis.model.keyphrases.training import train_classifier
from precis.model.search.config import SearchConfig
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.corpus.task import Position
from precis.pipelines.run.options import read_flags
from precis.pipelines.summarize.document_encoder import DocumentEncoder
from precis.pipelines.summarize.extractive_summaries import find_article_terms
from precis.pipelines.summarize.options import SUMMARY_OPTIONS, SummarizeOptions
from precis.pipelines.summarize.summary_rows import Models, SummaryRow
from precis.pipelines.summarize.summary_settings import (
    SummarySettings,
    choose_engine,
    read_model_ids,
)
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.columns import round_score
from precis.pipelines.tables.output_writing import isolated_table
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

TEXTS = sentences_of(story(0)["article"])


@pytest.fixture(scope="module")
def keyphrase_bundle(tmp_path_factory):
    stories = map(document, range(60))
    pairs = [(sentences_of(each.article), each.highlights) for each in stories]
    folder = tmp_path_factory.mktemp("keyphrases") / "bundle"
    train_classifier(pairs, seed=3).save(str(folder))
    return folder


def test_models_of_sentences_and_of_phrases(selector_bundle, keyphrase_bundle):
    """Both are opened, and the scores of the network choose the sentences."""
    flags = {"extractive": "neural,lead", "extractive_bundle": str(selector_bundle)}
    flags |= {"keyphrase_bundle": str(keyphrase_bundle), "keyphrases": 2}
    lines = [story(0), story(1, highlights=None), {"article": "?!", "highlights": "x"}]
    row, without_reference, empty = first_rows(lines, **flags)
    selector = load_selector(str(selector_bundle))
    (scores,) = selector.score([TEXTS])
    best = sorted(np.argsort(-scores, kind="stable")[:3].tolist())
    chosen = [item for item in row["extractive"] if item["method"] == "neural"]
    assert [item["text"] for item in chosen] == [TEXTS[place] for place in best]
    rounded = [float(f"{score:.4g}") for score in scores[best]]
    assert [item["score"] for item in chosen] == rounded
    assert row["summary_method"] == row["extractive_method"] == "neural"

    model = KeyphraseModel.load(str(keyphrase_bundle))
    phrases = [tuple(phrase.values()) for phrase in row["keyphrases"]]
    best, frequent = model.keyphrases(TEXTS, 2), frequent_keyphrases(TEXTS, 2)
    assert phrases == [
        *(("classifier", phrase, round_score(score)) for phrase, score in best),
        *(("frequency", frequent[0], 1.0), ("frequency", frequent[1], 0.5)),
    ]
    named = reference_phrases(TEXTS, story(0)["highlights"])
    assert row["reference_keyphrases"] == sorted(named) != []
    methods = {phrase["method"] for phrase in without_reference["keyphrases"]}
    assert methods == {"classifier"}
    assert without_reference["reference_keyphrases"] is None
    assert empty["keyphrases"] == [] == empty["reference_keyphrases"]
    ids = settings_of(**flags).model_ids
    assert ids["extractive_model_id"] == selector.model_id
    assert ids["keyphrase_model_id"] == model.model_id
    (without_model,) = first_rows([story(0)])
    assert without_model["keyphrases"] is without_model["reference_keyphrases"] is None


@pytest.mark.parametrize("name", ["bundle", "extractive_bundle", "keyphrase_bundle"])
def test_a_changed_model_is_refused(
    bundle, selector_bundle, keyphrase_bundle, tmp_path, name
):
    folders = {"bundle": bundle, "extractive_bundle": selector_bundle}
    folder = folders.get(name, keyphrase_bundle)
    folder = shutil.copytree(folder, tmp_path / "copy")
    flags = {"extractive": "neural" if name == "extractive_bundle" else "lead"}
    settings = settings_of(**{name: str(folder), **flags})
    other = dict.fromkeys(settings.model_ids, "0" * 16)
    message = "copy now holds model [0-9a-f]{16}, .* with 0{16}; restore that model"
    with pytest.raises(DataError, match=message):
        WindowSummarizer(settings._replace(model_ids=other)).load()


def test_a_bundle_is_read_once(
    bundle, selector_bundle, keyphrase_bundle, tokenizer, tmp_path, monkeypatch
):
    """Large files twice: they are hashed before work begins, and then loaded."""
    folders = {"bundle": bundle, "extractive_bundle": selector_bundle}
    folders["keyphrase_bundle"] = keyphrase_bundle
    flags = {name: shutil.copytree(folders[name], tmp_path / name) for name in folders}
    opened, open_read = Counter(), files.open_read

    def count_open(path):
        opened[os.path.relpath(path, tmp_path)] += 1
        return open_read(path)

    monkeypatch.setattr(files, "open_read", count_open)
    flags |= {"extractive": "neural,lead", "keyphrases": 2}
    (first,) = first_rows([story(0)], **flags)
    assert opened == {
        **dict.fromkeys([f"{name}/manifest.json" for name in folders], 1),
        "bundle/tokenizer/vocab.txt": 1,
        "bundle/tokenizer/tokenizer.json": 1,
        **dict.fromkeys([f"{name}/config.json" for name in folders], 2),
        "bundle/weights.safetensors": 2,
        "extractive_bundle/weights.safetensors": 2,
        "keyphrase_bundle/weights.json": 2,
    }
    other = Tokenizer(tokenizer.vocabulary, lower_case=True)
    save_network(flags["bundle"], other)
    opened.clear()
    model_id = settings_of(**flags).model_ids["model_id"]
    assert model_id != first["model_id"]
    assert opened["bundle/manifest.json"] == opened["bundle/weights.safetensors"] == 1


def test_a_bundle_of_another_kind_is_refused(bundle, keyphrase_bundle):
    phrases = str(keyphrase_bundle)
    with pytest.raises(UsageError, match="of kind abstractive, but kind keyphrases"):
        settings_of(keyphrase_bundle=str(bundle))
    neural = {"extractive": "neural", "extractive_bundle": phrases}
    for flags in (neural, {"bundle": phrases}):
        with pytest.raises(UsageError, match="`keyphrase_bundle=` of `.*summarize`"):
            settings_of(**flags)


def test_an_instruction_is_refused_where_no_model_reads_it(bundle):
    message = "^`instruction=Be brief.` has no effect "
    for flags, place in (
        ({}, "without `bundle=`; leave it out"),
        ({"bundle": str(bundle)}, "where a network writes; leave it out"),
    ):
        with pytest.raises(UsageError, match=message + place):
            settings_of(instruction="Be brief.", **flags)
    told = settings_of(max_words=9)._replace(writer=WriterKind.LANGUAGE_MODEL).described
    assert told["instruction"].startswith("Summarize the following document in two")
    assert told["instruction"].endswith(" alone. Write at most 9 words.")


def test_auto_is_ctranslate2_where_no_token_can_change(tmp_path, monkeypatch, capsys):
    """The choice reads a network and settings alone, so an empty module is enough."""
    write_checkpoint(tmp_path, kind="t5", generation=None)
    write_tokenizer(tmp_path)
    bundle = str(tmp_path / "bundle")
    import_checkpoint(checkpoint=str(tmp_path), output=bundle)
    same = {"beam_width": 3, "no_repeat_ngram": 0, "min_summary_tokens": 0}
    same |= {"early_stopping": "first_k"}

    def check(engine, reason, **flags):
        settings = settings_of(bundle=bundle, engine="auto", **{**same, **flags})
        assert settings.options.engine == engine
        said = f"summarize: --engine auto is {engine} for {bundle}: {reason}"
        assert re.search(said, capsys.readouterr().err.strip())

    for name in (
        "ctranslate2",
        searcher := "precis.model.inference.ctranslate2_searcher",
    ):
        monkeypatch.setitem(sys.modules, name, None)  # as if not installed
    check("tensorflow", r"ctranslate2 is not installed; pip install '.*.ctranslate2.'$")
    empty = ModuleType("ctranslate2")
    empty.__spec__ = ModuleSpec("ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2", empty)
    monkeypatch.delitem(sys.modules, searcher)
    monkeypatch.setattr("precis.model.processes._DEVICES", ())
    check("ctranslate2", "it writes the same tokens as tensorflow$")
    for flags, reason in read_table("refusals")["rules"]:
        check("tensorflow", f"ctranslate2 may write other tokens, as {reason}", **flags)
    options = SummarizeOptions(output="o", bundle="b", write="sentences", engine="auto")
    chosen = choose_engine(options, SelectionConfig(), SearchConfig())
    assert chosen == "tensorflow"
    said = "auto is tensorflow for b: a summarizer needs the probability of each token"
    assert said in capsys.readouterr().err
    monkeypatch.setattr("precis.model.processes._DEVICES", (os.devnull,))
    check("tensorflow", "this machine has an accelerator$")


def finished(line, summaries, tokenizer, **flags):
    """The row of a line that a network has written summaries of."""
    flags = {"extractive": "frequency,lead", "min_source_words": 0, **flags}
    options = read_flags(SUMMARY_OPTIONS, {**flags, "output": "o"})
    # Those of a network would be refused without one.
    settings = SummarySettings(*options, *settings_of(extractive="lead")[4:])
    (article,) = articles_of([line])
    row = SummaryRow(article, settings, Models())
    encoder = DocumentEncoder(
        tokenizer, max_source_tokens=MAX_SOURCE_TOKENS, options=settings.options
    )
    (row.source,) = encoder.encode([article], [None])
    (row.terms,) = find_article_terms([article], settings.options.methods)
    row.passages = [summaries]
    row.extract()
    row.finish()
    return row.columns


def test_a_doubtful_line_has_a_flag_and_gives_way_to_the_extract(tokenizer):
    support = LineOrigin(0, 4, 0.9), LineOrigin(5, 9, 0.55)
    text = "Rain fell.\nIt was late."
    written = [Summary(text, -1.0, -0.5, None, origins=support)]

    def shown(**flags):
        row = finished(story(0), written, tokenizer, **flags)
        quality = row["abstractive_quality"]
        assert quality["line_confidence"] == 0.55
        (candidate,) = row["abstractive"]
        assert candidate["support"] == [each._asdict() for each in support]
        return "doubtful_line" in quality["flags"], row["summary_method"]

    assert shown() == (True, "abstractive")
    assert shown(fallback="extractive") == (True, "frequency")
    surer = {"fallback": "extractive", "min_confidence": 0.55}
    assert shown(**surer, fallback_flags="doubtful_line") == (False, "abstractive")


def test_a_claim_without_who_says_it_gives_way_to_the_extract(tokenizer):
    claim = "The man in the old town shot a guard"
    line = {**story(0), "article": f"{claim}, police said. {story(0)['article']}"}
    for said, fallback, flags, method in (
        (".", "none", ["lost_attribution"], "abstractive"),
        (".", "extractive", ["lost_attribution"], "frequency"),
        (", police said.", "extractive", [], "abstractive"),
    ):
        written = [Summary(claim + said, -1.0, -0.5, None)]
        row = finished(line, written, tokenizer, fallback=fallback)
        shown = row["abstractive_quality"]["flags"], row["summary_method"]
        assert shown == (flags, method)


def test_rules_for_english_touch_no_other_language(keyphrase_bundle):
    """Its own stop words and stems: of the page's sentence, six words count, half as
    much as the bridge; and the sentence is one of all.
    """
    page = "Click here, um in Bonn, in Köln und in Berlin zu lesen."
    german = (
        f"{page} Der Minister eröffnete die neue Brücke über den Rhein. "
        "Die Brücke war nach einer Flut gesperrt worden."
    )
    flags = {"extractive": "frequency", "sentences": 1}
    flags["keyphrase_bundle"] = str(keyphrase_bundle)
    lines = [{"article": german, "highlights": "Am Freitag."}, story(0)]
    row, english = first_rows(lines, **flags)
    assert row["language"] == "de"
    assert (row["extractive_summary"], row["extractive"][0]["score"]) == (page, 3.0)
    quality = row["extractive_quality"]
    assert quality["unsupported_dates"] is quality["unsupported_names"] is None
    assert quality["flags"] == ["barely_shorter"]
    assert row["keyphrases"] is row["reference_keyphrases"] is None
    assert english["language"] == "en" and english["keyphrases"]
    assert [english] == first_rows(lines[1:], **flags)
    # A language that is given overrides what the text looks like.
    row, other = first_rows(lines, language="en", **flags)
    assert (row["language"], other) == ("en", english)
    assert row["extractive_summary"] == german.removeprefix(page + " ").split(" Die")[0]
    assert row["extractive_quality"]["unsupported_dates"] == []
    row, other = first_rows(lines, language="da", **flags)
    assert row["language"] == other["language"] == "da" and other["keyphrases"] is None


def written_row(text, source, *passages):
    """The columns of an article of which a network has written passages."""
    (article,) = articles_of([{"article": text}])
    row = SummaryRow(article, settings_of(extractive="lead"), Models())
    row.source = EncodedDocument([], 9, 9, *source)
    row.passages = [[Summary(each, -0.5, -2.5, None)] for each in passages]
    row.extract()
    row.finish()
    return row.columns


def test_merged_sentences_end_as_in_the_language_of_the_article():
    bridge, rain = "Die Brücke wird am 5. Juni eröffnet.", "Es regnet."
    cost = "Sie kostet 4,5 Mio. Euro im Jahr."
    passages = f"{bridge} {rain}", cost
    row = written_row(f"{bridge} {rain} {cost}", ["chunk_merge"], *passages)
    assert row["abstractive_summary"].splitlines() == [bridge, rain, cost]


def test_long_sentences_alone_are_written_anew(tokenizer):
    short = "Troops have seized the old bridge near the town."
    long = f"The mayor {'of the old town ' * 4}has left the hall at dawn."
    assert [len(text.split()) for text in (short, long)] == [9, 24]
    options = SummarizeOptions(output="o", write="sentences", written_sentences=4)
    encoder = DocumentEncoder(tokenizer, MAX_SOURCE_TOKENS, options)

    def encoded(*texts):
        (article,) = articles_of([{"article": " ".join(texts)}])
        scores = np.linspace(0.9, 0.1, len(texts))
        (source,) = encoder.encode([article], [scores])
        return len(source.passages), source.places

    assert encoded(short, long, short) == (1, (1, 0, 2))
    assert encoded(long, long, long, long) == (3, (0, 1, 2, 3))  # the three best
    assert encoded(short, short) == (1, (0, 1))  # The best one, where all are short.
    german = "Truppen haben die alte Brücke am Fluss eingenommen."
    assert encoded(german, german) == (2, (0, 1))


def test_nothing_is_composed_of_sentences_that_rouge_does_not_read():
    text = "Η βροχή έπεσε στο νησί. " * 9
    row = written_row(text, (BEST_SENTENCES, (0,)), "Rain fell.")
    assert (row["abstractive_summary"], row["summary_method"]) == (None, "lead")


def test_the_columns_of_a_network(tokenizer):
    """The margin is that of the search, and a text has the log-probability of a
    token.
    """
    best = Summary("Rain fell.", -0.5, -2.5, 0.25)
    other = Summary("It was cold.", -0.75, -1.0, None)
    row = finished(story(0), [best, other], tokenizer, long_documents="head")
    assert row["abstractive_summary"] == row["summary"] == "Rain fell."
    assert row["summary_method"] == "abstractive"
    assert row["abstractive"] == [
        {"rank": 1, "score": -0.5, "text": "Rain fell.", "support": None},
        {"rank": 2, "score": -0.75, "text": "It was cold.", "support": None},
    ]
    quality = row["abstractive_quality"]
    assert (quality["mean_log_prob"], quality["beam_margin"]) == (-2.5, 0.25)
    assert {"low_confidence", "truncated_source"} <= set(quality["flags"])
    other = best._replace(margin=None, mean_log_prob=-2.00004)
    row = finished(story(0), [other], tokenizer)
    # Flags follow from the rounded scores.
    quality = row["abstractive_quality"]
    assert (quality["mean_log_prob"], quality["beam_margin"]) == (-2.0, None)
    assert "low_confidence" not in quality["flags"]


def test_at_most_two_windows_are_searched_at_the_same_time():
    """The search of a window begins before that of the one before is waited for."""
    read = []

    def articles():
        for number, article in enumerate(articles_of([{"article": "Rain."}] * 7)):
            read.append(number)
            yield article

    worker = WindowSummarizer(settings_of(window_documents=2))
    windows = worker.summarize(articles(), lambda: Position(len(read)))
    sizes = [(len(each.rows), each.position.records, len(read)) for each in windows]
    assert sizes == [(2, 2, 4), (2, 4, 6), (2, 6, 7), (1, 7, 7)]
    assert list(worker.summarize([])) == []


def test_search_settings_and_precision_have_a_decode_id_of_their_own(bundle):
    def ids(precision="float32", **decoding):
        settings = settings_of(bundle=str(bundle), precision=precision, **decoding)
        options = SummarizeOptions(output="o", bundle=str(bundle), precision=precision)
        assert read_model_ids(options, settings.decoding) == settings.model_ids
        return settings.model_ids

    all_ids = [ids(), ids("mixed_bfloat16"), ids(n_best=2), ids(length_penalty=0.0)]
    assert len({each["decode_id"] for each in all_ids}) == len(all_ids)
    assert len({each["model_id"] for each in all_ids}) == 1


def test_a_table_leaves_out_wrong_rows_and_numbers_that_are_not_finite():
    rows = first_rows([story(index) for index in range(5)])
    table, failures = isolated_table(rows)
    assert failures == [None] * 5
    assert table.schema.equals(SUMMARY_SCHEMA, check_metadata=True)
    rows[1]["extractive"][0]["score"] = float("nan")
    rows[2]["split"] = None
    rows[4]["extractive_quality"]["density"] = float("inf")
    smaller, failures = isolated_table(rows)
    assert smaller.equals(table.take([0, 3]).combine_chunks())
    assert failures[0] is failures[3] is None
    for place, reason, detail in (
        (1, "nan", "column 'extractive[].score' holds a number that is not finite"),
        (2, "error", "column 'split' is null in at least one row, which the schema"),
        (4, "nan", "column 'extractive_quality.density' holds a number that is not"),
    ):
        assert failures[place].reason == reason
        assert failures[place].detail.startswith(detail)
    nothing, _ = isolated_table(rows[1:2])
    assert nothing.num_rows == 0 and isolated_table([])[0].equals(nothing)
