#!/usr/bin/env sh
# Installs tensortrail into .venv, runs the lint on the gallery of examples, and records a program
# that fails on a GPU; here the GPU is simulated.
set -eu
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[trace]'
.venv/bin/tensortrail check examples --exit-zero "$@"
.venv/bin/tensortrail trace --rehearse cuda examples/run/embedding_left_behind.py || true
