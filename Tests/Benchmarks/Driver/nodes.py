# SPDX-License-Identifier: Apache-2.0
"""Servers that share a PostgreSQL database, beside SQLite and beside the same transaction by pgbench."""

import contextlib, os, re, subprocess, threading

from accounts import CREDENTIAL, KEYS
from latency import PushToEvent, durations
from load import wrk
from machine import Process
from plot import Linear, line_chart
from run import Picture, Row, Section, distribution, note, table
from servers import Node, Postgres, Trouble, Ubiquity

NODES = [1, 2, 3]
CONNECTIONS = ACCOUNTS = 192
# Transactions that a node has under way at once: half of its --database-connections.
LANES = 4
IDENTIFIER = Ubiquity.STORE


def pinning():
    """The database has a core of its own, if there are at least two; everything else shares the others."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2: return [], []
    return ["taskset", "-c", str(cores[0])], ["taskset", "-c", ",".join(map(str, cores[1:]))]


def at_once(functions):
    """The results of functions that run at the same time."""
    results = [None] * len(functions)

    def call(index):
        try:
            results[index] = functions[index]()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=call, args=[index]) for index in range(len(functions))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for result in results:
        if isinstance(result, Exception): raise result
    return results


def loaded(run, nodes, targets, connections, pinned, **options):
    """A load on some nodes at once, each with its share of the connections and accounts."""
    before = [(Process(node.pid), node.metrics()) for node in nodes]
    results = at_once([
        lambda node=node, file=file: wrk(
            "push", node.port, file, connections // len(nodes), run.seconds, pinned=pinned, **options)
        for node, file in zip(nodes, targets)])
    after = [(Process(node.pid), node.metrics()) for node in nodes]
    requests = sum(result["requests"] for result in results)

    def grown(name):
        return sum(new.get(name, 0) - old.get(name, 0) for (_, old), (_, new) in zip(before, after))

    return {
        "requests": requests, "rate": sum(result["rate"] for result in results),
        "p50": max(result["p50"] for result in results), "p99": max(result["p99"] for result in results),
        "group": grown("ubiquity_commit_pushes_sum") / max(1, grown("ubiquity_commit_pushes_count")),
        "cpu": sum(
            new.microseconds - old.microseconds for (old, _), (new, _) in zip(before, after)) / requests}


# MARK: The same by pgbench

ACCOUNT = "lpad(s::text, 26, '0')"


def fill_peer(database):
    """As many accounts as the nodes have, each with a store of as many keys as load.lua writes."""
    database.sql(f"""
        INSERT INTO ubiquity.store (account, identifier, number, revision, newest, head)
            SELECT {ACCOUNT}, '{IDENTIFIER}', s, 1, 1, decode(repeat('ab', 60), 'hex')
            FROM generate_series(0, {ACCOUNTS - 1}) s;
        INSERT INTO ubiquity.record
            (account, store, key, time, device, revision, committed, value, digest)
            SELECT {ACCOUNT}, s, convert_to('key-' || k, 'UTF8'), 1, 2, 1, 1,
                decode(repeat('cd', 18), 'hex'), 3
            FROM generate_series(0, {ACCOUNTS - 1}) s, generate_series(1, 21) k;
        """, "peer")
    database.sql("VACUUM ANALYZE", "peer")


def script(group, clients):
    """Begin, lock, upsert, store rows, commit, in two flights. Each client has accounts of its own, and
    each row of a group is another account's.
    """
    own = max(1, ACCOUNTS // clients)
    group = min(group, own)
    share = own // group
    lines = ["\\set revision random(2, 1000000000)"]
    for index in range(group):
        lines.append(f"\\set s{index} :client_id * {own} + {index * share} + random(0, {share - 1})")
        lines.append(f"\\set k{index} random(1, 21)")
    stores = "array[" + ", ".join(f":s{index}" for index in range(group)) + "]::bigint[]"
    keys = "array[" + ", ".join(f":k{index}" for index in range(group)) + "]::int[]"
    lines += ["\\startpipeline", "BEGIN;", f"""
        SELECT st.number, st.revision, st.newest, st.head
        FROM unnest({stores}) s JOIN ubiquity.store st
            ON st.account = {ACCOUNT} AND st.identifier = '{IDENTIFIER}'
        ORDER BY st.account, st.identifier FOR UPDATE OF st;""", "\\endpipeline", "\\startpipeline", f"""
        UPDATE ubiquity.store st SET revision = st.revision + 1, newest = :revision,
            head = decode(repeat('ab', 60), 'hex')
        FROM unnest({stores}) s
        WHERE st.account = {ACCOUNT} AND st.identifier = '{IDENTIFIER}';""", f"""
        INSERT INTO ubiquity.record
            (account, store, key, time, device, revision, committed, value, digest)
        SELECT {ACCOUNT}, s, convert_to('key-' || k, 'UTF8'), :revision, 2, :revision, 1,
            decode(repeat('cd', 18), 'hex'), 3
        FROM unnest({stores}, {keys}) u (s, k)
        ON CONFLICT (account, store, key) DO UPDATE SET
            time = excluded.time, device = excluded.device, revision = excluded.revision,
            committed = excluded.committed, value = excluded.value, digest = excluded.digest;""",
        "COMMIT;", "\\endpipeline"]
    # pgbench ends a statement where a line ends with a semicolon.
    return "\n".join(" ".join(line.split()) for line in lines), group


def pgbench(run, database, group, clients, pinned):
    text, group = script(group, clients)
    path = os.path.join(run.stage, "pgbench.sql")
    with open(path, "w") as file: file.write(text + "\n")
    done = subprocess.run(
        [*pinned, os.path.join(database.programs, "pgbench"), "-n", "-h", "127.0.0.1", "-p",
         str(database.port), "-U", "benchmark", "-d", "peer", "-M", "prepared", "-c", str(clients), "-j", "1",
         "-T", str(run.seconds), "-f", path], capture_output=True, text=True)
    found = re.search(r"^tps = ([\d.]+)", done.stdout, re.M)
    if done.returncode or not found: raise Trouble(f"pgbench: {done.stderr[-300:]}")
    return {"rate": float(found[1]) * group, "group": group, "clients": clients}


# MARK: Many accounts

def numbers(run):
    return [1_000, 10_000] if run.is_quick else [1_000, 1_000_000]


def fill(run, database, count):
    """A database with many accounts, each with one device and one store: the rows of an account that a
    server made, again and again under other names. Those are random, as real ones are.
    """
    name = f"accounts-{count}"
    url = database.create(name, run.program)
    with Node(run.stage, run.program, url) as node:
        node.push(node.account("account-0"), {f"key-{key}": f"value {key:08d}" for key in range(KEYS)})
    changes = {
        "account": {"id": "new.account", "name": "'account-' || n"},
        "device": {"account": "new.account", "credential": "new.credential"},
        "store": {"account": "new.account", "number": "old.number + n"},
        "record": {"account": "new.account", "store": "old.store + n"},
    }
    credential = CREDENTIAL.split("%")[0]
    columns = {
        table_name: database.sql(
            "SELECT string_agg(column_name, ',') FROM information_schema.columns "
            f"WHERE table_schema = 'ubiquity' AND table_name = '{table_name}'", name).strip().split(",")
        for table_name in changes}
    statements = [
        "SET synchronous_commit = off", "SET work_mem = '256MB'", "SET maintenance_work_mem = '512MB'",
        f"UPDATE ubiquity.device SET credential = sha256('{CREDENTIAL % 0}')",
        f"""CREATE TEMP TABLE new AS
            SELECT n, substr(encode(sha256(('account ' || n)::bytea), 'hex'), 1,
                    (SELECT length(id) FROM ubiquity.account)) AS account,
                sha256(('{credential}' || lpad(n::text, 43, '0'))::bytea) AS credential
            FROM generate_series(1, {count - 1}) n ORDER BY 2""",
        f"UPDATE ubiquity.directory SET accounts = {count}"]
    for table_name, change in changes.items():
        selected = ", ".join(change.get(column, f"old.{column}") for column in columns[table_name])
        statements += [
            f"CREATE TEMP TABLE old_{table_name} AS SELECT * FROM ubiquity.{table_name}",
            f"INSERT INTO ubiquity.{table_name} ({', '.join(columns[table_name])}) "
            f"SELECT {selected} FROM new CROSS JOIN old_{table_name} old"]
    database.sql("; ".join(statements), name)
    database.sql("VACUUM ANALYZE", name)
    database.sql("CHECKPOINT", name)
    size = int(database.sql("SELECT pg_database_size(current_database())", name))
    empty = int(database.sql("SELECT pg_database_size('template1')", name))
    return url, {"size": size / 1e6, "bytes": (size - empty) / count}


# MARK: The part

def measure(run):
    apart, others = pinning()
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(Postgres(run.stage, apart))
        url = database.create("nodes", run.program)
        database.create("peer", run.program)
        fill_peer(database)
        nodes = [stack.enter_context(Node(run.stage, run.program, url, pinned=others)) for _ in NODES]
        note("Three nodes are running.")
        credentials = nodes[0].accounts(ACCOUNTS)
        sqlite = stack.enter_context(Ubiquity(run.stage, run.program))
        embedded = run.targets("sqlite", [(one, sqlite.PATH) for one in sqlite.accounts(ACCOUNTS)])
        # Each node has accounts of its own.
        targets = {
            count: [
                run.targets(f"node-{count}-{index}", [(one, sqlite.PATH) for one in credentials[index::count]])
                for index in range(count)]
            for count in NODES}
        own, sent = nodes[0].account("pair"), 0
        databases = {}
        for count in numbers(run):
            try:
                url, facts = fill(run, database, count)
            except Exception as error:
                run.fail(f"{count:,} accounts on a node", error)
                continue
            note(f"A database of {count:,} accounts has been filled.")
            node = stack.enter_context(Node(run.stage, run.program, url, pinned=others))
            databases[count] = node, [run.targets(
                f"node-targets-{count}", [(CREDENTIAL, f"{node.PATH} {count}")])], facts
        for _ in run.rounds:
            for count in NODES:
                result = run.measure(f"nodes {count}", lambda: loaded(
                    run, nodes[:count], targets[count], CONNECTIONS, others))
                group = max(1, round(result["group"])) if result else 16
                run.measure(f"pgbench {count}", lambda: pgbench(
                    run, database, group, count * LANES, others))
            # Groups of one: each account has a connection.
            run.measure("alone", lambda: loaded(run, nodes[:1], targets[1], LANES, others))
            run.measure("pgbench alone", lambda: pgbench(run, database, 1, LANES, others))
            run.measure("ten", lambda: loaded(run, nodes[:1], targets[1], CONNECTIONS, others, writes=10))
            run.measure("sqlite", lambda: wrk("push", sqlite.port, embedded, CONNECTIONS, run.seconds))

            # An idle connection would have been closed meanwhile.
            pair = PushToEvent(nodes[0], own, nodes[1])

            def across(pause):
                nonlocal sent
                count = 100 if pause else 500
                sent += count
                return distribution(durations(pair, count, pause, sent))

            run.measure("across", lambda: across(0))
            run.measure("across, 20 ms", lambda: across(0.02))
            for count, (node, file, facts) in databases.items():
                run.measure(f"{count:,} accounts on a node", lambda: {
                    **loaded(run, [node], file, CONNECTIONS, others), **facts})


def report(run):
    few, many = (f"{count:,} accounts" for count in (numbers(run)[0], numbers(run)[-1]))
    rows = [
        Row.at_least(
            f"{count} node{'s' if count > 1 else ''} on PostgreSQL: rows a second, to pgbench's", 0.35,
            run.ratio(f"nodes {count}", f"pgbench {count}", "rate"))
        for count in NODES]
    rows += [
        Row.without_goal(
            "Grouping: rate of a node with 192 connections, to 4", run.ratio("nodes 1", "alone", "rate")),
        Row.at_least(
            f"{many} on PostgreSQL: rate of pushes, to {few}", 0.6,
            run.ratio(f"{many} on a node", f"{few} on a node", "rate")),
    ]
    names = [(f"nodes {count}", f"{count} node{'s' if count > 1 else ''}") for count in NODES] + [
        (f"pgbench {count}", f"pgbench, {count * LANES} clients") for count in NODES] + [
        ("alone", f"1 node, {LANES} connections"), ("pgbench alone", f"pgbench, {LANES} clients, one by one"),
        ("ten", "1 node, 10 writes a push"), ("sqlite", "SQLite")]
    fields = "rate", "group", "p50", "p99", "cpu"

    def line(name, title):
        present = set(run.results.get(name, [{}])[0])
        if not present: return run.line(name, title, fields)
        return run.line(name, title, [field if field in present else "none" for field in fields])

    for results in run.results.values():
        for result in results: result.setdefault("none", None)
    rates = {
        title: [
            (count, figure.median, figure.least, figure.greatest) for count in NODES
            if (figure := run.median(f"{name} {count}", "rate"))]
        for name, title in (("nodes", "Ubiquity"), ("pgbench", "pgbench"))}
    picture = Picture("nodes", "Pushes by nodes", line_chart(
        f"Durable pushes a second, {CONNECTIONS} connections", "nodes on one PostgreSQL", "a second", rates,
        Linear, Linear))
    return Section("Nodes on PostgreSQL", rows, "\n\n".join([
        table(["System", "rows/s", "rows in a group", "p50, ms", "p99, ms", "CPU of the nodes, µs"],
              [line(*name) for name in names]),
        run.durations([
            ("across", "Push on one node to event on another, one after the other"),
            ("across, 20 ms", "the same, 20 ms apart")]),
        table(["Accounts on PostgreSQL", "pushes/s", "p50, ms", "p99, ms", "database, MB", "bytes an account"],
              [run.line(f"{count:,} accounts on a node", f"{count:,}", ("rate", "p50", "p99", "size", "bytes"))
               for count in numbers(run)])]), [picture])
