#!/bin/sh
# The tests on the newest Python that the pinned versions have wheels for, or a line that says why not. Run by
# `make test-newest`. Torch comes from its CPU index or from PIP_FIND_LINKS: that of PyPI brings gigabytes of CUDA along.
set -u
venv=${1:-.venv-newest}
index=${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
torch=$(grep '^torch==' constraints.txt)
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@" 2>/dev/null; }
why=

for minor in 19 18 17 16 15 14 13 12; do
    for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python; do
        "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || continue
        rm -rf "$venv"
        "$python" -m venv "$venv" || continue
        if ! pip install --retries 0 --timeout 15 --no-deps --only-binary :all: --index-url "$index" "$torch"; then
            why="$why 3.$minor: no wheel of $torch in $index or PIP_FIND_LINKS;"
        elif ! pip install --prefer-binary --constraint constraints.txt --editable '.[dev]'; then
            why="$why 3.$minor: the other pinned versions could not be installed;"
        else
            echo "Python 3.$minor"
            exec "$venv/bin/python" -m pytest
        fi
        break
    done
done
rm -rf "$venv"
why=${why:- none runs here;}
echo "relwalk: not tested on a Python later than 3.11:${why%;}."
