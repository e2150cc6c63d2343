#!/usr/bin/env bash
# The last step of action.yml. Arguments: the folder of `conform`. Environment: IMPL, POLICY, MINIMUM,
# PROFILE, ONLY, BASELINE, SEED, STRICT, OUT.
set -euo pipefail
bin=$1
mkdir -p "$OUT"

if [ -z "$POLICY" ]; then
    # Each is said: the workspace may hold a pyproject.toml with defaults of its own.
    strict=--strict
    if [ "${STRICT:-true}" = false ]; then strict=--no-strict; fi
    more=()
    if [ -n "${ONLY:-}" ]; then more+=(--only "$ONLY"); fi
    if [ -n "${BASELINE:-}" ]; then more+=(--baseline "$BASELINE"); fi
    exec "$bin/conform" run --impl "$IMPL" --isolation sandbox --profile "$PROFILE" --level MUST --seed "$SEED" "$strict" \
        --github --html "$OUT/report.html" --json "$OUT/report.json" --sarif "$OUT/report.sarif" "${more[@]}"
fi

# What a submission says may not be taken for a command to the runner.
word=$("$bin/python" -c 'import secrets; print(secrets.token_hex(16))')
echo "::stop-commands::$word"
code=0
"$bin/conform" grade "$IMPL" --single --policy "$POLICY" --out "$OUT" || code=$?
echo "::$word::"
if [ "$code" -ne 0 ]; then
    exit "$code"
fi
cat "$OUT"/students/*/report.md >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
exec "$bin/python" - "$OUT" "$MINIMUM" <<'PYTHON'
import json
import pathlib
import sys

(graded,) = pathlib.Path(sys.argv[1]).glob("students/*/grade.json")
grade = json.loads(graded.read_text(encoding="utf-8"))
share = 100 * grade["points"] / grade["max_points"] if grade["max_points"] else 0.0
passed = grade["outcome"] == "judged" and share >= float(sys.argv[2])
print(f"::{'notice' if passed else 'error'} title=conform::{share:.1f} % of the points, {sys.argv[2]} % are needed")
sys.exit(not passed)
PYTHON
