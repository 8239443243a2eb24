#!/usr/bin/env bash
# Calls the worker endpoints every five seconds, as cron would do every minute: for local use beside `gristmill serve`.
set -u
address=${1:-http://127.0.0.1:6455}
secret=${CRON_SECRET:-}
headers=()
[ -n "$secret" ] && headers=(-H "Authorization: Bearer $secret")

call() {
  answer=$(curl -sS -m 70 -X POST "${headers[@]}" "$address/api/workers/$1") && echo "$(date +%T) $answer"
}

echo "Calling the workers of $address every 5 seconds, until Ctrl-C."
while true; do
  call ingestion
  call vectorization
  sleep 5
done
