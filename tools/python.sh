#!/bin/sh
# Which Python to build an environment with: $PYTHON, or the first of 3.11 and later that runs and can build one.
# Prints its name, or says in one line what is missing. A name on the PATH may still not run: each is tried.
set -u
names="python3.11 python3.12 python3.13 python3.14 python3 python"

is_new() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has() { "$1" -c "import $2" >/dev/null 2>&1; }
fail() {
    echo "relwalk: $1 Or name another one: make PYTHON=/path/to/python" >&2
    exit 1
}

partly=
if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- $names; fi
for python; do
    is_new "$python" || continue
    has "$python" venv && has "$python" ensurepip && echo "$python" && exit 0
    partly=${partly:-$python}
done
[ -n "$partly" ] || fail "found no Python 3.11 or later that runs (tried $*). Install one."
has "$partly" venv || fail "$partly has no module venv. Install it (Debian and Ubuntu: apt install python3-venv)."
fail "$partly has no pip to put into an environment. Install it (Debian and Ubuntu: apt install python3-venv)."
