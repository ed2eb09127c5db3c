"""`precis attention`: weights with the tokens they belong to, and their picture."""

import numpy as np
import pytest
from support.command_line import precis
from support.plain_network import scramble
from support.small_training import network_config

from precis.model.bundle.network_bundle import Bundle, save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.attention import (
    HeadWeights,
    draw,
    mean_of_heads,
    read_attention,
)
from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig
from precis.model.tokenization.folder import load_tokenizers
from precis.pipelines.bundles.attention import attention as attention_command
from precis.pipelines.summarize.one_document import summarize_text

TEXT = "Rain fell on Paris. Nobody was hurt."
SUMMARY = "Rain fell."


def make_bundle(records_folder, config) -> Bundle:
    tokenizer = load_tokenizers(records_folder).target
    network = build_network(config)
    scramble(network, seed=2)
    return Bundle(network.config, tokenizer, tokenizer, "id", None, (), network)


@pytest.fixture(scope="module")
def bundle(records_folder) -> Bundle:
    config = network_config(encoder_layers=2, decoder_layers=3, width=8)
    return make_bundle(records_folder, config)


def pieces(bundle, ids):
    return [bundle.tokenizer.vocabulary[token] for token in ids]


def test_weights_stand_with_the_tokens_they_belong_to(bundle):
    (source,) = bundle.tokenizer.encode([TEXT])
    (written,) = bundle.tokenizer.encode(["Rain fell."])
    attention = read_attention(bundle, TEXT, "Rain fell.", block="cross", layer=2)
    assert attention.columns == pieces(bundle, source)
    assert attention.rows == [*pieces(bundle, written), "[END]"]
    assert (attention.block, attention.layer) == ("cross", 2)
    assert attention.weights.shape == (2, len(written) + 1, len(source))
    np.testing.assert_allclose(attention.weights.sum(axis=-1), 1.0, rtol=1e-5)
    # The weights of a row are read while its token is chosen: the input of the network
    # ends with the token before.
    inputs = np.array([[bundle.tokenizer.start_id, *written]], "int32")
    maps = bundle.network.attention(source[None].astype("int32"), inputs)
    (cross,) = (part for part in maps if (part.block, part.layer) == ("cross", 1))
    np.testing.assert_array_equal(attention.weights, cross.weights[0])


def test_every_block_has_its_tokens(bundle):
    length = len(bundle.tokenizer.encode([TEXT])[0])
    steps = len(bundle.tokenizer.encode([SUMMARY])[0]) + 1
    shapes = {}
    for block in ("encoder", "self", "cross", "copy"):
        attention = read_attention(bundle, TEXT, SUMMARY, block=block, layer=0)
        tokens = (len(attention.rows), len(attention.columns))
        assert attention.weights.shape[1:] == tokens
        shapes[block] = (attention.layer, *attention.weights.shape)
    assert shapes == {
        "encoder": (2, 2, length, length),
        "self": (3, 2, steps, steps),
        "cross": (3, 2, steps, length),
        "copy": (1, 1, steps, length),
    }


def test_a_decoder_only_network_reads_source_and_summary_as_one(records_folder):
    config = DecoderOnlyConfig(
        vocabulary_size=load_tokenizers(records_folder).target.vocabulary_size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=8,
        layers=1,
        max_target_tokens=20,
    )
    bundle = make_bundle(records_folder, config)
    attention = read_attention(bundle, TEXT, SUMMARY, block="self", layer=1)
    rows = attention.rows
    assert attention.columns[-len(rows) :] == ["[START]", *rows[:-1]]
    with pytest.raises(
        UsageError,
        match="--block cross: this network has none; it has encoder, self, copy; self "
        "reads the source and the summary as one",
    ):
        read_attention(bundle, TEXT, SUMMARY, block="cross", layer=1)


def test_layers_that_are_not_there_are_refused(bundle):
    with pytest.raises(
        UsageError, match="--layer 4: the block cross has the layers 1 to 3"
    ):
        read_attention(bundle, TEXT, SUMMARY, block="cross", layer=4)


def weights_of(**changes) -> HeadWeights:
    """Two heads of three written and four source pieces."""
    weights = [
        [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]],
        [[0.3, 0.2, 0.1, 0.4], [0.1, 0.1, 0.4, 0.4], [0.25, 0.25, 0.25, 0.25]],
    ]
    rows = ["▁fe", "##ll", "[END]"]
    columns = ["▁Os", "##lo", "▁it", "▁."]
    attention = HeadWeights("cross", 2, np.array(weights, "float32"), rows, columns)
    return attention._replace(**changes)


# The picture


def texts_of(figure) -> list[str]:
    from matplotlib.text import Text

    return [" ".join(each.get_text().split()) for each in figure.findobj(Text)]


