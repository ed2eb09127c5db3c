"""A run of `precis summarize`: what it is made with, and the parts that it writes.

data/part-1f2e3d4c-00003.parquet          the rows of task 3
data/part-1f2e3d4c-00003-copies.parquet   those of its documents that repeat others
"""

import dataclasses
import importlib.metadata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from precis.model.quality.fallback import ABSTRACTIVE, SOURCE, rejects
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.job import Job
from precis.pipelines.run.result_files import DATA_FOLDER, PublishedFile
from precis.pipelines.summarize.earlier_runs import EarlierPart
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.part_writing import PartWriter


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummaryRun:
    """What a run is made with.

    Attributes:
      job: the job.
      corpus: what it reads.
      settings: how documents are summarized.
      layout: how its rows lie in parts.
      provenance: of the job.
      columns: those that all rows share.
      earlier: parts of earlier runs whose rows it takes over.
      deduplicates: whether equal texts are summarized once.
      unique_ids: whether two documents with one id fail it.
    """

    job: Job
    corpus: CorpusOptions
    settings: SummarySettings
    layout: PartLayout
    provenance: Mapping[str, Any]
    columns: Mapping[str, Any]
    earlier: tuple[EarlierPart, ...] = ()
    deduplicates: bool = False
    unique_ids: bool = False

    @property
    def has_keys(self) -> bool:
        """Whether keys of the documents are joined before they are summarized."""
        return bool(self.earlier) or self.deduplicates or self.unique_ids


class RowFigures(NamedTuple):
    """What a task reports of its rows.

    Attributes:
      rows: by source file, counted in what was written.
      summary_methods: rows by the method of the summary that is shown.
      quality_flags: rows by each of the flags of the summary that is shown.
      fallbacks: rows whose abstractive summary is not shown, by each of the flags that
          it was held back for.
      flagged: rows with a quality flag.
      search: what the search cost, as `search_cost` sums it.
      has_duplicates: whether documents wait for the rows of others.
    """

    rows: Mapping[str, int] = {}
    summary_methods: Mapping[str, int] = {}
    quality_flags: Mapping[str, int] = {}
    fallbacks: Mapping[str, int] = {}
    flagged: int = 0
    search: Mapping[str, Any] = {}
    has_duplicates: bool = False

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RowFigures":
        """The figures of a receipt; zero where it is empty."""
        return cls(**{name: content[name] for name in cls._fields if name in content})


class RunPart(PartWriter):
    """Writes the rows of a task, and counts them.

    Attributes:
      outcomes: rows by outcome and source file.
      truncated: rows whose document a network did not read to its end.
    """

    def __init__(self, run: SummaryRun, name: str) -> None:
        """Stores its arguments.

        Args:
          run: of the rows.
          name: of the part among those of the run.
        """
        file = f"part-{run.job.run_id[:8]}-{name}.parquet"
        super().__init__(run.job.output, file, run.layout, _footer(run))
        self.outcomes: dict[str, Counter[str]] = {
            name: Counter() for name in ("written", "reused", "duplicates")
        }
        self.truncated = 0
        self._fallback = run.settings.fallback
        self._counted = {
            name: Counter[str]()
            for name in ("rows", "summary_methods", "quality_flags", "fallbacks")
        }
        self._flagged = 0

    def add(self, rows: pa.Table) -> int:
        """Writes rows with all columns; returns how many have a quality flag.

        Raises:
          DataError: as `write`.
        """
        self.write(rows)
        flags = rows.column("quality_flags")
        method = rows.column("summary_method")
        is_shown = pc.is_in(method, pa.array([ABSTRACTIVE, SOURCE]))
        quality = rows.filter(pc.invert(is_shown)).column("abstractive_quality")
        held_back = pc.list_flatten(pc.struct_field(quality, "flags")).to_pylist()
        self._counted["rows"].update(rows.column("source_file").to_pylist())
        self._counted["summary_methods"].update(method.to_pylist())
        self._counted["quality_flags"].update(pc.list_flatten(flags).to_pylist())
        self._counted["fallbacks"].update(
            name for name in held_back if rejects(name, self._fallback)
        )
        self.truncated += sum(filter(None, rows.column("truncated").to_pylist()))
        for source_file, first, reused_from in zip(
            *(
                rows.column(name).to_pylist()
                for name in ("source_file", "duplicate_of", "reused_from")
            ),
            strict=True,
        ):
            outcome = "duplicates" if first is not None else "written"
            if first is None and reused_from is not None:
                outcome = "reused"
            self.outcomes[outcome][source_file] += 1
        flagged = sum(map(bool, flags.to_pylist()))
        self._flagged += flagged
        return flagged

    def figures(self, **others: Any) -> RowFigures:
        """What is counted, and other figures by name."""
        counted: dict[str, Any] = {
            name: dict(counts) for name, counts in self._counted.items()
        }
        return RowFigures(**counted, flagged=self._flagged, **others)


def data_files(published: Iterable[PublishedFile]) -> list[PublishedFile]:
    """The parts among the files of a task."""
    return [file for file in published if file["file"].startswith(f"{DATA_FOLDER}/")]


def _footer(run: SummaryRun) -> dict[str, str]:
    """Facts about a run for the metadata of its Parquet files."""
    facts = {
        "run_id": run.job.run_id,
        "settings_id": run.columns["settings_id"],
        "precis_version": importlib.metadata.version("precis"),
        **{name: model or "" for name, model in run.settings.model_ids.items()},
    }
    return {f"precis.{name}": value for name, value in facts.items()}
