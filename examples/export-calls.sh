#!/bin/sh
# Saves all calls of some days as calls-2026-11-01-2026-11-30.csv.gz, if the export is complete.
#   sh export-calls.sh 2026-11-01 2026-11-30
set -eu
name="calls-$1-$2.csv"
curl -fsS "$TOLLGATE_URL/gateway/v1/requests?format=csv&start=$1&end=$2" \
  -H "authorization: Bearer $TOLLGATE_ADMIN_KEY" > "$name"
gzip -f "$name"
