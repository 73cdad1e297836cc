#!/usr/bin/env sh
# Installs tensortrail into .venv, checks the gallery of examples, and runs the demo: a program that
# fails on a simulated GPU is explained, mended, and runs. Without NumPy, torch begins with a warning.
set -eu
cd "$(dirname "$0")"
echo "Installing tensortrail into .venv (a few minutes the first time)"
python3 -m venv .venv
.venv/bin/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[trace]' numpy
echo "Checking the gallery: tensortrail check examples"
.venv/bin/tensortrail check examples --exit-zero "$@"
echo "Running the demo: tensortrail demo"
exec .venv/bin/tensortrail demo "$(mktemp -d)/demo"
