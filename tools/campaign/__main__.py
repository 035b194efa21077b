"""`python -m tools.campaign`: one thread for each process, said before torch and polars are there."""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "RAYON_NUM_THREADS": "1"}

from tools.campaign.command_line import main

if __name__ == "__main__":
    main()
