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

    def rate(writes):
        return run.median(f"push 64, {writes} writes", "writes")

    rows = [
        Row.at_least("Durable pushes, 64 connections: rate, to etcd's puts", 1.5, ratio(64, "put")),
        Row.at_least("Durable pushes, 16 connections: rate, to etcd's puts", 1.3, ratio(16, "put")),
        Row.without_goal("Durable pushes, 1 connection: rate, to etcd's puts", ratio(1, "put")),
        Row.at_least("Durable pushes, 64 connections: rate, to Redis's SETs", 0.3, ratio(64, "set")),
        Row.at_most("Durable pushes, 64 connections: p99", 10, run.median("push 64", "p99"), " ms"),
        Row.at_least("Ten writes a push, 64 connections", 100_000, rate(10), " writes/s"),
        Row.without_goal("A hundred writes a push, 64 connections", rate(100), " writes/s"),
        Row.at_most(
            "The server's CPU time a push, 64 connections", 60, run.median("push 64", "cpu"), " µs"),
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
