"""Parity with transformers: a checkpoint of T5 or PEGASUS that has a model of
SentencePiece alone is cut into the same ids.

`sentencepiece_reference.py` trains the models and says what is expected, in a process
of its own.
"""

import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sentencepiece_reference import MODELS, SETTINGS

from precis.model.text.article import Article
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.pipelines.corpus.sample.generator import document, hand_written

ABSENT = [
    name
    for name in ("sentencepiece", "transformers")
    if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(ABSENT),
        reason=f"needs {' and '.join(ABSENT)}; `make test-parity` installs what is missing and runs this",
    ),
]
SENTENCES, SPOILT = 600, 400
# What the built-in corpus has too little of.
ODD = [
    *(
        "",
        " ",
        "  ",
        "\n",
        "\t \n",
        " a",
        "a ",
        "  two  spaces   here  ",
        "a\nline\r\nbreak\tand\x0bmore\u2028",
    ),
    *(
        "ﬁne ½ ① Ⅳ ㎏ ｆｕｌｌ　ｗｉｄｔｈ",
        "Naïve café-goers’ £3.50—\u00ad…",
        "e\u0301 o\u0308 \u0130stanbul STRASSE ß",
        "\u4e1c京 タワー 한국어 ไทย עברית",
    ),
    *(
        "\U0001f600\U0001f468\u200d\U0001f469 flags \U0001f1eb\U0001f1f7",
        "zero\u200bwidth \ufeffbom \u00a0nbsp\u3000wide",
        "\x00null \x7fdel \x01",
    ),
    *(
        "▁visible ▁▁ spaces▁",
        "$1,000.50 (5%) <n> [x] {y} \\ ` ~",
        "the town<n>of the old town <ctl> fell",
        "</s><pad><unk> in <text>",
        "<unk>",
    ),
    *(
        "<mask_1> fell <mask_2>.<unk_2> <unk_102><unk_9>",
        "<extra_id_0> rain<extra_id_99>fell <extra_id_3>.",
        "<0x41> A",
        "a" * 300,
    ),
    *(
        "word\u0301\u0302\u0303",
        "\ud7a3\u1100\u1161",
        "ǅ ŉ ſ K Å",
        "١٢٣ ٫ ۴",
        "x²y³ H₂O",
        "\u202eright\u202c to left",
        "“Quoted,” he said: ‘no’",
    ),
]


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    """Sentences of the built-in corpus, all different."""
    first = len(hand_written())
    documents = itertools.chain(
        hand_written(), (document(first + index) for index in range(400))
    )
    return list(
        dict.fromkeys(
            sentence.text
            for one in documents
            for sentence in Article.from_text(one.article).sentences
        )
    )


@pytest.fixture(scope="module")
def texts(corpus) -> list[str]:
    """Sentences as they are, odd ones, and sentences into which odd characters and runs
    of spaces were put.
    """
    rng = random.Random(5)
    characters = [*dict.fromkeys("".join(ODD)), "  ", "   ", " \n", "<n>"]

    def spoil(text: str) -> str:
        for _ in range(rng.randint(1, 5)):
            place = rng.randint(0, len(text))
            text = text[:place] + rng.choice(characters) + text[place:]
        return text

    return [
        *ODD,
        *corpus[:SENTENCES],
        *(spoil(text) for text in corpus[SENTENCES : SENTENCES + SPOILT]),
    ]


@pytest.fixture(scope="module")
def folder(corpus, texts, tmp_path_factory) -> Path:
    """All models, each with what is made of the texts with it."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "training.json").write_text(json.dumps(corpus))
    (folder / "texts.json").write_text(json.dumps(texts))
    program = [
        sys.executable,
        Path(__file__).with_name("sentencepiece_reference.py"),
        folder,
    ]
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("model_type", ["t5", "pegasus"])
@pytest.mark.parametrize("name", MODELS)
def test_texts_are_cut_into_the_ids_of_transformers(name, model_type, folder, texts):
    expected = json.loads((folder / name / f"{model_type}.json").read_text())
    tokenizer = read_tokenizer(
        str(folder / name), {"model_type": model_type, "vocab_size": 2000}
    )
    found = tokenizer.encode(texts)
    assert len(found) == len(expected["ids"]) == len(ODD) + SENTENCES + SPOILT
    differ = [
        text
        for text, ids, theirs in zip(texts, found, expected["ids"], strict=True)
        if ids.tolist() != theirs
    ]
    assert not differ
    assert tokenizer.decode(found) == expected["decoded"]
    extra = SETTINGS.get(name, {"extra_ids": 100, "offset": 103})[
        "extra_ids" if model_type == "t5" else "offset"
    ]
    assert tokenizer.vocabulary_size == MODELS[name]["vocab_size"] + extra


@pytest.mark.parametrize(
    "name", ["plain", "case_folded"]
)  # the others have tokens that SentencePiece has not, or spaces that stay
def test_sentences_are_cut_as_sentencepiece_itself_cuts_them(name, folder, texts):
    own = json.loads((folder / name / "own.json").read_text())[
        len(ODD) : len(ODD) + SENTENCES
    ]
    tokenizer = read_tokenizer(
        str(folder / name), {"model_type": "t5", "vocab_size": 2000}
    )
    found = [
        ids[:-1].tolist()
        for ids in tokenizer.encode(texts[len(ODD) : len(ODD) + SENTENCES])
    ]
    assert found == own and max(map(len, own)) > 40
