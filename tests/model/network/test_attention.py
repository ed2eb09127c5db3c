"""`precis attention`: weights with the tokens they belong to, and their picture."""

import numpy as np
import pytest
from support.command_line import precis
from support.plain_network import scramble
from support.small_training import network_config

from precis.model.bundle.network_bundle import Bundle, save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.attention import HeadWeights, draw, read_attention
from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.folder import load_tokenizers
from precis.pipelines.bundles.attention import attention as attention_command
from precis.pipelines.summarize.texts import summarize_text

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
    """The weights of a row are read while its token is chosen: the input of the network
    ends with the token before.
    """
    (source,), (written,) = map(bundle.tokenizer.encode, ([TEXT], [SUMMARY]))
    inputs = np.array([[bundle.tokenizer.start_id, *written]], "int32")
    maps = bundle.network.attention(source[None].astype("int32"), inputs)
    read, chosen = pieces(bundle, source), [*pieces(bundle, written), "[END]"]
    entered = ["[START]", *chosen[:-1]]
    for block, layer, rows, columns in (
        ("encoder", 2, read, read),
        ("self", 3, chosen, entered),
        ("cross", 3, chosen, read),
        ("cross", 2, chosen, read),
        ("copy", 1, chosen, read),
    ):
        asked = 0 if block != "cross" or layer == 3 else layer  # 0 is the last
        attention = read_attention(bundle, TEXT, SUMMARY, block=block, layer=asked)
        assert (attention.rows, attention.columns) == (rows, columns)
        (expected,) = (each for each in maps if each[:2] == (block, layer - 1))
        np.testing.assert_array_equal(attention.weights, expected.weights[0])
        np.testing.assert_allclose(attention.weights.sum(-1), 1.0, rtol=1e-5)
        assert attention.weights.shape[1:] == (len(rows), len(columns))
    message = "`layer=4`: must be from 1 to 3, the layers of block cross"
    with pytest.raises(UsageError, match=message):
        read_attention(bundle, TEXT, SUMMARY, block="cross", layer=4)


def test_a_decoder_only_network_reads_source_and_summary_as_one(records_folder):
    size = load_tokenizers(records_folder).target.vocabulary_size
    shape = {"width": 8, "heads": 2, "feed_forward": 8, "layers": 1}
    shape |= {"vocabulary_size": size, "pad_id": 0, "max_target_tokens": 20}
    bundle = make_bundle(records_folder, DecoderOnlyConfig(**shape))
    attention = read_attention(bundle, TEXT, SUMMARY, block="self", layer=1)
    rows = attention.rows
    assert attention.columns[-len(rows) :] == ["[START]", *rows[:-1]]
    message = "`block=cross`: this network has no such block, only encoder, self, .*"
    with pytest.raises(UsageError, match=f"{message}covers both source and summary"):
        read_attention(bundle, TEXT, SUMMARY, block="cross", layer=1)


def weights_of(**changes) -> HeadWeights:
    """Two heads of three written and four source pieces."""
    weights = [
        [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]],
        [[0.3, 0.2, 0.1, 0.4], [0.1, 0.1, 0.4, 0.4], [0.25, 0.25, 0.25, 0.25]],
    ]
    rows = ["▁fe", "##ll", "[END]"]
    columns = ["▁Os", "##lo", "▁it", "▁."]
    attention = HeadWeights(np.array(weights, "float32"), rows, columns)
    return attention._replace(**changes)


# The picture


def texts_of(figure) -> list[str]:
    from matplotlib.text import Text

    return [" ".join(each.get_text().split()) for each in figure.findobj(Text)]


def test_a_picture_has_the_tokens_read_most():
    mean = weights_of().weights.mean(axis=0, keepdims=True)
    texts = texts_of(draw(weights_of(weights=mean), most_columns=2))
    # The two tokens before them are left out.
    assert {"… ▁it", "▁.", "##ll", "[END]"} < set(texts) and "▁Os" not in texts
    assert "▁Os" in texts_of(draw(weights_of(), most_columns=0))


