"""Prints the cost of a month by team as CSV. The team of a key is in its metadata: {"team": "web"}.

    python3 cost-by-team.py 2026-11
"""

import calendar
import json
import os
import sys
import urllib.parse
import urllib.request
from collections import defaultdict
from decimal import Decimal


def rows(path, **query):
    """All rows of all pages. Amounts are read as decimals, because a float cannot hold every nanodollar."""
    while True:
        url = f"{os.environ['TOLLGATE_URL']}{path}?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(
            url, headers={"authorization": f"Bearer {os.environ['TOLLGATE_ADMIN_KEY']}"}
        )
        with urllib.request.urlopen(request) as response:
            page = json.load(response, parse_float=Decimal)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["after"] = page["next"]


month = sys.argv[1]
year, number = map(int, month.split("-"))
last = calendar.monthrange(year, number)[1]

team_of = {key["id"]: key["metadata"].get("team", "none") for key in rows("/v1/keys", limit=1000)}
cost = defaultdict(Decimal)
for row in rows("/v1/usage", group_by="key", start=f"{month}-01", end=f"{month}-{last}"):
    cost[team_of.get(row["key"], "none")] += row["cost_usd"]

print("team,cost_usd")
for team, amount in sorted(cost.items(), key=lambda pair: -pair[1]):
    print(f"{team},{amount:f}")
