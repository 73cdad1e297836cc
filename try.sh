#!/usr/bin/env sh
# Installs tensortrail into .venv, runs the lint on the gallery of examples, and records a program
# that fails on a GPU; here the GPU is simulated.
set -eu
cd "$(dirname "$0")"
echo "Installing tensortrail into .venv (a few minutes the first time)"
python3 -m venv .venv
.venv/bin/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[trace]'
echo "Checking the gallery: tensortrail check examples"
.venv/bin/tensortrail check examples --exit-zero "$@"
echo "Recording a program that fails: tensortrail trace --rehearse cuda"
.venv/bin/tensortrail trace --rehearse cuda examples/run/embedding_left_behind.py || true
