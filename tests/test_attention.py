"""`precis attention`: weights with the tokens they belong to, and their picture."""

import re

import numpy as np
import pytest
from support.command_line import precis
from support.plain_network import scramble
from support.small_training import network_config

from precis.model.bundle.network_bundle import Bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.inference.attention import HeadWeights, read_attention
from precis.model.inference.heat_map import draw, most_read
from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.folder import load_tokenizers

TEXT = "Rain fell on Paris. Nobody was hurt."
SEARCH = SearchConfig(beam_width=2, max_summary_tokens=7, min_summary_tokens=3)


def make_bundle(records_folder, config) -> Bundle:
    tokenizer = load_tokenizers(records_folder).target
    network = build_network(config)
    scramble(network, seed=2)
    return Bundle(network, tokenizer, tokenizer, "id", None)


@pytest.fixture(scope="module")
def bundle(records_folder) -> Bundle:
    return make_bundle(
        records_folder, network_config(encoder_layers=2, decoder_layers=3)
    )


def pieces(bundle, ids):
    return [bundle.tokenizer.vocabulary[token] for token in ids]


def test_weights_stand_with_the_tokens_they_belong_to(bundle):
    (source,) = bundle.tokenizer.encode([TEXT])
    (written,) = bundle.tokenizer.encode(["Rain fell."])
    attention = read_attention(
        bundle, TEXT, block="cross", layer=2, decoding=SEARCH, summary="Rain fell."
    )
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


def test_a_text_is_cut_at_the_length_that_the_network_reads(bundle):
    limit = bundle.network.config.max_source_tokens
    (source,) = bundle.tokenizer.encode([TEXT * 40])
    assert len(source) > limit
    attention = read_attention(
        bundle, TEXT * 40, block="cross", layer=0, decoding=SEARCH, summary="Rain."
    )
    assert attention.columns == pieces(bundle, source[:limit])


def test_every_block_has_its_tokens(bundle):
    length = len(bundle.tokenizer.encode([TEXT])[0])
    shapes = {}
    for block in ("encoder", "self", "cross", "copy"):
        attention = read_attention(bundle, TEXT, block=block, layer=0, decoding=SEARCH)
        tokens = (len(attention.rows), len(attention.columns))
        assert attention.weights.shape[1:] == tokens
        shapes[block] = (attention.layer, *attention.weights.shape)
    steps = shapes["cross"][2]
    assert shapes == {
        "encoder": (2, 2, length, length),
        "self": (3, 2, steps, steps),
        "cross": (3, 2, steps, length),
        "copy": (1, 1, steps, length),
    }
    assert 3 <= steps <= 7
    attention = read_attention(bundle, TEXT, block="self", layer=0, decoding=SEARCH)
    assert attention.columns == ["[START]", *attention.rows[:-1]]


def test_a_decoder_only_network_reads_source_and_summary_as_one(records_folder):
    size = load_tokenizers(records_folder).target.vocabulary_size
    config = DecoderOnlyConfig(
        vocabulary_size=size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=8,
        layers=1,
        max_target_tokens=20,
    )
    bundle = make_bundle(records_folder, config)
    attention = read_attention(bundle, TEXT, block="self", layer=1, decoding=SEARCH)
    rows = attention.rows
    assert attention.columns[-len(rows) :] == ["[START]", *rows[:-1]]
    with pytest.raises(
        UsageError,
        match="--block cross: this network has none; it has encoder, self, copy",
    ):
        read_attention(bundle, TEXT, block="cross", layer=1, decoding=SEARCH)


def test_layers_that_are_not_there_are_refused(bundle):
    with pytest.raises(
        UsageError, match="--layer 4: the block cross has the layers 1 to 3"
    ):
        read_attention(bundle, TEXT, block="cross", layer=4, decoding=SEARCH)


# The picture


def test_the_columns_with_the_largest_weights_are_drawn_in_their_order():
    weights = np.array(
        [
            [[0.1, 0.5, 0.1, 0.3], [0.0, 0.1, 0.2, 0.7]],
            [[0.25, 0.25, 0.4, 0.1], [0.1, 0.2, 0.35, 0.35]],
        ]
    )
    assert most_read(weights, 3).tolist() == [1, 2, 3]
    assert most_read(weights, 1).tolist() == [3]
    assert most_read(weights, 0).tolist() == [0, 1, 2, 3]
    assert most_read(weights, 4).tolist() == [0, 1, 2, 3]


