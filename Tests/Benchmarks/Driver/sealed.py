# SPDX-License-Identifier: Apache-2.0
"""What sealing costs: an account that is sealed, beside one that is not, at one server."""

import base64, json, os, re, subprocess

from latency import SPACINGS
from library import DEVICES, Device, change_latency, home
from load import wrk
from machine import counted
from pushes import ACCOUNTS
from reads import full_store
from run import Row, Section, table, spread
from servers import Trouble, Ubiquity


def sealed_home(run, server, name, account):
    """A device that has sealed its account."""
    folder = home(server, run.stage, name, account)
    child = subprocess.Popen(
        [server.program, "encryption", "on", "--yes", "--home", folder], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    while "Type it here:" not in said:
        more = child.stderr.read(1)
        if not more: raise Trouble(f"an account could not be sealed: {said[-300:]}")
        said += more
    key = re.search(r"([0-9A-Z]{4}-){8}[0-9A-Z]{4}", said)[0]
    child.communicate(key + "\n", timeout=60)
    if child.returncode: raise Trouble("an account could not be sealed")
    return folder


def command(server, *words):
    done = subprocess.run(
        [server.program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode: raise Trouble(f"`ubiquity {words[0]}` failed: {done.stderr[-300:]}")
    return done.stdout


def paired_home(run, server, name, other):
    """Another device of the account, with its key."""
    folder = os.path.join(run.stage, "home-" + name)
    link = json.loads(command(server, "pair", "--home", other, "--json"))["link"]
    command(server, "sign-in", link, "--device-name", name, "--home", folder)
    return folder


def measure(run):
    if not run.client: raise Trouble("there is no --client")
    with run.servers(lambda: Ubiquity(run.stage, run.program)) as (server,):
        kinds = {}
        for kind in "clear", "sealed":
            credentials = server.accounts(ACCOUNTS, kind)
            if kind == "sealed":
                for credential in credentials: mark(server, credential)
            kinds[kind] = run.targets(kind, [(one, server.PATH) for one in credentials])
        first = {
            "clear": home(server, run.stage, "clear-1", "clear"),
            "sealed": sealed_home(run, server, "sealed-1", "sealed")}
        pairs = {
            kind: (one, paired_home(run, server, f"{kind}-2", one)) for kind, one in first.items()}
        full = {
            "clear": home(server, run.stage, "full-clear", "full-clear"),
            "sealed": sealed_home(run, server, "full-sealed", "full-sealed")}
        for one in full.values(): fill(run, server, one)
        for _ in run.rounds:
            for kind, targets in kinds.items():
                run.measure(f"push, {kind}", lambda: counted(server.pid, server.folder, lambda: wrk(
                    "push" if kind == "clear" else "seal", server.port, targets, 64, run.seconds)))
            for title, pause in SPACINGS.items():
                count = (50 if run.is_quick else 200) if pause else (200 if run.is_quick else 1_000)
                for kind, homes in pairs.items():
                    run.measure(f"change, {kind}, {title}", lambda: change_latency(run, homes, count, pause))
        for number in range(3 if run.is_quick else DEVICES):
            for kind, one in full.items():
                device = paired_home(run, server, f"first-{kind}-{number}", one)
                run.measure(f"first sync, {kind}", lambda: opened(run, device))
                run.measure(f"opening, {kind}", lambda: opened(run, device))


def mark(server, credential):
    """As a device that seals its account. The server knows no keys."""
    check = base64.b64encode(bytes(32)).decode()
    server.ask("PUT", "/v1/sealing", credential, {"generation": 1, "check": check})


def fill(run, server, folder):
    """Writes a full store on a device, which sends it."""
    path = os.path.join(run.stage, "full.json")
    with open(path, "w") as file: json.dump(full_store(), file)
    command(server, "import", path, "--store", server.STORE, "--home", folder)


def opened(run, folder):
    with Device(run, "open", folder) as process:
        return {name: time / 1e6 for name, time in process.read().items()}


def report(run):
    def ratio(name, field, title=""):
        return run.ratio(f"{name}, sealed{title}", f"{name}, clear{title}", field)

    rows = [Row.at_least(
        "Durable pushes in sealed accounts, 64 connections: rate, to those in clear ones", 0.95, ratio("push", "rate"))]
    rows += [
        Row.at_most(
            f"`set` to notified in a sealed account, {title}: p50, to that in a clear one", 1.1,
            ratio("change", "p50", f", {title}"))
        for title in SPACINGS]
    rows += [
        Row.at_most("First sync of a full sealed store, to that of a clear one", 1.3, ratio("first sync", "whole")),
        Row.at_most("Opening of a full sealed store, to that of a clear one", 1.1, ratio("opening", "opened"))]
    lines = [
        (f"{title}, {kind}", f"{name}, {kind}", field, unit)
        for title, name, field, unit in (
            ("Pushes a second, 64 connections", "push", "rate", ""),
            ("First sync of 1,024 keys and 1 MiB, every value read", "first sync", "whole", " ms"),
            ("Opening of that store, once synced", "opening", "opened", " ms"),
            ("The same, with every value read", "opening", "whole", " ms"))
        for kind in ("clear", "sealed")]
    durations = run.durations([
        (f"change, {kind}, {title}", f"`set` to notified, {kind}, {title}")
        for title in SPACINGS for kind in ("clear", "sealed")])
    return Section("A sealed account", rows, durations + "\n\n" + table(["", "median (range)"], [
        [title, run.failures.get(name) or spread(run.median(name, field), unit)]
        for title, name, field, unit in lines]))
