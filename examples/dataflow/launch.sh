#!/usr/bin/env bash
# Summarizes a corpus on Google Cloud Dataflow. docs/ENGINES.md says what each flag does.
#
#     PROJECT=my-project REGION=europe-west4 BUCKET=my-bucket launch.sh [NAME] [FLAGS]
#
# NAME names the run; it is today's date where it is left out. FLAGS are further flags of
# `precis summarize` or of Beam.
#
#   IMAGE     image of the workers, the target `cpu` of deploy/dataflow.Dockerfile
#   BUNDLE    network or summarizer on gs://; without it the summaries are extractive
#   WORKERS   the most workers (25)
set -euo pipefail

: "${PROJECT:?set PROJECT to the project that pays for the job}"
: "${REGION:?set REGION, as in europe-west4}"
: "${BUCKET:?set BUCKET to the bucket with the corpus}"
image=${IMAGE:-$REGION-docker.pkg.dev/$PROJECT/images/precis:cpu}
name=$(date --utc +%F)
if [ "${1:-}" ] && [ "${1#--}" = "$1" ]; then
    name=$1
    shift
fi

job=(
    summarize
    --corpus "jsonl:gs://$BUCKET/news/*.jsonl.gz"
    --output "gs://$BUCKET/runs/$name"
    ${BUNDLE:+--bundle "$BUNDLE"}
    --runner DataflowRunner
    --project "$PROJECT"
    --region "$REGION"
    --job_name "precis-$name"
    --temp_location "gs://$BUCKET/tmp"
    --sdk_container_image "$image"
    --number_of_worker_harness_threads 1
    --worker_machine_type e2-standard-4
    --max_num_workers "${WORKERS:-25}"
    "$@"
)
# What would stop the job costs nothing yet: buckets, permissions, the bundle, flags.
precis doctor "${job[@]}"
precis "${job[@]}"
