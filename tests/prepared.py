"""What `precis prepare` is run on, what it wrote, and how it is made to break off."""

import errno
import json
from pathlib import Path

import tensorflow as tf

from precis.pipelines.corpus.sample import generator
from precis.pipelines.encoding_pass import EncodeWorker

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


def examples(folder):
    """The records of each split as TensorFlow reads them."""
    found = {}
    for path in sorted(Path(folder).glob("*.tfrecord")):
        for serialised in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            feature = tf.train.Example.FromString(serialised).features.feature
            found.setdefault(path.name.split("-")[0], []).append(
                {
                    "id": feature["document_id"].bytes_list.value[0].decode(),
                    "source": list(feature["source"].int64_list.value),
                    "target": list(feature["target"].int64_list.value),
                    "source_tokens": feature["source_tokens"].int64_list.value[0],
                    "highlights": feature["highlights"].bytes_list.value[0].decode(),
                }
            )
    return found


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
