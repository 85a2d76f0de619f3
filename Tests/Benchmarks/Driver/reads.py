# SPDX-License-Identifier: Apache-2.0
"""Stores that are read: unchanged, and whole."""

from load import wrk
from machine import counted
from run import Row, Section, table
from servers import Ubiquity

ACCOUNTS, FULL = 64, 16
FORMS = {"JSON": "application/json", "binary": "application/x-protobuf"}


def full_store():
    """1,024 keys, and 1 MiB of text of 256 to 1,792 bytes."""
    return {
        f"setting.{index}": f"{index} ".ljust([256, 768, 1280, 1792][index % 4], "x")
        for index in range(1024)}


def small_store():
    """424 keys, some 50 kB in JSON."""
    return {f"setting.{index}": f"value {index:08d}" for index in range(424)}


def measure(run):
    with run.servers(lambda: Ubiquity(run.stage, run.program)) as (server,):
        small, full = server.accounts(ACCOUNTS), server.accounts(FULL, "full")
        middle = server.accounts(ACCOUNTS, "middle")
        for one in middle: server.push(one, small_store())
        for one in small: server.push(one, {f"key-{key}": "value" for key in range(16)})
        for one in full: server.push(one, full_store())
        unchanged = run.targets(
            "unchanged", [(one, f"{server.PATH}?since={server.cursor(one)}") for one in small])
        whole = run.targets("whole", [(one, server.PATH) for one in full])
        middle = run.targets("middle", [(one, server.PATH) for one in middle])

        def get(targets, connections, accept):
            return counted(server.pid, server.folder, lambda: wrk(
                "get", server.port, targets, connections, run.seconds, accept=accept))

        for _ in run.rounds:
            run.measure("unchanged", lambda: get(unchanged, 64, FORMS["JSON"]))
            run.measure("health", lambda: get(
                run.targets("health", [("-", "/health/live")] * 2), 64, FORMS["JSON"]))
            run.measure("424 keys", lambda: get(middle, 64, FORMS["JSON"]))
            for form, accept in FORMS.items():
                run.measure(f"whole, {form}", lambda: get(whole, FULL, accept))


def report(run):
    rows = [
        Row.at_least(
            "Reads of an unchanged store, 64 connections: rate, to a route that does nothing", 0.6,
            run.ratio("unchanged", "health", "rate")),
        Row.without_goal(
            "Whole store of 1,024 keys and 1 MiB: rate in binary, to JSON",
            run.ratio("whole, binary", "whole, JSON", "rate"))]
    names = {
        "unchanged": "unchanged store, 64 connections", "health": "`/health/live`, 64 connections",
        "424 keys": "whole store of 424 keys in JSON, 64 connections"}
    for form in FORMS:
        names[f"whole, {form}"] = f"whole store of 1,024 keys in {form}, {FULL} connections"
    fields = "rate", "megabytes", "p50", "p99", "cpu", "switches"
    return Section("Reading", rows, table(
        ["Request", "requests/s", "MB/s", "p50, ms", "p99, ms", "CPU, µs", "switches"],
        [run.line(name, title, fields, 2) for name, title in names.items()]))