@pytest.mark.filterwarnings("error")  # such as that of a missing glyph
def test_each_head_has_a_map_of_its_weights(tmp_path):
    attention = weights_of(columns=["▁Os", "$5", "▁␤", "it"])
    figure = draw(attention)
    images = [axes.images[0] for axes in figure.axes if axes.images]
    maps = [image.get_array() for image in images]
    np.testing.assert_array_equal(maps, attention.weights)
    assert all(image.norm([0, 1]).tolist() == [0, 1] for image in images)
    texts = texts_of(figure)
    assert {"$5", "▁↵", "it", "##ll"} < set(texts)
    figure.savefig(tmp_path / "drawn.png")


# The command


@pytest.fixture(scope="module")
def flags(bundle, tmp_path_factory) -> dict:
    """A bundle that searches fast, and the files of a long article and a summary."""
    folder = tmp_path_factory.mktemp("attention")
    saved = {"network": bundle.network, "tokenizer": bundle.tokenizer}
    decoding = SearchConfig(beam_width=1, max_summary_tokens=20)
    save_bundle(str(folder / "bundle"), **saved, provenance={}, decoding=decoding)
    (folder / "text").write_text(TEXT * 40)
    (folder / "summary").write_text(SUMMARY)
    return {name: str(folder / name) for name in ("bundle", "text", "summary")}


def test_the_command_draws_the_mean_of_all_heads_each_head_or_the_copies(
    flags, tmp_path, capsys
):
    mean, each, copied = (tmp_path / f"{name}.png" for name in ("mean", "all", "c"))
    written = attention_command(output=str(each), heads="all", columns=3, **flags)
    assert written.path == str(each)
    assert written.columns == 3
    assert precis("attention", output=mean, columns=2, **flags) == 0
    read, shown, *_ = capsys.readouterr().out.splitlines()
    tokens = f"{written.read_tokens} of {written.source_tokens} tokens of the article"
    assert read == f"the network read the first {tokens}"
    assert shown.startswith(f"drawn: the 2 most attended of {written.tokens} tokens")
    whole = attention_command(output=str(copied), block="copy", columns=0, **flags)
    assert whole.columns == whole.tokens
    for picture in (mean, each, copied):
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_without_a_summary_it_is_the_one_of_summarize(flags, tmp_path):
    row = summarize_text(TEXT * 40, bundle=flags["bundle"])
    given = {"bundle": flags["bundle"], "text": flags["text"]}
    drawn = attention_command(output=tmp_path / "p.png", **given)
    (tmp_path / "summary").write_text(row["abstractive_summary"])
    summary = str(tmp_path / "summary")
    attention_command(output=tmp_path / "s.png", summary=summary, **given)
    assert (tmp_path / "p.png").read_bytes() == (tmp_path / "s.png").read_bytes()
    assert 0 < drawn.read_tokens < drawn.source_tokens == row["source_tokens"]


WRONG = [
    (None, {}, r"other: it cannot be read \(No such file or directory\); name"),
    (b"Caf\xe9", {}, "other: invalid_utf8: byte 3: .*; it seems to be cp1252"),
    (
        b"Rain.",
        {"task_prefix": "x: "},
        "`task_prefix='x: '`: the network was not trained .* prefixes: none",
    ),
]


@pytest.mark.parametrize(("content", "changes", "words"), WRONG)
def test_a_wrong_text_or_flag_is_refused(flags, tmp_path, content, changes, words):
    article, output = tmp_path / "other", tmp_path / "p.png"
    if content is not None:
        article.write_bytes(content)
    given = {**flags, "text": str(article), "output": str(output), **changes}
    with pytest.raises((UsageError, DataError), match=words):
        attention_command(**given)
    assert not output.exists()
