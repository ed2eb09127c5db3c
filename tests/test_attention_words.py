"""Attention weights of whole words: pieces are grouped and weights added up as they are
by hand, and the picture shows them.
"""

import numpy as np
import pytest
from support.small_checkpoint import TEXTS, tensors, write_checkpoint, write_tokenizer

from precis.model.inference import word_map
from precis.model.inference.attention import HeadWeights
from precis.model.inference.attention_words import (
    group_pieces,
    mean_of_heads,
    weights_of_words,
)
from precis.model.inference.quantile_colours import colour_positions, tick_labels
from precis.model.inference.word_map import draw_words


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        # The WordPiece of this project.
        (
            "▁He ▁paid ▁ $ 4 . 5 ##m . ▁␤ ▁Os ##lo , ▁too . [END]",
            "He paid $4.5m . ␤ Oslo , too . [END]",
        ),
        ("[START] ▁Rain ▁fe ##ll", "[START] Rain fell"),
        ('▁" Rain ." ▁( CNN ) ▁ - -', '"Rain ." (CNN ) --'),
        ("▁ [END]", "␣ [END]"),
        # SentencePiece, of T5 and PEGASUS.
        ("▁Rain ▁fe ll ▁on ▁Os lo . </s>", "Rain fell on Oslo . </s>"),
        ("<extra_id_0> ▁It ' s ▁10 % </s>", "<extra_id_0> It's 10 % </s>"),
        ("▁## ▁a", "## a"),
        # BPE of BART, whose first word has no space before it.
        ("<s> R ain ▁fell ▁on ▁Tr oms ø ! </s>", "<s> Rain fell on Tromsø ! </s>"),
        # BERT, which marks no spaces.
        ("[CLS] rain fe ##ll on os ##lo . [SEP]", "[CLS] rain fell on oslo . [SEP]"),
        ("rain , - 4", "rain , - 4"),
        ("", ""),
    ],
)
def test_pieces_are_grouped_into_words(pieces, words):
    grouped = group_pieces(pieces.split())
    assert " ".join(word.text for word in grouped) == words
    ranges = [(word.begin, word.end) for word in grouped]
    ends = [0, *(end for _, end in ranges)]
    assert [begin for begin, _ in ranges] == ends[:-1]
    assert ends[-1] == len(pieces.split())


def weights_of(block="cross") -> HeadWeights:
    """Two heads of three written and four source pieces."""
    weights = [
        [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]],
        [[0.3, 0.2, 0.1, 0.4], [0.1, 0.1, 0.4, 0.4], [0.25, 0.25, 0.25, 0.25]],
    ]
    rows = ["▁fe", "##ll", "[END]"]
    columns = ["▁Os", "##lo", "▁it", "."]
    return HeadWeights(block, 2, np.array(weights, "float32"), rows, columns, "fell")


def test_weights_are_summed_over_what_is_read_and_averaged_over_what_reads():
    words = weights_of_words(weights_of())
    assert (words.rows, words.columns) == (["fell", "[END]"], ["Oslo", "it", "."])
    expected = [
        [[0.45, 0.35, 0.2], [0.0, 0.0, 1.0]],
        [[0.35, 0.25, 0.4], [0.5, 0.25, 0.25]],
    ]
    np.testing.assert_allclose(words.weights, expected, atol=1e-6)
    assert (words.summary, words.unit) == ("fell", "words")
    mean = mean_of_heads(words)
    np.testing.assert_allclose(
        mean.weights, [[[0.4, 0.3, 0.3], [0.25, 0.125, 0.625]]], atol=1e-6
    )


def test_each_share_of_the_weights_has_its_share_of_the_colours():
    """Of 101 weights the k-th has k hundredths below it, however large it is."""
    weights = np.exp(np.arange(101.0))[::-1].reshape(1, 101)
    positions = colour_positions(weights)[0, ::-1]
    at = positions[[0, 25, 50, 75, 90, 95, 99, 100]]
    np.testing.assert_allclose(at, [0, 1 / 12, *(np.arange(1, 7) / 6)], atol=1e-9)
    labels = tick_labels(np.arange(101.0))
    assert labels[:3] == ["0  (0%)", "50  (50%)", "75  (75%)"]


def test_weights_of_one_value_have_one_colour_and_the_largest_the_last():
    assert colour_positions(np.full((2, 2), 0.5)).tolist() == [[0, 0], [0, 0]]
    sparse = colour_positions(np.array([[0.0, 0.0, 0.0, 1.0]]))
    assert sparse.tolist() == [[0, 0, 0, 1]]


