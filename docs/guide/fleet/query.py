#!/usr/bin/env python3
"""Runs a query over the tables of `tdtool export --parquet`: CSV on standard output, the same from every engine."""

import argparse
import atexit
import csv
import decimal
import glob
import os
import sys
import time

TABLES = ["windows", "nodes", "functions", "blocks", "counts"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="folder of tdtool export --parquet")
    parser.add_argument("query", nargs="+", help="files with one SELECT each")
    parser.add_argument("--engine", choices=ENGINES, default="duckdb")
    parser.add_argument("--date", default="*", help="only this day, as 2026-12-01")
    parser.add_argument("--workers", type=int, default=2, help="spark: threads or processes (default 2)")
    parser.add_argument("--processes", action="store_true", help="spark: master and workers as processes on loopback")
    parser.add_argument("--memory", default="4g", help="duckdb, spark: memory limit (default 4g)")
    parser.add_argument("--times", action="store_true", help="print each query's seconds on standard error")
    return parser.parse_args()


def pattern(folder, table, date):
    return os.path.join(glob.escape(os.path.abspath(folder)), table, f"date={date}", "*", "*.parquet")


def duckdb(args):
    import duckdb as engine

    connection = engine.connect()
    connection.execute(f"SET memory_limit = '{args.memory}B'".replace("gB", "GB"))
    connection.execute("SET threads = 2")
    for table in TABLES:
        path = pattern(args.folder, table, args.date).replace("'", "''")
        source = f"read_parquet('{path}', hive_partitioning = false)"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {source}")

    def run(sql):
        done = connection.execute(sql)
        return [column[0] for column in done.description], done.fetchall()

    return run, connection.close


def arrow(frame):
    """Names and rows of a frame of DataFusion or Ballista."""
    table = frame.to_arrow_table()
    return table.column_names, list(zip(*(column.to_pylist() for column in table.columns)))


def register(context, args):
    for table in TABLES:
        top = os.path.join(os.path.abspath(args.folder), table)
        days = [top] if args.date == "*" else [os.path.join(top, f"date={args.date}")]
        # The folders' names are no columns: files have them all.
        context.register_parquet(table, days[0] + "/")


def datafusion(args):
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(2)
    config = config.set("datafusion.execution.listing_table_ignore_subdirectory", "false")
    context = SessionContext(config)
    register(context, args)
    return lambda sql: arrow(context.sql(sql)), lambda: None


def ballista(args):
    from ballista import BallistaSessionContext

    address = os.environ.get("BALLISTA_SCHEDULER", "df://localhost:50050")
    context = BallistaSessionContext(address=address)
    register(context, args)
    return lambda sql: arrow(context.sql(sql)), lambda: None


def spark(args):
    from pyspark.sql import SparkSession

    master = spark_processes(args) if args.processes else f"local[{args.workers}]"
    session = (
        SparkSession.builder.master(master)
        .appName("tdtool fleet")
        .config("spark.driver.memory", args.memory)
        .config("spark.executor.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(4 * args.workers))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for table in TABLES:
        paths = pattern(args.folder, table, args.date)
        one = glob.glob(paths)[:1]
        frame = session.read.schema(session.read.parquet(*one).schema)
        frame = frame.option("recursiveFileLookup", "true")
        top = os.path.join(os.path.abspath(args.folder), table)
        frame = frame.parquet(top if args.date == "*" else os.path.join(top, f"date={args.date}"))
        frame.createOrReplaceTempView(table)

    def run(sql):
        frame = session.sql(sql)
        return frame.columns, [tuple(row) for row in frame.collect()]

    return run, session.stop


def spark_processes(args):
    """A master and workers on loopback, which end with this process."""
    import socket
    import subprocess

    import pyspark

    home = os.path.dirname(pyspark.__file__)
    environment = dict(os.environ, SPARK_HOME=home, SPARK_LOCAL_IP="127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"

    def end(process):
        process.terminate()
        process.wait()

    def start(*words):
        command = [os.path.join(home, "bin", "spark-class"), *words]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
        # Whatever fails afterwards; the last one first.
        atexit.register(end, process)

    name = "org.apache.spark.deploy."
    start(name + "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    for _ in range(args.workers):
        worker = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", master]
        start(name + "worker.Worker", *worker)
    return master


ENGINES = {"duckdb": duckdb, "datafusion": datafusion, "spark": spark, "ballista": ballista}


def shown(value):
    """A value as CSV has it: no engine's -0, decimals as numbers, nothing for null."""
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == int(value) else float(value)
    if isinstance(value, float):
        return repr(value + 0.0)
    return "" if value is None else value


def main():
    args = arguments()
    if not any(glob.glob(pattern(args.folder, table, args.date)) for table in TABLES):
        sys.exit(f"error: {args.folder} has no tables for date={args.date}\ntry:   tdtool export --parquet FOLDER FILE")
    try:
        run, close = ENGINES[args.engine](args)
    except ModuleNotFoundError as absent:
        sys.exit(f"error: {absent.name} is not installed\ntry:   python3 -m pip install {absent.name}")
    out = csv.writer(sys.stdout, lineterminator="\n")
    try:
        for path in args.query:
            begin = time.monotonic()
            with open(path, encoding="utf-8") as file:
                names, rows = run(file.read())
            if args.times:
                print(f"{args.engine} {os.path.basename(path)} {time.monotonic() - begin:.2f} s", file=sys.stderr)
            out.writerow(names)
            out.writerows([shown(value) for value in row] for row in rows)
    finally:
        close()


if __name__ == "__main__":
    main()
