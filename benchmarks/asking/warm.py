"""Questions whose indexes are there: another value, a count of two fields, the newest ten of many."""

from jitdb.operators import and_, count, descending, equal, from_db, paginate, query, to_result, where

from ..measure import Figure, median_ms, median_ms_each
from ..peers import duck, duck_table, js_figures
from ..questions import POST, forget_indexes, indexed, open_big, some_author


def run() -> list[Figure]:
    js = js_figures()
    with indexed() as db:
        author = some_author(db)
        values = iter(f"nothing {number}" for number in range(1000))
        other = median_ms(lambda: db.count(equal("value.content.type", next(values))), 9)
        vote = []
        for _ in range(9):
            with open_big() as fresh:
                fresh.count(POST)
                vote.append(median_ms(lambda fresh=fresh: fresh.count(equal("value.content.type", "vote")), 1))

        def both() -> int:
            return query(
                from_db(db),
                where(and_(equal("value.content.type", "post"), equal("value.author", author))),
                count(),
                to_result(),
            )

        warm = median_ms_each(both)
        sql = f"select count(*) from {duck_table()} where type = 'post' and author = '{author}'"
        assert duck().execute(sql).fetchone()[0] == both()
        duck_warm = median_ms(lambda: duck().execute(sql).fetchone(), 9)

    pages, again = [], []
    for _ in range(9):
        forget_indexes()
        with open_big() as fresh:  # as the JavaScript benchmark does: the first page after the first count
            fresh.count(POST)
            ask = query(from_db(fresh), where(POST), descending(), paginate(10))
            pages.append(median_ms(lambda ask=ask: query(ask, to_result()), 1))
            again.append(median_ms(lambda ask=ask: query(ask, to_result()), 9))
    page_sql = f"select key from {duck_table()} where type = 'post' order by time desc limit 10"
    duck_page = median_ms(lambda: duck().execute(page_sql).fetchall(), 9)
    page, page_again = sorted(pages)[4], sorted(again)[4]
    return [
        Figure("another value of an indexed field, many matches", sorted(vote)[4], "ms", "JavaScript jitdb",
               js.get("second_field_value_ms"), "under 1 ms", "0.2 ms"),
        Figure("another value of an indexed field, no match", other, "ms", "", None, "under 1 ms", "0.2 ms"),
        Figure("warm count of `and` of two fields", warm, "ms", "JavaScript jitdb", js.get("warm_and_count_ms"),
               "under 0.1 ms", "0.03 ms"),
        Figure("warm count of `and` of two fields", warm, "ms", "DuckDB columns", duck_warm),
        Figure("first page, 10 newest of 150,000", page, "ms", "JavaScript jitdb", js.get("first_top10_ms"),
               "under 3 ms", "1 ms"),
        Figure("first page, 10 newest of 150,000", page, "ms", "DuckDB columns (keys only)", duck_page),
        Figure("the same page again, decoded", page_again, "ms", "JavaScript jitdb", js.get("again_top10_ms"),
               "under 0.3 ms", "0.1 ms"),
    ]  # fmt: skip
