#!/usr/bin/env sh
# Installs tensortrail into .venv and runs it on the gallery of examples.
set -eu
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
.venv/bin/tensortrail check examples --exit-zero "$@"
