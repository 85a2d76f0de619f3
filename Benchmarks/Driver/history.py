# SPDX-License-Identifier: Apache-2.0
"""Durable pushes that replace values, with a history and without one, in turn."""

from load import wrk
from machine import counted
from run import Row, Section, table
from servers import Ubiquity

ACCOUNTS = 64
KINDS = {"on": [], "off": ["--history-days", "0"]}


def measure(run):
    with run.servers(
        *[lambda options=options: Ubiquity(run.stage, run.program, options)
          for options in KINDS.values()]
    ) as servers:
        targets = [
            run.targets(f"history {kind}", [(one, server.PATH) for one in server.accounts(ACCOUNTS)])
            for kind, server in zip(KINDS, servers)]

        def push(server, target, count):
            return counted(server.pid, server.folder, lambda: wrk(
                "push", server.port, target, count, run.seconds, writes=1))

        for _ in run.rounds:
            for count in 1, 64:
                for kind, server, target in zip(KINDS, servers, targets):
                    run.measure(f"history {kind} {count}", lambda: push(server, target, count))


def report(run):
    def ratio(count):
        return run.ratio(f"history on {count}", f"history off {count}", "rate")

    rows = [
        Row.at_least("Pushes with a history, 64 connections: rate, to pushes without", 0.85, ratio(64)),
        Row.at_least("Pushes with a history, 1 connection: rate, to pushes without", 0.85, ratio(1)),
    ]
    names = [
        (f"history {kind} {count}", f"history {kind}, {count}") for count in (1, 64) for kind in KINDS]
    fields = "rate", "p50", "p99", "cpu", "written", "per_flush"
    return Section("The history", rows, table(
        ["History, connections", "requests/s", "p50, ms", "p99, ms", "CPU, µs", "bytes written",
         "requests a flush"],
        [run.line(name, title, fields) for name, title in names]), [])
