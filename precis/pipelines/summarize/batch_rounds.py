"""The rounds of a run whose requests are answered in batches.

    files of requests -> batches -> answers          `BatchClient`, in this process
    tasks without a receipt -> rows, or requests     the step `summarize`

A task with a request that has no answer publishes nothing, so it is done again in the
next round. The last round has no requests; then the run ends as any other.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from precis.model import files
from precis.model.errors import Unfinished, UsageError
from precis.model.progress.stages import say
from precis.pipelines.engines.beam_runner import runner_name, works_in_this_process
from precis.pipelines.run.job import pending_description
from precis.pipelines.summarize.options import SummarizeOptions
from precis.pipelines.summarize.run_output import BATCHES, SummaryRun
from precis.pipelines.summarize.window_summarizer import JOURNAL_FILE, open_endpoint


@contextmanager
def answered_in_batches(
    run: SummaryRun, ask: Callable[[SummaryRun], object]
) -> Iterator[SummaryRun]:
    """Has the requests of a run answered; gives the run, whose tasks have all answers.

    Args:
      run: the run.
      ask: does the tasks of a run that have no receipt.

    Raises:
      Unfinished: the requests are submitted or written, as the options say.
      JobError: the server refuses a batch, or does not answer.
    """
    settings, options = run.settings, run.settings.options
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, JOURNAL_FILE)
        run = replace(run, settings=settings._replace(journal=journal))
        client: Any = open_endpoint(run.settings).client
        _await_answers(run, client, ask)
        yield run
        if options.answers_from and (count := client.count_noted()):
            say(
                f"precis summarize: {options.answers_from} holds no answer to {count} "
                "requests; add --requests_to to write them"
            )


def check_batches(options: SummarizeOptions, beam_options: PipelineOptions) -> None:
    """Refuses batches on another engine, a folder for requests that already has some,
    and a folder without answers.

    Raises:
      UsageError: the message names the flag.
    """
    if not works_in_this_process(beam_options):
        raise UsageError(
            f"--bundle {options.bundle}: {runner_name(beam_options)} cannot ask in "
            "batches, only this machine; leave --runner out, or write openai://..."
        )
    place = options.requests_to
    if place and files.glob(files.join(place, "requests-*.jsonl")):
        raise UsageError(
            f"--requests_to {place}: it already holds files of requests, and a request "
            "must not be answered twice; name another folder"
        )
    place = options.answers_from
    if place and not files.glob(files.join(place, "*.jsonl")):
        raise UsageError(
            f"--answers_from {place}: it holds no file *.jsonl; name the folder with "
            "the answers"
        )


def _await_answers(
    run: SummaryRun, client: Any, ask: Callable[[SummaryRun], object]
) -> None:
    """Repeats rounds until every request has an answer. With --answers_from alone, it
    only loads the answers, and a request without one fails.
    """
    options, output = run.settings.options, run.job.output
    folder, pending = files.join(output, BATCHES), pending_description(run.job)
    by_hand = options.requests_to or options.answers_from
    # An earlier command has ended with too many failures; each is tried again.
    earlier = files.read_json(pending) if files.exists(pending) else {}
    given_up = earlier.get("batches", ())  # There are none after openai://.
    if not (by_hand or files.exists(folder)):
        client.check()
    if options.answers_from:
        client.load_answers(options.answers_from)
    while True:
        waits = not options.submit_only
        if not by_hand and (running := client.settle(folder, waits=waits)):
            count = sum(each["requests"] for each in running)
            raise Unfinished(
                f"submitted: {count:,} requests in {len(running)} batch(es) wait for "
                "their answers; run the same command again to continue"
            )
        client.load_batches(folder, given_up)
        if options.answers_from and not options.requests_to:
            return
        ask(run)
        if not (count := client.count_noted()):
            return
        place = options.requests_to or folder
        number = client.write_requests(place, options.batch_requests)
        if options.requests_to:
            way_out = "run the same command with --answers_from in place of"
            if folder := options.answers_from:
                way_out = (
                    f"add the answers to {folder}, and run the same command without"
                )
            raise Unfinished(
                f"wrote {count:,} requests in {number} files to {place}; have them "
                f"answered, as by `vllm run-batch`, and {way_out} --requests_to"
            )
