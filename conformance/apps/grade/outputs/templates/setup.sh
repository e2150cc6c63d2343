#!/usr/bin/env bash
# Builds the machine for grading: once, when the autograder is uploaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends bubblewrap ca-certificates

python=""
for version in 3.13 3.12 3.11; do
    if apt-get install --yes --no-install-recommends "python$version" "python$version-venv"; then
        python="python$version"
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup: there is no Python 3.11 or newer here; choose a newer base image" >&2
    exit 1
fi

"$python" -m venv /opt/conformkit
/opt/conformkit/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
    --requirement requirements.txt
rm -rf /var/lib/apt/lists/*
