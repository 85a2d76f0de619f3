# SPDX-License-Identifier: Apache-2.0
"""Durable pushes, beside etcd's puts and Redis's SETs."""

from load import redis_benchmark, wrk
from machine import counted
from plot import Logarithmic, line_chart
from run import Picture, Row, Section, table
from servers import Etcd, Redis, Ubiquity

ACCOUNTS = 64
PEERS = {"push": "Ubiquity", "put": "etcd", "set": "Redis"}


def connections(run):
    return [1, 16, 64] if run.is_quick else [1, 4, 16, 64, 256]


def measure(run):
    rates = {}
    with run.servers(
        lambda: Ubiquity(run.stage, run.program), lambda: Etcd(run.stage), lambda: Redis(run.stage)
    ) as (server, etcd, redis):
        own = run.targets("push", [(one, server.PATH) for one in server.accounts(ACCOUNTS)])
        others = run.targets("put", [("-", Etcd.PATH)] * ACCOUNTS)

        def push(count, writes=1):
            result = counted(server.pid, server.folder, lambda: wrk(
                "push", server.port, own, count, run.seconds, writes=writes))
            return {**result, "writes": result["rate"] * writes}

        def put(count):
            return counted(etcd.pid, etcd.folder, lambda: wrk(
                "put", etcd.port, others, count, run.seconds))

        def set_(count):
            # So many requests that they take about as long as a round of wrk.
            if count not in rates: rates[count] = redis_benchmark(redis.port, count, 5_000)["rate"]
            return counted(redis.pid, redis.folder, lambda: redis_benchmark(
                redis.port, count, int(rates[count] * run.seconds)))

        for _ in run.rounds:
            for count in connections(run):
                run.measure(f"push {count}", lambda: push(count))
                run.measure(f"put {count}", lambda: put(count))
                run.measure(f"set {count}", lambda: set_(count))
            for writes in 10, 100:
                run.measure(f"push 64, {writes} writes", lambda: push(64, writes))


def report(run):
    def ratio(count, peer):
        return run.ratio(f"push {count}", f"{peer} {count}", "rate")

    rows = [
        Row.at_least(f"Durable pushes, connections: {count}: rate, to etcd's puts", 1, ratio(count, "put"))
        for count in connections(run) if count != 4
    ] + [
        Row.without_goal("Durable pushes, 64 connections: rate, to Redis's SETs", ratio(64, "set")),
        Row.without_goal(
            "Durable pushes, 64 connections: the server's CPU time, to etcd's for a put",
            run.ratio("push 64", "put 64", "cpu")),
        Row.without_goal(
            "Ten writes a push, 64 connections: writes, to those of one a push",
            run.ratio("push 64, 10 writes", "push 64", "writes", "rate")),
    ]
    throughput = {
        PEERS[peer]: [
            (count, figure.median, figure.least, figure.greatest) for count in connections(run)
            if (figure := run.median(f"{peer} {count}", "rate"))]
        for peer in PEERS}
    picture = Picture("throughput", "Durable writes by connections", line_chart(
        "Durable writes a second", "connections", "a second", throughput,
        lambda values: Logarithmic(values, connections(run)), Logarithmic))
    names = [
        (f"{peer} {count}", f"{PEERS[peer]}, {count}") for count in connections(run) for peer in PEERS
    ] + [(f"push 64, {writes} writes", f"Ubiquity, 64, {writes} writes a push") for writes in (10, 100)]
    fields = "rate", "p50", "p99", "cpu", "switches", "written", "per_flush"
    return Section("Durable pushes", rows, table(
        ["System, connections", "requests/s", "p50, ms", "p99, ms", "CPU, µs", "switches",
         "bytes written", "requests a flush"],
        [run.line(name, title, fields) for name, title in names]), [picture])
