# SPDX-License-Identifier: Apache-2.0
"""The report: the machine, the goals, the pictures, and each part's tables; in Markdown."""

import os, platform, re, subprocess, time

from machine import STEAL_MAX, read
from run import note

START, END = "<!-- figures: written by make benchmark -->", "<!-- end of the figures -->"
VERSIONS = {
    "etcd": ["etcd", "--version"], "Redis": ["redis-server", "--version"],
    "NATS": ["nats-server", "--version"], "PostgreSQL": ["psql", "--version"], "wrk": ["wrk", "-v"], "Swift": ["swift", "--version"]}


def version(command):
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=20)
        return re.search(r"\d+\.\d+(\.\d+)*", done.stdout)[0]
    except (OSError, subprocess.TimeoutExpired, TypeError):
        return "unknown"


def machine(program, load):
    """The machine and the versions, before the run."""
    processor = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    memory = int(re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))[1]) / (1 << 20)
    versions = ", ".join(
        f"{name} {version(command)}"
        for name, command in {"Ubiquity": [program, "--version"], **VERSIONS}.items())
    return (
        f"Machine: {processor[1] if processor else platform.machine()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GiB; {platform.system()} {platform.release()}.\n"
        f"Versions: {versions}.\n"
        f"Date: {time.strftime('%Y-%m-%d')}. Load average before the run: {load:.2f}.")


def goals(sections):
    lines = ["| Goal | | Measured | |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.what} | {row.goal} | {row.measured} | {row.verdict} |"
        for section in sections for row in section.rows]
    return "\n".join(lines)


def text(run, sections, facts, command, minutes, tables=True):
    """The whole report, or without the tables, which is what BENCHMARKS.md has."""
    quiet = run.quiet
    parts = [
        facts,
        f"Command: `{command}`. It took {minutes:.0f} min, with {len(run.rounds)} rounds of each. Time that "
        f"the host took away (steal): at most {max(quiet.steal, default=0):.1%} of a round. Rounds repeated "
        f"because of more than {STEAL_MAX:.0%}: {quiet.repeated}; kept, because each repetition had more: "
        f"{quiet.kept}.",
        "A figure is the median of the rounds, with the least and the greatest in parentheses. A ratio "
        "is that of two rounds measured one after the other.",
        goals(sections)]
    for section in sections:
        if tables: parts.append(f"### {section.title}")
        parts += [
            f"![{picture.title}](pictures/benchmark-{picture.name}.svg)"
            for picture in section.pictures if picture.svg]
        if tables: parts.append(section.text)
    if run.failures:
        parts.append("### Not measured")
        parts.append("\n".join(f"* {name}: {reason}" for name, reason in run.failures.items()))
    return "\n\n".join(parts)


def write(folder, figures, sections):
    """Puts the figures between the marks of BENCHMARKS.md, and the pictures in their folder."""
    path = os.path.join(folder, "BENCHMARKS.md")
    with open(path) as file: old = file.read()
    before, rest = old.split(START, 1)
    after = rest.split(END, 1)[1]
    with open(path, "w") as file: file.write(f"{before}{START}\n\n{figures}\n\n{END}{after}")
    for section in sections:
        for picture in section.pictures:
            if not picture.svg: continue
            with open(os.path.join(folder, "pictures", f"benchmark-{picture.name}.svg"), "w") as file:
                file.write(picture.svg)
    note(f"Written: {path}")