def draw_to(path, **flags):
    """Draws three heads, each row of which reads a single token, and reads the picture
    back, float32 [height, width, 4].
    """
    from matplotlib import image

    rng = np.random.default_rng(0)
    weights = np.zeros((3, 4, 5), "float32")
    weights[np.arange(3)[:, None], np.arange(4), rng.integers(0, 5, (3, 4))] = 1.0
    rows = ["▁a", "$5", "▁␤", "[END]"]
    columns = [f"▁{number}" for number in range(5)]
    with open(path, "wb") as file:
        draw(HeadWeights("cross", 2, weights, rows, columns), file, **flags)
    return image.imread(path)


# The colours of the weights one and zero.
YELLOW = (0.993248, 0.906157, 0.143936)
PURPLE = (0.267004, 0.004874, 0.329415)


@pytest.mark.parametrize("heads", [None, [2]])
def test_a_picture_has_a_cell_for_each_weight(tmp_path, heads):
    """Of each head's 20 cells four are one, and the others zero."""
    picture = draw_to(tmp_path / "drawn.png", heads=heads)[..., :3]
    ones, zeros = (
        (abs(picture - colour) < 0.02).all(axis=-1).sum() for colour in (YELLOW, PURPLE)
    )
    assert 0.18 < ones / (ones + zeros) < 0.22


@pytest.mark.filterwarnings("error")
def test_a_picture_has_a_glyph_for_a_line_break(tmp_path):
    draw_to(tmp_path / "drawn.png")


def test_fewer_columns_make_a_narrower_picture(tmp_path):
    two = draw_to(tmp_path / "two.png", most_columns=2, heads=[1])
    five = draw_to(tmp_path / "five.png", heads=[1])
    assert two.shape[1] < five.shape[1]


# The command


@pytest.fixture(scope="module")
def folder(bundle, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("bundle")
    save_bundle(
        str(path), network=bundle.network, tokenizer=bundle.tokenizer, provenance={}
    )
    return str(path)


def test_the_command_writes_the_picture_of_a_head(folder, tmp_path):
    article = tmp_path / "a.txt"
    article.write_text(TEXT)
    summary = tmp_path / "s.txt"
    summary.write_text("Rain fell.")
    flags = {"bundle": folder, "text": article, "summary": summary}
    sizes = []
    for head in (0, 2):
        output = tmp_path / f"{head}.png"
        assert precis("attention", output=output, head=head, **flags) == 0
        assert output.read_bytes().startswith(b"\x89PNG")
        sizes.append(output.stat().st_size)
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("content", "flags", "words"),
    [
        (None, {}, "--text .*a.txt: there is no such file; name one with plain text"),
        (b"  \n", {}, "--text .*a.txt holds no text; name a file with an article"),
        (b"Caf\xe9", {}, "a.txt: byte 3 is no UTF-8; convert the file"),
        (b"Rain.", {"head": 3}, "--head 3: the block cross has the heads 1 to 2"),
        (b"Rain.", {"layer": -1}, "--layer must not be negative, but is -1"),
        (
            b"Rain.",
            {"task_prefix": "x: "},
            "--task_prefix 'x: ' is not one that the network was trained with; it "
            "knows none",
        ),
        (b"Rain.", {"output": ""}, "--output is empty; name a file"),
    ],
)
def test_a_wrong_text_or_flag_is_refused(
    folder, tmp_path, capsys, content, flags, words
):
    article = tmp_path / "a.txt"
    if content is not None:
        article.write_bytes(content)
    given = {
        "bundle": folder,
        "text": article,
        "output": tmp_path / "p.png",
        "max_summary_tokens": 5,
        **flags,
    }
    assert precis("attention", **given) in (1, 2)
    assert re.search(words, capsys.readouterr().err)
    assert not (tmp_path / "p.png").exists()


def test_a_block_by_another_name_is_refused():
    from precis.pipelines.options.bundles import AttentionOptions

    with pytest.raises(
        UsageError, match="--block is one of encoder, self, cross, copy, not 'other'"
    ):
        AttentionOptions(bundle="b", text="t", output="o", block="other")
