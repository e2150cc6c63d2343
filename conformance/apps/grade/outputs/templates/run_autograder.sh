#!/usr/bin/env bash
# Grades one submission. Its results are written at the very end, when none of its code runs any more; without them
# Gradescope reports that the autograder failed, so that nobody gets a score without a verdict.
set -uo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
conform=${CONFORM:-/opt/conformkit/bin/conform}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
rm -f "$root/results/results.json"

options=()
if [ -s "$root/source/options.txt" ]; then
    mapfile -t options <"$root/source/options.txt"
fi
"$conform" grade "$root/submission" --single --policy "$root/source/policy.toml" --out "$out" --quiet "${options[@]}"
code=$?
if [ "$code" -ne 0 ]; then
    echo "run_autograder: conform grade ended with code $code; this says nothing about the submission" >&2
    exit "$code"
fi

found=("$out"/students/*/results.json)
if [ "${#found[@]}" -ne 1 ] || [ ! -f "${found[0]}" ]; then
    echo "run_autograder: there is no result, or more than one" >&2
    exit 5
fi
mkdir -p "$root/results"
cp "${found[0]}" "$root/results/.results.json"
mv "$root/results/.results.json" "$root/results/results.json"