def test_a_picture_has_the_tokens_read_most_and_the_summary():
    attention = mean_of_heads(weights_of())
    summary = "Rain fell on Oslo for $5 and $6. " * 12 + "\nNobody was hurt."
    attention = attention._replace(summary=summary, source_tokens=1234, read_tokens=4)
    figure = draw(attention, most_columns=2)
    texts = texts_of(figure)
    # The two tokens before them are left out.
    assert {"… ▁it", "▁.", "##ll", "[END]"} < set(texts) and "▁Os" not in texts
    assert "Written: " + " ".join(summary.split()) in texts
    # Of the three rows, 0.2 + 0.4, 0.4 + 0.2 and 0.125 + 0.625.
    assert (
        "cross attention, layer 2, mean of 2 heads: the 2 of 4 tokens that are read "
        "most (65% of the weight); the network read the first 4 of 1,234 tokens of "
        "the article"
    ) in texts
    wide = draw(attention, most_columns=0)
    assert "▁Os" in texts_of(wide) and "head 1" not in texts_of(wide)


@pytest.mark.filterwarnings("error")  # such as that of a missing glyph
def test_each_head_has_a_map_of_its_weights(tmp_path):
    long_word = "Donaudampfschifffahrtsgesellschaft"
    columns = [long_word, "$5", "▁␤", "it"]
    attention = weights_of(block="copy", columns=columns)
    figure = draw(attention)
    maps = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(maps, attention.weights)
    texts = texts_of(figure)
    assert {"head 1", "head 2", "copy distribution", "$5", "▁↵"} < set(texts)
    assert f"{long_word[:21]}…" in texts
    figure.savefig(tmp_path / "drawn.png")


# The command


@pytest.fixture(scope="module")
def flags(bundle, tmp_path_factory) -> dict:
    """A bundle, and the files of an article and a summary."""
    folder = tmp_path_factory.mktemp("attention")
    save_bundle(
        str(folder / "bundle"),
        network=bundle.network,
        tokenizer=bundle.tokenizer,
        provenance={},
    )
    (folder / "a.txt").write_text(TEXT)
    (folder / "s.txt").write_text(SUMMARY)
    return {
        "bundle": str(folder / "bundle"),
        "text": str(folder / "a.txt"),
        "summary": str(folder / "s.txt"),
    }


def test_the_command_draws_the_mean_of_all_heads_each_head_or_the_copies(
    flags, tmp_path
):
    mean, each, copied = (tmp_path / f"{name}.png" for name in ("mean", "all", "c"))
    assert precis("attention", output=mean, **flags) == 0
    written = attention_command(output=str(each), heads="all", **flags)
    assert written.path == str(each)
    assert (written.summary, written.columns) == (SUMMARY, written.tokens)
    attention_command(output=str(copied), block="copy", **flags)
    for picture in (mean, each, copied):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_a_summary_it_is_the_one_of_summarize(flags, tmp_path, capsys):
    article = tmp_path / "long.txt"
    article.write_text(TEXT * 40)
    row = summarize_text(TEXT * 40, bundle=flags["bundle"])
    given = {"bundle": flags["bundle"], "text": article, "output": tmp_path / "p.png"}
    drawn = attention_command(**given)
    # The network does not write the end of a text that is merged from passages.
    start = drawn.summary.removesuffix(" …").split()
    assert start and row["abstractive_summary"].split()[: len(start)] == start
    assert 0 < drawn.read_tokens < drawn.source_tokens == row["source_tokens"]
    assert precis("attention", columns=2, **given) == 0
    read, shown, *_ = capsys.readouterr().out.splitlines()
    tokens = f"{drawn.read_tokens} of {drawn.source_tokens} tokens of the article"
    assert read == f"the network read the first {tokens}"
    assert shown.startswith(f"drawn: 2 of {drawn.tokens} tokens that it read")


@pytest.mark.parametrize(
    ("content", "changes", "words"),
    [
        (
            None,
            {},
            r"other.txt: it cannot be read \(No such file or directory\); name",
        ),
        (b"Caf\xe9", {}, "other.txt: invalid_utf8: byte 3: .*; it reads as cp1252"),
        (
            b"Rain.",
            {"task_prefix": "x: "},
            "--task_prefix 'x: ' is not one that the network was trained with; it "
            "knows none",
        ),
    ],
)
def test_a_wrong_text_or_flag_is_refused(flags, tmp_path, content, changes, words):
    article, output = tmp_path / "other.txt", tmp_path / "p.png"
    if content is not None:
        article.write_bytes(content)
    given = {**flags, "text": str(article), "output": str(output), **changes}
    with pytest.raises((UsageError, DataError), match=words):
        attention_command(**given)
    assert not output.exists()
