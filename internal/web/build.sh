#!/bin/sh
# Makes dist, the files of the page, from app. Needs npm; who does not touch the page does not.
#   build.sh [DIR]    into another directory
set -eu
out=$(mkdir -p "${1:-$(dirname "$0")/dist}" && cd "${1:-$(dirname "$0")/dist}" && pwd)
cd "$(dirname "$0")/app"
if ! cmp -s package-lock.json node_modules/.built-from; then
	npm ci --no-audit --no-fund --loglevel=error --ignore-scripts
	cp package-lock.json node_modules/.built-from
fi
node build.mjs "$out"
