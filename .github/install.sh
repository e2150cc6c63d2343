#!/usr/bin/env bash
# Install what the judged code imports, next to the kit. Arguments: the folder of `pip`. Environment: INSTALL, POLICY, IMPL.
#
# By default, without a policy, these are the dependencies that the pyproject.toml of IMPL lists, as wheels: that runs no code
# of theirs here. INSTALL may be what pip takes (`.`, `-r requirements.txt`), which may run code, or none.
set -euo pipefail
bin=$1

if [ "$INSTALL" = none ] || { [ "$INSTALL" = auto ] && [ -n "$POLICY" ]; }; then
    exit 0
fi
if [ "$INSTALL" != auto ]; then
    read -r -a words <<<"$INSTALL"
    exec "$bin/pip" install "${words[@]}"
fi
needed=$("$bin/python" - "$IMPL" <<'PYTHON'
import pathlib
import sys
import tomllib

place, here = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path.cwd().resolve()
for folder in (place, *place.parents):
    file = folder / "pyproject.toml"
    if file.is_file() and folder.is_relative_to(here):
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        print(*project.get("dependencies", ()), sep="\n")
        break
PYTHON
)
if [ -n "$needed" ]; then
    printf '%s\n' "$needed" >"${RUNNER_TEMP:-/tmp}/needed.txt"
    exec "$bin/pip" install --only-binary :all: -r "${RUNNER_TEMP:-/tmp}/needed.txt"
fi
