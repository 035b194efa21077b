#!/bin/sh
# The main job on the embedded graph: learn it, judge it, ask it. Run by `make demo`.
set -e
say() {
    printf '\n$ '
    for word in "$@"; do case $word in *' '*) printf '"%s" ' "$word" ;; *) printf '%s ' "$word" ;; esac; done
    printf '\n'
    "$@"
}

say relwalk train world --dim 64 --epochs 60 --out runs/world --force
say relwalk evaluate runs/world --by-relation
say relwalk predict runs/world --head Austria --relation borders -k 5
say relwalk predict runs/world --head Kyoto --relation near --only-new -k 3
say relwalk predict runs/world --head Lyon --relation near --only-new -k 3
say relwalk predict runs/world --head Peru --relation speaks -k 3
say relwalk predict runs/world --head France --tail Spain -k 2
say relwalk report runs/world --force

cat <<'NEXT'

The run is in runs/world, its page in runs/world/report.html. Try next:
  relwalk predict runs/world --relation capital_of --tail Portugal
  relwalk predict runs/world --head "Hong Kong" --relation uses_currency
  relwalk evaluate runs/world --candidates argument
  relwalk discover runs/world -k 20
  relwalk classify runs/world
  relwalk analyse runs/world
  relwalk export runs/world vectors.npz
  relwalk info world
  relwalk train your-graph.tsv
(relwalk is in .venv/bin; activate it with `. .venv/bin/activate`)

Look at it in the browser, and judge what it predicts:
  relwalk serve runs/world --open
NEXT
