"""Scores of summaries by the support in their documents."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.command_line import exit_code, precis, write_jsonl
from support.corpus_records import story
from support.shared_networks import eagerly
from support.small_checkpoint import (
    TEXTS,
    VOCABULARY,
    write_checkpoint,
    write_tokenizer,
)
from support.small_encoder_checkpoint import WIDTH, tensors, write_encoder, write_pieces
from support.summarize_runs import manifest_of, rows_of, settings_of

from precis.model.bundle.checkpoints.bert import read_checker
from precis.model.bundle.network_bundle import load_bundle, load_encoder_bundle
from precis.model.errors import UsageError
from precis.model.inference.claim_checker import ClaimChecker
from precis.model.text.article import Article
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.tables.columns import round_score

LINES = ["Rain fell.", "It was cold."]
# The first two are read together, two others would fit without a line, and the last is
# longer than what is read.
SENTENCES = [*TEXTS, "It was cold in the old town.", f"{TEXTS[2]} {TEXTS[2]}"]
CHUNKS = [f"{TEXTS[0]} {TEXTS[1]}", *SENTENCES[2:]]
LENGTH = 48  # tokens of the longest text
LABELLED = {"architectures": ["RobertaForSequenceClassification"]}
KINDS = {"t5": "predict: {}</s>{}", "roberta": "{}</s></s>{}"}


def head() -> dict[str, np.ndarray]:
    """The tensors of three labels."""
    rng = np.random.default_rng(0)
    shapes = {"dense": (WIDTH, WIDTH), "out_proj": (3, WIDTH)}
    return {
        f"classifier.{name}.{leaf}": rng.normal(size=size).astype("float32")
        for name, shape in shapes.items()
        for leaf, size in (("weight", shape), ("bias", shape[:1]))
    }


def write_checker(folder: Path, kind: str) -> str:
    """Imports a T5, or a RoBERTa with three labels; returns its bundle."""
    checkpoint, bundle = folder / "checkpoint", str(folder / "bundle")
    if kind == "t5":
        write_checkpoint(checkpoint, kind=kind)
    else:
        sizes = {"vocab_size": VOCABULARY, "max_position_embeddings": LENGTH + 2}
        encoder = tensors(kind)
        rng = np.random.default_rng(9)
        for name, rows in zip(("word", "position"), sizes.values(), strict=True):
            table = rng.normal(size=(rows, WIDTH)).astype("float32")
            encoder[f"embeddings.{name}_embeddings.weight"] = table
        stored = {f"roberta.{name}": tensor for name, tensor in encoder.items()}
        labels = {"id2label": {str(label): f"LABEL_{label}" for label in range(3)}}
        settings = {**LABELLED, **labels, **sizes}
        write_encoder(checkpoint, kind, {**stored, **head()}, settings)
    write_tokenizer(checkpoint)
    import_checkpoint(checkpoint=checkpoint, output=bundle, max_source_tokens=LENGTH)
    return bundle


@pytest.fixture(scope="module")
def checkers(tmp_path_factory) -> dict[str, str]:
    """The bundle of a checker of each kind."""
    return {kind: write_checker(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def reader(folder: str, kind: str) -> Callable[[str, str], float]:
    """The probability that a chunk supports a line, by arithmetic."""
    bundle = (load_bundle if kind == "t5" else load_encoder_bundle)(folder)
    zero, one = (each[0] for each in bundle.tokenizer.encode_parts("01"))

    def probability(chunk: str, line: str) -> float:
        (ids,) = bundle.tokenizer.encode([KINDS[kind].format(chunk, line)])
        end = ids.tolist().index(2)  # </s>
        ids = np.concatenate([ids[:end][: LENGTH - len(ids) + end], ids[end:]])[None]
        if kind == "t5":
            logits = bundle.network(ids, np.zeros((1, 2), "int32"))[0, 0]
            logits = np.asarray(logits)[[one, zero]]
        else:
            dense, bias, output, output_bias = head().values()
            state = np.tanh(dense @ np.asarray(bundle.encoder(ids))[0, 0] + bias)
            logits = output @ state + output_bias
        return np.exp(logits[0]) / np.exp(logits).sum()

    return probability


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_mean_over_lines_of_their_best_chunk(kind, checkers):
    checker, probability = ClaimChecker(checkers[kind]), reader(checkers[kind], kind)
    of_pairs = np.array([[probability(c, line) for c in CHUNKS] for line in LINES])
    assert np.ptp(of_pairs) > 0.1
    expected = of_pairs.max(axis=1).mean()
    summary = "\n \n".join(LINES)
    assert checker.score(SENTENCES, summary) == pytest.approx(expected, abs=1e-5)
    assert checker.score([], summary) is checker.score(SENTENCES, " ") is None
    # A line that is too long itself is cut at its end.
    assert 0 < checker.score(SENTENCES, " ".join(SENTENCES)) < 1


@eagerly()
def test_a_run_has_the_support_of_both_summaries(checkers, search, tmp_path):
    folder, output, lines = checkers["roberta"], tmp_path / "run", [story(0), story(1)]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    flags = {"bundle": search.bundle, "checker": folder, "fallback": "always"}
    assert precis("summarize", corpus=corpus, output=output, workers=1, **flags) == 0
    checker, scores = ClaimChecker(folder), set()
    for row, line in zip(rows_of(output), lines, strict=True):
        sentences = [each.text for each in Article.from_text(line["article"]).sentences]
        shown, written = row["summary"], row["abstractive_summary"]
        scored = [checker.score(sentences, text) for text in (shown, written)]
        expected = list(map(round_score, scored))
        stored = [row["support_score"], row["abstractive_quality"]["support_score"]]
        assert stored == expected and row["checker_model_id"] == checker.model_id
        scores |= {*stored}
    assert len(scores) == 4 and manifest_of(output)["checker"] == folder
    given = ({"checker": checkers["t5"]}, {"checker": folder}, {})
    assert len({settings_of(**each).settings_id for each in given}) == 3


def test_an_import_names_the_flag_that_takes_the_checker(checkers, tmp_path, capsys):
    checkpoint, output = Path(checkers["roberta"]).parent / "checkpoint", tmp_path / "b"
    words = ["--output", str(output), "--max_source_tokens", str(LENGTH)]
    assert exit_code("import", str(checkpoint), *words) == 0
    here, there = (settings_of(checker=each) for each in (output, checkers["roberta"]))
    assert here.settings_id == there.settings_id
    assert here.model_ids["checker_model_id"] in (out := capsys.readouterr().out)
    for text in (out, (output / "README.md").read_text()):
        assert "--checker" in text and "--encoder" not in text


def test_what_is_no_checker_is_named(search, tmp_path):
    labels = {**LABELLED, "id2label": {"0": "x"}}
    write_encoder(tmp_path / "c", "roberta", settings=labels)
    write_pieces(tmp_path / "c")
    import_checkpoint(checkpoint=tmp_path / "c", output=tmp_path / "b")
    for folder, kind in ((tmp_path / "b", "encoder"), (search.bundle, "abstractive")):
        message = f"{folder}: the {kind} network of this bundle cannot check claims; "
        with pytest.raises(UsageError, match=f"{message}.* import MiniCheck-Flan-T5"):
            settings_of(checker=str(folder))


LABELS = [
    (None, (2, 1, "{}</s></s>{}")),
    (["0", "1"], (2, 1, "{}</s>{}")),
    (["LABEL_0", "LABEL_1", "LABEL_2"], (3, 0, "{}</s></s>{}")),
    (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], (3, 2, "{}</s></s>{}")),
    (["not_aligned", "aligned"], (2, 1, "{}</s></s>{}")),
    (["negative", "neutral", "positive"], ()),
    (["LABEL_0"], ()),
]


@pytest.mark.parametrize(("labels", "expected"), LABELS)
def test_labels_say_which_of_them_is_support(labels, expected):
    names = labels and {str(number): name for number, name in enumerate(labels)}
    assert tuple(read_checker({**LABELLED, "id2label": names}).values()) == expected
    assert read_checker({"id2label": names}) == {}
