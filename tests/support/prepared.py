"""What `precis prepare` is run on, what it wrote, and how it is made to break off."""

import errno
import hashlib
import json
from pathlib import Path

import tensorflow as tf

from precis.pipelines.corpus.sample import generator
from precis.pipelines.encoding_pass import EncodeWorker
from support.command_line import precis

SMALL = {"vocabulary_size": 600, "max_source_tokens": 40, "max_target_tokens": 10}
FIRST = len(generator.hand_written())


def story(index, **changes):
    document = generator.document(FIRST + index)
    return {
        "id": f"d{index:02}",
        "article": document.article,
        "highlights": document.highlights,
        **changes,
    }


def spaced(text):
    return "  " + text.replace(" ", "  ", 3) + "\n"


# In the order of the corpus: each line and what becomes of it.
LINES = [
    *[(story(index), "written") for index in range(20)],
    ("{broken", "failed"),
    (story(20), "written"),
    (
        story(90, article=spaced(story(20)["article"])),
        "duplicates",
    ),  # of the line before
    (
        story(91, article=spaced(story(3)["article"])),
        "duplicates",
    ),  # of one in another task
    (story(92, article="(CNN) -- "), "without_text"),
    (story(93, article=" \n"), "without_text"),
    (story(94, highlights=" \n "), "without_highlights"),
    ({"id": "d95", "article": "Rain fell. Nobody came."}, "without_highlights"),
    (
        story(96, article="Rain  fell. Nobody came."),
        "written",
    ),  # the same text, but this time with highlights
    (b'{"id": "d97", "article": "caf\xe9", "highlights": "x"}', "failed"),
    ("[1, 2]", "failed"),
    ({"id": "d98", "highlights": "x"}, "failed"),
    ({"id": "d99", "article": 7, "highlights": "x"}, "failed"),
    *[(story(index), "written") for index in range(21, 60)],
    (story(89, article=story(3)["article"]), "duplicates"),
]
FATES = [fate for _, fate in LINES]


def split_by_hash(document_id, seed=17, validation=0.2, test=0.2):
    place = (
        int(hashlib.sha256(f"{seed}:{document_id}".encode()).hexdigest()[:16], 16)
        / 2**64
    )
    return (
        "validation"
        if place < validation
        else "test"
        if place < validation + test
        else "train"
    )


def run_prepare(output, **flags):
    """Runs `precis prepare`, which must succeed."""
    assert precis("prepare", output=output, **flags) == 0


def examples(folder):
    """The records of each split as TensorFlow reads them."""
    by_split = {}
    for path in sorted(Path(folder).glob("*.tfrecord")):
        for serialised in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            feature = tf.train.Example.FromString(serialised).features.feature
            by_split.setdefault(path.name.split("-")[0], []).append(
                {
                    "id": feature["document_id"].bytes_list.value[0].decode(),
                    "source": list(feature["source"].int64_list.value),
                    "target": list(feature["target"].int64_list.value),
                    "source_tokens": feature["source_tokens"].int64_list.value[0],
                    "highlights": feature["highlights"].bytes_list.value[0].decode(),
                }
            )
    return by_split


def all_examples(folder):
    return [example for split in examples(folder).values() for example in split]


def info(folder):
    return json.loads((Path(folder) / "dataset.json").read_bytes())


REAL_RUN = EncodeWorker.run


def fail_at(monkeypatch, number, started):
    """Makes one task fail; the numbers of the tasks that start go into `started`."""

    def run(self, task, progress):
        started.append(task.number)
        if task.number == number:
            raise OSError(errno.EIO, "the disk is gone")
        return REAL_RUN(self, task, progress)

    monkeypatch.setattr(EncodeWorker, "run", run)
