"""Raw lines in, logs that answer at once out: a cluster cleans what three services write, and keeps it by day.

    python examples/spark_pipeline.py shop                                # on this machine
    python examples/spark_pipeline.py /shared/shop --master spark://head:7077

    shop/raw/service=…/*         what the services write, each in its own way; made below if there is none
    shop/logs/batch=…/day=…      the same cleaned and typed, as logs of jitdb, with the indexes that questions need
    shop/table/batch=…/day=…     the same as Parquet, for programs without jitdb
    shop/place                   how far the stream has come

Run it again when the services have written more: it takes in what is new, also from files that were rotated meanwhile.
If it dies, run it again, too: a batch that was not finished is done anew, over what there is of it, so each line counts
once. Needs `pip install 'jitdb[spark]'`.
"""

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from pyspark.sql import functions as F  # noqa: N812

import jitdb
from jitdb.spark_ext import prebuild, read_log, register, session

# --- what is read: a column is null where a service has no such field ------------------------------------------------

FIELDS = {
    "service": "service",  # of the folder's name
    "level": "level", "status": "status",
    "web_user": "remote_user", "user": "user.id", "mail_user": "userId",
    "seconds": "more", "ms": "ms", "took": "took",
    "request": "request", "message": "message", "msg": "msg",
}  # fmt: skip


def raw_lines(spark, root):
    """All that the services write, as a stream. Formats and rotation are jitdb's to know; all is text, but the time."""
    schema = ", ".join(["timestamp TIMESTAMP", *(f"{name} STRING" for name in FIELDS)])
    stream = spark.readStream.format("jitdb").schema(schema).option("columns", json.dumps(FIELDS))
    return stream.option("timestamp", "time,time_local").load(f"{root}/raw")


def cleaned(lines):
    """One table of all services. A line without a time is none of theirs: half a line, or a stranger's."""
    number = F.col("level").try_cast("int")  # as mail writes it
    status = F.col("status").try_cast("int")
    level = (
        F.when((number >= 50) | (status >= 500), "error")
        .when((number >= 40) | (status >= 400), "warn")
        .when(number.isNotNull() | status.isNotNull(), "info")
        .otherwise(F.col("level"))
    )
    took = F.regexp_replace("took", "ms$", "").try_cast("double")
    return lines.where("timestamp IS NOT NULL").select(
        F.date_format("timestamp", "yyyy-MM-dd").alias("day"),
        F.col("timestamp").alias("time"),
        "service",
        level.alias("level"),
        F.coalesce("web_user", "user", "mail_user").alias("user"),
        F.coalesce(F.col("seconds").try_cast("double") * 1000, F.col("ms").try_cast("double"), took).alias("ms"),
        F.coalesce("request", "message", "msg").alias("message"),
    )


# --- what is kept ----------------------------------------------------------------------------------------------------


def keep_fresh(spark, root):
    """Take in what is new. Gives how many batches that took."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # days are those of UTC
    register(spark)
    stream = raw_lines(spark, root).writeStream.option("checkpointLocation", f"{root}/place")
    query = stream.foreachBatch(lambda batch, number: keep(batch, number, root)).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress.numInputRows > 0 for progress in query.recentProgress)


def keep(batch, number, root):
    """What becomes of some lines. Files have the batch's number: done twice, it comes to the same."""
    register(batch.sparkSession)  # in this thread
    events = cleaned(batch).persist()
    events.write.mode("overwrite").partitionBy("day").parquet(f"{root}/table/batch={number}")
    logs = Path(root, "logs", f"batch={number:06d}")
    logs.parent.mkdir(parents=True, exist_ok=True)
    days = events.sort("day", "time", "service", "user").write.format("jitdb").mode("overwrite")
    days.option("partitionBy", "day").save(str(logs))
    for log in sorted(logs.glob("day=*/*.log")):
        prebuild(batch.sparkSession, log, fields=["level", "service", "user"], indexes=["ms"])
    events.unpersist()


# --- what is asked ---------------------------------------------------------------------------------------------------


def report(spark, root):
    """What went wrong, by day and service: the indexes find the errors, Spark counts them."""
    columns = {"day": ("day", "string"), "service": ("service", "string"), "ms": ("ms", "double")}
    errors = read_log(spark, f"{root}/logs", columns, 'level == "error"')
    slowest = F.max("ms").cast("int").alias("slowest_ms")
    return errors.groupBy("day", "service").agg(F.count("*").alias("errors"), slowest).sort("day", "service")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="one that all machines of the cluster share")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    root = Path(options.folder).resolve()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "4"}
    spark = session(options.master, app="pipeline", **quiet)
    if not (root / "raw").exists():
        write_lines(root, DAYS[0])
    keep_fresh(spark, root)
    for day in DAYS[1:]:
        if not any(root.glob(f"logs/*/day={day:%Y-%m-%d}")):
            write_lines(root, day)  # as time goes by
            keep_fresh(spark, root)
    report(spark, root).show()
    with jitdb.open_many(root / "logs") as logs:  # the same files, without Spark
        print(logs.count("user == 'ada' and ms > 1000"), "times ada waited for more than a second")
    spark.stop()


# --- lines to try it with: three days of a shop, whose checkout fails for an hour ------------------------------------

DAYS = [datetime(2026, 11, day, tzinfo=UTC) for day in (19, 20, 21)]
SERVICES = ["web", "checkout", "mail"]
USERS = ["ada", "bo", "cy", "dee", "eve"]


def write_lines(root, day, count=6000):
    """The services write for a day. web begins a new file each day, and checkout goes on with its only one."""
    chance = Random(day.day)
    lines = {name: [] for name in SERVICES}
    for second in sorted(chance.random() * 86_400 for _ in range(count)):
        at = day + timedelta(milliseconds=round(second * 1000))
        name, user = chance.choice(SERVICES), chance.choice(USERS)
        is_bad_hour = name == "checkout" and day == DAYS[1] and at.hour == 14
        failed = chance.random() < (0.8 if is_bad_hour else 0.005)
        ms = round(chance.lognormvariate(4, 1) * (20 if failed else 1), 1)
        lines[name].append(line_of(name, at, user, failed, ms))
        if chance.random() < 0.01:
            lines[name].append(chance.choice(["", "}{", '{"time": "2026-11-20"', "  at pay (pay.js:88)"]))
    for name in SERVICES:
        path = root / "raw" / f"service={name}" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "web" and path.exists():
            path.rename(f"{path}.{day:%Y%m%d}")
        with open(path, "a") as file:
            file.writelines(f"{line}\n" for line in lines[name])


def line_of(name, at, user, failed, ms):
    """Something happened to a user."""
    if name == "web":
        text, status = f"{at:%d/%b/%Y:%H:%M:%S +0000}", 502 if failed else 200
        return f'192.0.2.7 - {user} [{text}] "GET /cart HTTP/1.1" {status} 512 "-" "Mozilla/5.0" {ms / 1000:.4f}'
    if name == "checkout":
        text = "payment timed out" if failed else "paid"
        form = {"time": at.isoformat(timespec="milliseconds"), "level": "error" if failed else "info", "message": text}
        return json.dumps({**form, "user": {"id": user}, "ms": ms})
    form = {"level": 50 if failed else 30, "time": round(at.timestamp() * 1000), "msg": "bounced" if failed else "sent"}
    return json.dumps({**form, "userId": user, "took": f"{ms}ms"})


if __name__ == "__main__":
    main()
