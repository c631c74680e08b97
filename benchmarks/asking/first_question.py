"""The first count on an unindexed log: from open to answer, index saved, in a warm process, on two threads."""

from ..measure import Figure, median_ms
from ..peers import TYPE, duck_ndjson, js_figures, sum_of_file
from ..questions import FIVE, POST, forget_indexes, open_big


def first_count() -> int:
    with open_big() as db:
        return db.count(POST)


def five_counts() -> None:
    with open_big() as db:
        db.prepare(*FIVE)


def run() -> list[Figure]:
    first_count()  # kernels
    expected = first_count()
    assert duck_ndjson(f"{TYPE} = 'post'") == expected
    figures = []
    ours = median_ms(first_count, 9, forget_indexes)
    floor = median_ms(sum_of_file, 9)
    duck = median_ms(lambda: duck_ndjson(f"{TYPE} = 'post'"), 5)
    js = js_figures()
    if js:
        assert js["posts"] == expected
        figures.append(
            Figure("first count, index saved", ours, "ms", "JavaScript jitdb", js["cold_count_type_ms"], "8 x", "15 x")
        )
    figures += [
        Figure("first count, index saved", ours, "ms", "DuckDB on NDJSON", duck, "3 x", "6 x"),
        Figure("first count, index saved", ours, "ms", "sum of the mapped file", floor, "", "0.25 x"),
    ]
    five = median_ms(five_counts, 9, forget_indexes)
    again = median_ms(first_count, 9, forget_indexes)
    figures.append(Figure("first question over five fields", five, "ms", "over one", again, "0.71 x", "0.83 x"))
    return figures