def drawn_texts(path, monkeypatch, attention, **flags) -> tuple[list[str], tuple]:
    """The texts of a picture, and its size in pixels."""
    from matplotlib import pyplot, text

    figures = []
    with monkeypatch.context() as patch:
        patch.setattr(pyplot, "close", figures.append)
        with open(path, "wb") as file:
            draw_words(attention, file, **flags)
    (figure,) = figures
    texts = [each.get_text() for each in figure.findobj(text.Text) if each.get_text()]
    size = tuple(int(side) for side in figure.get_size_inches() * figure.dpi)
    pyplot.close(figure)
    return texts, size


def test_a_picture_has_the_words_read_most_and_the_summary(tmp_path, monkeypatch):
    attention = mean_of_heads(weights_of_words(weights_of()))
    long = "Rain fell on Oslo for $5 and $6. " * 12
    attention = attention._replace(summary=long + "\nNobody was hurt.")
    flags = {"most_columns": 2, "heads": 2}
    texts, size = drawn_texts(tmp_path / "a.png", monkeypatch, attention, **flags)
    assert {"Oslo", ".", "fell", "[END]"} < set(texts) and "it" not in texts
    (written,) = [text for text in texts if text.startswith("Written:")]
    lines = written.splitlines()
    assert " ".join(lines[1:-1]) == long.strip() and lines[-1] == "Nobody was hurt."
    assert max(map(len, lines)) <= 135
    # Of the two rows, 0.4 + 0.3 and 0.25 + 0.625.
    title = "cross attention, layer 2, mean of 2 heads: the 2 of 3 words that are read "
    assert f"{title}most (79% of the weight)" in texts
    assert size[0] == 1600


def test_a_picture_of_every_word_of_a_long_source_is_wider(tmp_path, monkeypatch):
    words = [f"word{number}" for number in range(90)]
    words[3] = "Donaudampfschifffahrtsgesellschaft"
    weights = np.full((1, 2, 90), 1 / 90, "float32")
    attention = HeadWeights("cross", 1, weights, ["a", "b"], words, "a b", "words")
    flags = {"most_columns": 0, "heads": 1}
    texts, size = drawn_texts(tmp_path / "a.png", monkeypatch, attention, **flags)
    assert "cross attention, layer 1" in texts and size[0] > 2000
    assert "Donaudampfschifffahrt…" in texts
    assert len("Donaudampfschifffahrt…") == word_map._LONGEST_WORD


def write_unigram(folder) -> None:
    """A SentencePiece-like tokenizer of T5: spaces begin pieces, `</s>` ends a text."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors

    letters = sorted(set("".join(TEXTS)) - {" "})
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁Ra", "▁fe", "ll", "in", *letters]
    scored = [(piece, -1.0 if len(piece) > 1 else -5.0) for piece in pieces]
    definition = tokenizers.Tokenizer(models.Unigram(scored, unk_id=2))
    definition.pre_tokenizer = pre_tokenizers.Metaspace()
    definition.decoder = decoders.Metaspace()
    definition.add_special_tokens(["<pad>", "</s>", "<unk>"])
    definition.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    definition.save(str(folder / "tokenizer.json"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("bart", ["<s>", "Rain", "fell", "in", "Rain", ".", "</s>"]),
        ("t5", ["Rain", "fell", "in", "Rain", ".", "</s>"]),
    ],
)
def test_imported_networks_are_read_in_words(kind, columns, tmp_path):
    from precis.model.bundle.network_bundle import load_bundle
    from precis.model.inference.attention import read_attention
    from precis.model.search.config import SearchConfig
    from precis.pipelines.bundles.import_checkpoint import import_checkpoint

    write_checkpoint(tmp_path / "checkpoint", tensors(kind), kind=kind)
    if kind == "bart":
        write_tokenizer(tmp_path / "checkpoint", as_definition=True)
    else:
        write_unigram(tmp_path / "checkpoint")
    import_checkpoint(checkpoint=tmp_path / "checkpoint", output=tmp_path / "bundle")
    pieces = read_attention(
        load_bundle(str(tmp_path / "bundle")),
        "Rain fell in Rain.",
        block="cross",
        layer=0,
        decoding=SearchConfig(beam_width=1),
        summary="Rain fell",
    )
    assert len(pieces.columns) > len(columns)
    words = weights_of_words(pieces)
    # The decoder of BART writes <s> first.
    begin = ["<s>"] if kind == "bart" else []
    rows = [*begin, "Rain", "fell", "</s>"]
    assert (words.columns, words.rows) == (columns, rows)
    assert words.summary == "Rain fell"
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1.0, rtol=1e-5)
