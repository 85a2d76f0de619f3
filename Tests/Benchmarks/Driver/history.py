# SPDX-License-Identifier: Apache-2.0
"""Durable pushes that replace values, with a history and without one, in turn."""

from load import wrk
from machine import counted
from run import Row, Section, table
from servers import Ubiquity

ACCOUNTS = 64
KINDS = {"on": [], "off": ["--history-days", "0"]}
# What a history has room for: 4 MiB, of which each version takes some 280 bytes.
VERSIONS = 16_000
# With full histories: the numbers of writes in a push.
FULL = 1, 10


def measure(run):
    with run.servers(
        *[lambda options=options: Ubiquity(run.stage, run.program, options)
          for options in KINDS.values()]
    ) as servers:
        targets = [
            run.targets(f"history {kind}", [(one, server.PATH) for one in server.accounts(ACCOUNTS)])
            for kind, server in zip(KINDS, servers)]

        def push(server, target, count, writes=1):
            return counted(server.pid, server.folder, lambda: wrk(
                "push", server.port, target, count, run.seconds, writes=writes))

        for _ in run.rounds:
            for count in 1, 64:
                for kind, server, target in zip(KINDS, servers, targets):
                    run.measure(f"history {kind} {count}", lambda: push(server, target, count))
        if run.is_quick: return
        (server, other), (target, other_target) = servers, targets
        written = 0
        while written < ACCOUNTS * VERSIONS:
            written += 100 * run.seconds * push(server, target, 64, 100)["rate"]
        for _ in run.rounds:
            for writes in FULL:
                run.measure(f"history full {writes}", lambda: push(server, target, 64, writes))
                run.measure(f"history beside {writes}", lambda: push(other, other_target, 64, writes))


def report(run):
    def ratio(count):
        return run.ratio(f"history on {count}", f"history off {count}", "rate")

    rows = [
        Row.at_least("Pushes with a history, 64 connections: rate, to pushes without", 0.85, ratio(64)),
        Row.at_least("Pushes with a history, 1 connection: rate, to pushes without", 0.85, ratio(1)),
    ] + [
        Row.without_goal(
            f"The same with full histories, 64 connections, writes a push: {writes}",
            run.ratio(f"history full {writes}", f"history beside {writes}", "rate"))
        for writes in FULL if not run.is_quick]
    names = [
        (f"history {kind} {count}", f"history {kind}, {count}") for count in (1, 64) for kind in KINDS]
    if not run.is_quick:
        names += [
            (f"history {kind} {writes}", f"history {title}, 64, writes a push: {writes}")
            for writes in FULL for kind, title in (("full", "full"), ("beside", "off"))]
    fields = "rate", "p50", "p99", "cpu", "written", "per_flush"
    return Section("The history", rows, table(
        ["History, connections", "requests/s", "p50, ms", "p99, ms", "CPU, µs", "bytes written",
         "requests a flush"],
        [run.line(name, title, fields) for name, title in names]), [])
