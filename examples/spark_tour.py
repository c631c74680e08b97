"""What Spark does for a log: build its indexes, read it as a table, follow it, write one. Needs jitdb[spark].

    python examples/spark_tour.py

Spark says a few lines of its own when it starts, on standard error.
"""

import shutil
import tempfile
from pathlib import Path

import jitdb
from jitdb.operators import field
from jitdb.spark_ext import explain_log, prebuild, read_log, session

FIXTURE = Path(__file__).parent.parent / "tests" / "data" / "ssb-5k.bipf"


def main(folder: Path) -> None:
    path = str(shutil.copy(FIXTURE, folder / "ssb.log"))
    posts = field("value.content.type") == "post"
    spark = session("local[2]", **{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})

    # The workers build the index files; the local engine answers from them.
    print(prebuild(spark, path, operations=[posts], fields=["value.author"]))
    with jitdb.open(path, read_only=True) as db:
        print(f"\n{db.explain(posts)['scan_bytes']} bytes are left to scan for {db.count(posts):,} posts")

    # A table: a row a record. With fresh indexes only the blocks that hold answers are read.
    print(explain_log(path, where="value.sequence > 380"))
    table = read_log(spark, path, {"author": "value.author", "text": "value.content.text"}, posts)
    table.createOrReplaceTempView("posts")
    spark.sql(
        "SELECT substr(author, 1, 9) AS who, count(*) AS posts, max(length(text)) AS longest "
        "FROM posts GROUP BY author ORDER BY posts DESC, who LIMIT 3"
    ).show()

    # A stream: every record once; the next run goes on from where the checkpoint says.
    stream = spark.readStream.format("jitdb").schema("seq BIGINT, `value.author` STRING").load(path)
    sink = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "place"))
    sink.trigger(availableNow=True).start(str(folder / "seen")).awaitTermination()
    print(f"{spark.read.parquet(str(folder / 'seen')).count():,} records came\n")

    # A table becomes a log, which opens like any other.
    table.write.format("jitdb").mode("append").save(str(folder / "posts.log"))
    with jitdb.open(folder / "posts.log", read_only=True) as db:
        latest = db.count(field("text").starts_with("LATESTMSG"))
        print(f"{latest:,} of {db.count():,} posts written is the latest")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
