"""Attack relwalk at random and write down what held: strange files, damaged runs, kills, full disks, wrong values.

    python -m tools.campaign --minutes 10                      # what `make campaign` does
    python -m tools.campaign --files 100000 --folders 10000 --kills 100 --record
    python -m tools.campaign --kind files --seed 123456        # one case again, as a failure is printed

A case is a kind and a seed and nothing else. Each kind is one file here and one line of KINDS in kinds.py: it makes
something hostile from a seed, hands it to relwalk, and raises `Fault` when the answer is anything but a good result
or one clear error.
"""
