# SPDX-License-Identifier: Apache-2.0
"""Servers with few and with many accounts."""

import contextlib, hashlib, os, sqlite3, time

from load import wrk
from machine import counted, memory
from plot import Linear, Logarithmic, line_chart
from run import Picture, Row, Section, note, table
from servers import Ubiquity

KEYS, CONNECTIONS = 10, 64
# That of an account in a folder that was filled; load.lua makes it too.
CREDENTIAL = "ubd_%043d"


def numbers(run):
    return [1_000, 100_000] if run.is_quick else [1_000, 10_000, 100_000, 1_000_000]


def sha256(text):
    return hashlib.sha256(text.encode())


def fill(run, data, count):
    """Makes a data folder with many accounts, each with one device and one store: the rows of an account
    that a server made, again and again under other names.
    """
    with Ubiquity(run.stage, run.program, data=data) as server:
        server.push(server.account("account-0"), {f"key-{key}": f"value {key:08d}" for key in range(KEYS)})
    file = os.path.join(data, "ubiquity.sqlite")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        execute = database.execute
        for setting in "journal_mode = OFF", "synchronous = OFF", "cache_size = -400000":
            execute("PRAGMA " + setting)
        execute("BEGIN")
        execute("UPDATE device SET credential = ?", [sha256(CREDENTIAL % 0).digest()])
        # Random names, as real ones are.
        execute("CREATE TEMP TABLE new (n INTEGER PRIMARY KEY, account, credential)")
        database.executemany("INSERT INTO new VALUES (?, ?, ?)", (
            (n, sha256(f"account {n}").hexdigest(), sha256(CREDENTIAL % n).digest())
            for n in range(1, count)))
        changes = {
            "account": {"id": "substr(new.account, 1, length(id))", "name": "'account-' || n"},
            "device": {
                "account": "substr(new.account, 1, length(old.account))", "credential": "new.credential"},
            "store": {"account": "substr(new.account, 1, length(old.account))", "id": "id + n"},
        }
        for (table_name,) in execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            columns = [row[1] for row in execute(f"PRAGMA main.table_info({table_name})")]
            change = changes.get(table_name, {"store": "store + n"} if "store" in columns else None)
            if change is None: continue
            execute(f"CREATE TEMP TABLE old AS SELECT * FROM main.{table_name}")
            selected = ", ".join(change.get(column, f"old.{column}") for column in columns)
            execute(f"INSERT INTO main.{table_name} SELECT {selected} FROM new CROSS JOIN old")
            execute("DROP TABLE old")
        execute("COMMIT")
        execute("PRAGMA journal_mode = WAL")
    # What is written now is not written while the server is measured.
    with open(file, "rb") as database: os.fsync(database.fileno())
    return os.path.getsize(file)


def started(run, data):
    """A server of a folder that was filled, and how long its start took."""
    begin = time.monotonic()
    server = Ubiquity(run.stage, run.program, data=data)
    return server, (time.monotonic() - begin) * 1000


def measure(run):
    servers = {}
    with contextlib.ExitStack() as stack:
        for count in numbers(run):
            data = os.path.join(run.stage, f"accounts-{count}")
            try:
                size = fill(run, data, count)
                server, milliseconds = started(run, data)
            except Exception as error:
                run.fail(f"{count:,} accounts", error)
                continue
            note(f"A folder of {count:,} accounts has been filled.")
            stack.callback(server.stop)
            targets = run.targets(f"targets-{count}", [(CREDENTIAL, f"{server.PATH} {count}")])
            servers[count] = server, targets, {"size": size / 1e6, "start": milliseconds}
        for _ in run.rounds:
            for count, (server, targets, facts) in servers.items():
                def push():
                    result = counted(server.pid, server.folder, lambda: wrk(
                        "push", server.port, targets, CONNECTIONS, run.seconds))
                    return {**result, **facts, "memory": memory(server.pid) / 1e6}
                run.measure(f"{count:,} accounts", push)


def report(run):
    few, many = (f"{count:,} accounts" for count in (numbers(run)[0], numbers(run)[-1]))
    rows = [
        Row.at_least(f"{many}: rate of pushes, to {few}", 0.6, run.ratio(many, few, "rate")),
        Row.without_goal(f"{many}: p99 of pushes, to {few}", run.ratio(many, few, "p99")),
    ]

    throughput = [
        (count, figure.median, figure.least, figure.greatest) for count in numbers(run)
        if (figure := run.median(f"{count:,} accounts", "rate"))]
    picture = Picture("accounts", "Pushes by accounts", line_chart(
        f"Durable pushes a second, {CONNECTIONS} connections", "accounts with 10 keys each", "a second",
        {"Ubiquity": throughput}, lambda values: Logarithmic(values, numbers(run)), Linear))
    fields = "rate", "p50", "p99", "cpu", "per_flush", "size", "memory", "start"
    return Section("Many accounts", rows, table(
        ["Accounts", "pushes/s", "p50, ms", "p99, ms", "CPU, µs", "pushes a flush", "database, MB",
         "memory, MB", "start, ms"],
        [run.line(f"{count:,} accounts", f"{count:,}", fields) for count in numbers(run)]), [picture])
