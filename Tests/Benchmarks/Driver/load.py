# SPDX-License-Identifier: Apache-2.0
"""Load from programs that are not ours: wrk, and redis-benchmark for Redis."""

import csv, json, os, subprocess

from servers import Trouble

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.lua")
THREADS = 2


def run(command, seconds):
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        raise Trouble(f"{command[0]} did not end")
    if done.returncode != 0: raise Trouble(f"{command[0]} failed: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done.stdout


def wrk_command(kind, port, targets, connections, seconds, writes=1, accept="application/json"):
    threads = min(THREADS, connections)
    return [
        "wrk", "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s", "-s",
        SCRIPT, f"http://127.0.0.1:{port}/", "--", kind, targets, str(threads), str(writes), accept]


def wrk(kind, port, targets, connections, seconds, pinned=(), **options):
    """Requests of one kind, for some seconds.
    - targets: the name of a file with a credential (or -) and a path in each line.
    """
    output = run([*pinned, *wrk_command(kind, port, targets, connections, seconds, **options)], seconds)
    result = json.loads(output.strip().splitlines()[-1])
    if result["failed"] or result["wrong"] or not result["requests"]:
        raise Trouble(
            f"of {result['requests']} answers, {result['wrong']} were wrong and {result['failed']} did "
            f"not come: {result['example'][:300]}")
    shares = result.pop("p1000")
    result["rate"] = result["requests"] / result["microseconds"] * 1e6
    result["megabytes"] = result["bytes"] / result["microseconds"]
    result["p50"], result["p99"] = shares[500] / 1000, shares[990] / 1000
    result["shares"] = [share / 1000 for share in shares]
    return result


def redis_benchmark(port, connections, requests):
    """SET of 4,096 keys, without pipelining."""
    output = run([
        "redis-benchmark", "-p", str(port), "-c", str(connections), "-n", str(requests), "-t", "set",
        "-d", "15", "-r", "4096", "-P", "1", "--csv"], 60)
    row = list(csv.DictReader(output.strip().splitlines()))[-1]
    return {
        "requests": requests, "rate": float(row["rps"]), "p50": float(row["p50_latency_ms"]),
        "p99": float(row["p99_latency_ms"])}
