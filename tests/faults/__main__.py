"""All fault campaigns, in full: python -m tests.faults [--only NAME …] [--cases N] [--seed N] [--jobs N]

Without arguments each campaign runs as many cases as docs/reliability.md tells of, which takes about an hour on two
cores. `--cases` takes fewer or more of each, `--seed` replays one. Ends with the table of that page, and with exit code
1 if anything was lost.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from faults.all_campaigns import CAMPAIGNS  # noqa: E402
from faults.campaign import Outcome, run_campaign  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=[each.name for each in CAMPAIGNS], metavar="NAME")
    parser.add_argument("--cases", type=int, help="so many cases of each")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this case alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    for campaign in CAMPAIGNS:
        if options.only and campaign.name not in options.only:
            continue
        count = campaign.full if options.cases is None else options.cases
        seeds = range(options.first, options.first + count) if options.seed is None else [options.seed]
        print(f"{campaign.name}: {len(seeds):,} cases …", flush=True)
        outcome = outcomes[campaign.name] = run_campaign(campaign, seeds, options.jobs if options.seed is None else 1)
        print(f"  {outcome.faults:,} faults in {outcome.seconds:.0f} s, {len(outcome.failed)} failed", flush=True)
    print("\n| campaign | cases | faults | failed | seconds |\n| --- | --- | --- | --- | --- |")
    for name, outcome in outcomes.items():
        failed = ", ".join(map(str, outcome.failed)) or "0"
        print(f"| {name} | {outcome.cases:,} | {outcome.faults:,} | {failed} | {outcome.seconds:.0f} |")
    return 1 if any(outcome.failed for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
