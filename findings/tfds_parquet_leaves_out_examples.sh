#!/bin/sh
# TensorFlow Datasets prepares a data set with file_format="parquet".
#
# One would guess that the format of the files does not change which examples they hold,
# or that as_data_source() fails where a file lacks examples that its metadata counts.
# With tensorflow-datasets 4.9.10, batch N of 100 examples is taken after N * 100 more
# were skipped, because an iterator is sliced as if it were a list. dataset_info.json
# counts every example, and the reader returns what is left without a word:
#
#     250 examples -> 150 rows         1000 -> 400         20000 -> 1900
#
# A reader finds the loss if it compares the rows of each shard with shard_lengths.
# file_format="array_record" holds them all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow-datasets==4.9.10 tensorflow-cpu \
  importlib_resources pyarrow
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import numpy as np
import tensorflow_datasets as tfds

features = tfds.features.FeaturesDict({"n": tfds.features.Scalar(np.int64)})
for kind in ("array_record", "parquet"):
    for count, kept in ((250, 150), (1000, 400), (20000, 1900)):
        tfds.dataset_builders.store_as_tfds_dataset(
            name=f"numbers_{kind}_{count}",
            version="1.0.0",
            features=features,
            split_datasets={"train": [(n, {"n": n}) for n in range(count)]},
            data_dir=".",
            file_format=kind,
        )
        builder = tfds.builder_from_directory(f"numbers_{kind}_{count}/1.0.0")
        counted = builder.info.splits["train"].num_examples
        found = len(builder.as_data_source(split="train"))
        print(kind, count, counted, found, flush=True)
        assert counted == count
        assert found == (kept if kind == "parquet" else count)
PYTHON
