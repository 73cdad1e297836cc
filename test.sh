#!/usr/bin/env sh
# Installs the tested set into .venv and runs every check of the project.
set -eu
cd "$(dirname "$0")"
echo "Installing the tested set into .venv (a few minutes the first time)"
python3 -m venv .venv
# What is imported is compiled once, not all that is installed, and not anew in each program of a test.
unset PYTHONDONTWRITEBYTECODE
.venv/bin/pip install -qq --disable-pip-version-check --upgrade pip  # that of old Pythons takes half as long again
.venv/bin/pip install -qq --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
echo "Checking style"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
echo "Running the tests, and checking types beside them"
types=$(mktemp)
trap 'rm -f "$types"' EXIT
.venv/bin/mypy >"$types" 2>&1 &
mypy=$!
status=0
# Each file in one process: what its tests share is made once. The long ones begin first. Three for two
# cores: programs that tests start are waited for.
.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder "$@" || status=$?
if ! wait "$mypy"; then
    cat "$types"
    status=1
fi
exit "$status"
