"""What a model card says about the records that a model was trained on."""

from typing import Any

from precis.model.records.dataset import DatasetInfo


def record_facts(info: DatasetInfo) -> dict[str, Any]:
    """The facts of a set of records, as JSON.

    They are the same wherever the records lie.

    Args:
      info: the description in dataset.json.
    """
    flags = info.provenance.get("flags", {})
    records = {split: info.records(split) for split in sorted(info.splits)}
    lengths = {
        side: {
            "mean": values.mean,
            "longest": values.max,
            "median": values.deciles[5],
            "records cut": values.cut,
            "limit": limit,
        }
        for side, values, limit in (
            ("source tokens", info.source_lengths, info.max_source_tokens),
            ("target tokens", info.target_lengths, info.max_target_tokens),
        )
    }
    return {
        "corpus": str(flags.get("corpus", "")),
        "records": records,
        "documents": dict(sorted(info.counts.items())),
        **lengths,
        "target": info.target,
        "task prefix": info.task_prefix,
        "fingerprint": info.fingerprint,
    }
