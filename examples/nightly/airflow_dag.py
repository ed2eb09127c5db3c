"""The nightly job as a DAG of Airflow 3: summarize, verify, load, publish.

Put the file into the folder of DAGs and precis where the workers find it. The settings
are parameters of the DAG, so that a run by hand may have others:

    airflow dags trigger precis_nightly --conf '{"runs": "/data/again"}'

A night that fails is tried again, and goes on where it was.
"""

import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param

# What the commands below take from their environment. Values get there by templates,
# not into the commands, so that no value can be taken for a word of the shell.
SETTINGS = {
    "CORPUS": "{{ params.corpus }}",
    "BUNDLE": "{{ params.bundle }}",
    "TABLE": "{{ params.table }}",
    "RUNS": "{{ params.runs }}",
    "RUN": "{{ params.runs }}/{{ dag_run.run_after | ds }}",
}
SUMMARIZE = """
precis summarize --corpus "$CORPUS" ${BUNDLE:+--bundle "$BUNDLE"} \
    --output "$RUN" --reuse "$RUNS"
"""
VERIFY = 'precis verify "$RUN" --corpus "$CORPUS"'
# 99 skips the task.
LOAD = (
    '[ -n "$TABLE" ] || exit 99; '
    'precis load "$RUN" --table "$TABLE" --table_key document_id'
)
PUBLISH = """
ln -sfn "$(realpath "$RUN")" "$RUNS.published.next"
mv -T "$RUNS.published.next" "$RUNS.published"
"""


def command(task_id: str, text: str, **settings) -> BashOperator:
    """A task that runs a command with the settings of the DAG."""
    return BashOperator(
        task_id=task_id,
        bash_command=f"set -eu\n{text}",
        env=SETTINGS,
        append_env=True,
        **settings,
    )


with DAG(
    dag_id="precis_nightly",
    description="Summaries of what is new of a corpus",
    schedule="17 2 * * *",
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    # A second run at the same time would wait for nothing: precis refuses it.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": datetime.timedelta(minutes=10)},
    params={
        "corpus": Param("jsonl:/data/news/*.jsonl.gz", type="string"),
        "bundle": Param("", type="string", description="extractive without one"),
        "runs": Param("/data/nightly", type="string"),
        "table": Param("", type="string", description="nothing is loaded without one"),
    },
) as dag:
    summarize = command("summarize", SUMMARIZE)
    verify = command("verify", VERIFY, retries=0)
    load = command("load", LOAD)
    # It waits for the load, and takes place where nothing is to be loaded too.
    publish = command("publish", PUBLISH, trigger_rule="none_failed")
    summarize >> verify >> load >> publish
