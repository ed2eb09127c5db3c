"""One task of `precis evaluate`: a range of rows -> its part of `scores/`."""

from precis.model import files
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.corpus.task import Position
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.evaluate.drawn_rows import draw_rows
from precis.pipelines.evaluate.measures import QUALITY_COLUMNS, measures_of_rows
from precis.pipelines.evaluate.scoring import (
    LATER_COLUMNS,
    NEEDED_COLUMNS,
    SCORES_FOLDER,
    RangeScores,
    score_rows,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.tables.row_ranges import RowRange, has_reference, read_table
from precis.pipelines.tables.schema import SCORES_SCHEMA, write_parquet


class ScoreWorker(TaskWorker):
    """Scores one range of rows; its figures are `RangeScores`."""

    def __init__(
        self,
        folder: str,
        *,
        tasks: int,
        split_sentences: bool,
        show: int = 0,
        show_seed: int = 0,
    ) -> None:
        """Stores its arguments.

        Args:
          folder: where the evaluation goes.
          tasks: how many tasks there are.
          split_sentences: as `score_rows` takes it.
          show, show_seed: as `draw_rows` takes them.
        """
        self._folder = folder
        self._tasks = tasks
        self._split_sentences = split_sentences
        self._show = show
        self._show_seed = show_seed

    def progress_size(self, task: RowRange) -> int:
        """Progress is counted in rows."""
        return task.rows

    def run(
        self, task: RowRange, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[RangeScores]:
        """Scores the rows that have a reference; without any there is no part."""
        del letters
        needed = (*NEEDED_COLUMNS, *LATER_COLUMNS)
        stored = read_table(task, (*needed, *QUALITY_COLUMNS))
        names = {*needed} & set(stored.column_names)
        rows = stored.select(sorted(names)).to_pylist()
        table, scores = score_rows(
            rows,
            measures_of_rows(stored),
            draw_rows(rows, task, count=self._show, seed=self._show_seed),
            number=task.number,
            split_sentences=self._split_sentences,
        )
        published = []
        if scores.scored:
            name = files.join(SCORES_FOLDER, _part_name(task.number, self._tasks))
            write_parquet(files.join(self._folder, name), [table], SCORES_SCHEMA)
            published.append(describe_file(self._folder, name, rows=table.num_rows))
        progress.advance_to(Position(records=len(rows), share=1.0))
        sources = source_counts(
            read={task.path: len(rows)},
            written={task.path: scores.scored},
            skipped={task.path: sum(not has_reference(row) for row in rows)},
        )
        return TaskResult(sources, published, scores)


def _part_name(index: int, count: int) -> str:
    """The name of a task's Parquet file, as in `part-00003-of-00016.parquet`."""
    return f"part-{index:05d}-of-{count:05d}.parquet"
