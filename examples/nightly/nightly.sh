#!/usr/bin/env bash
# Summarizes what is new of a corpus, checks the run, loads and publishes it. For cron.
#
#     CORPUS='jsonl:/data/news/*.jsonl.gz' RUNS=/data/nightly nightly.sh [NAME]
#
# NAME names the run; it is today's date where it is left out.
#
#   CORPUS      as --corpus of `precis summarize`
#   RUNS        folder of the runs; earlier ones give their rows for texts that are as they were
#   BUNDLE      network or summarizer; without it the summaries are extractive
#   TABLE       Iceberg or Delta table that takes the run; without it nothing is loaded
#   PUBLISHED   link to the newest run that passed all checks (RUNS.published)
#   PRECIS      the command (precis)
#
# It may be started as often as you like: one start at a time works, and a second one of
# the same NAME goes on where the first was stopped. It is silent where all is well, so that
# cron mails failures alone, with the exit code of the command that failed and the end of
# RUNS.logs/NAME.log:
#
#   1    the data failed the job, or the run is not as it was written
#   2    a command was wrong, which trying again does not mend; or the corpus has changed
#        since the first start of this NAME: another NAME takes up what is new
#   75   the start before is still at work
#   143  stopped; the same start goes on
set -euo pipefail

: "${CORPUS:?set CORPUS, as in jsonl:/data/news/*.jsonl.gz}"
: "${RUNS:?set RUNS to the folder of the runs}"
precis=${PRECIS:-precis}
name=${1:-$(date --utc +%F)}
run=$RUNS/$name
published=${PUBLISHED:-$RUNS.published}
log=$RUNS.logs/$name.log
mkdir -p "$RUNS" "$RUNS.logs"

exec 9>"$RUNS.lock"
if ! flock --nonblock 9; then
    echo "nightly: the start before is still at work ($RUNS.lock); this one ends" >&2
    exit 75
fi

# What the trap prints goes to cron, also from within the block whose output is the log.
exec 3>&2
report() {
    code=$?
    if [ "$code" -ne 0 ]; then
        echo "nightly: $name ended with exit code $code; the end of $log:" >&3
        tail -n 20 "$log" >&3
    fi
}
trap report EXIT

{
    "$precis" summarize --corpus "$CORPUS" ${BUNDLE:+--bundle "$BUNDLE"} \
        --output "$run" --reuse "$RUNS"
    "$precis" verify "$run" --corpus "$CORPUS"
    if [ -n "${TABLE:-}" ]; then
        # Where ids are unique, the row of a document is replaced wherever it stands.
        "$precis" load "$run" --table "$TABLE" --table_key document_id
    fi
    # A reader of the link sees the run before or this one.
    ln --symbolic --force --no-dereference "$(realpath "$run")" "$published.next"
    mv --no-target-directory "$published.next" "$published"
} >>"$log" 2>&1
