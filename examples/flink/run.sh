#!/usr/bin/env bash
# Summarizes a corpus on a Flink cluster, and checks the run. docs/ENGINES.md says what
# the cluster needs: precis on its machines, and a disk or store that all of them reach.
#
#     FLINK=http://flink:8081 run.sh CORPUS OUTPUT [FLAGS]
#
# FLAGS are further flags of `precis summarize` or of Beam, such as --bundle, --parallelism
# or, where Beam's job server runs already, --job_endpoint flink:8099.
#
# A command that was stopped or killed goes on with the same words.
set -euo pipefail

: "${FLINK:?set FLINK to the address of the job manager, as in http://flink:8081}"
if [ $# -lt 2 ]; then
    echo "usage: FLINK=http://HOST:8081 $0 CORPUS OUTPUT [FLAGS]" >&2
    exit 2
fi
corpus=$1
output=$2
shift 2

precis summarize --corpus "$corpus" --output "$output" \
    --runner FlinkRunner --flink_master "$FLINK" "$@"
precis verify "$output" --corpus "$corpus"
