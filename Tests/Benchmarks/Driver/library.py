# SPDX-License-Identifier: Apache-2.0
"""The library: changes from one device to another, local calls, and opening. Each device is a process."""

import contextlib, json, os, select, socket, subprocess, threading, time

from latency import SPACINGS, PutToWatch, flushes, sampled
from reads import full_store
from run import Figure, Row, Section, distribution, spread, table
from servers import Etcd, Trouble, Ubiquity, die_with_parent
from streams import LISTENERS, allow_files, opened

SECONDS_MAX = 60
DEVICES = 10


class Device:
    """The program `ubiquity-benchmarks` in a role."""

    def __init__(self, run, role, home, *options):
        variables = ["HOME", "CFFIXED_USER_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]
        self.role = role
        self.process = subprocess.Popen(
            [run.client, role, "--home", home, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **{name: run.stage for name in variables}}, start_new_session=True,
            preexec_fn=die_with_parent)

    def write(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def read(self):
        """Its next line, which is JSON."""
        if not select.select([self.process.stdout], [], [], SECONDS_MAX)[0]:
            raise Trouble(f"the device that is to {self.role} did not answer in time")
        line = self.process.stdout.readline()
        if not line: raise Trouble(f"the device that is to {self.role} ended without an answer")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Relay:
    """Stands between a device and the server, and counts the bytes of each direction by connection."""

    def __init__(self, port):
        self.port, self.counts = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                device, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                self.counts.append([0, 0])
                for direction, pair in enumerate([(device, server), (server, device)]):
                    threading.Thread(
                        target=self.forward, args=(*pair, self.counts[-1], direction), daemon=True).start()

    def forward(self, source, target, count, direction):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                count[direction] += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def forget(self):
        for count in self.counts: count[:] = 0, 0

    def close(self):
        self.listener.close()


def home(server, stage, name, account, url=None):
    """Signs a device in."""
    with contextlib.suppress(Trouble):
        server.ask("POST", "/v1/accounts", server.operator, {"name": account})
    code = server.ask("POST", f"/v1/accounts/{account}/codes", server.operator, {})["code"]
    folder = os.path.join(stage, "home-" + name)
    command = [
        server.program, "sign-in", "--server", url or f"http://127.0.0.1:{server.port}", "--code", code,
        "--device-name", name, "--home", folder]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode: raise Trouble(f"a device could not sign in: {done.stderr[-300:]}")
    return folder


def changes(writer, reader, count, pause, name):
    """Times at which each value became readable on another device, in nanoseconds."""
    times = []
    for index in range(count):
        if pause: time.sleep(pause)
        value = f"{name}-{index}"
        writer.write(value)
        while (change := reader.read())["value"] != value: pass
        times.append(change["time"])
    return times


def change_latency(run, homes, count, pause):
    """Milliseconds from `set` on one device until the other was notified, and had read the value."""
    name = f"value-{time.monotonic_ns()}"
    with Device(run, "watch", homes[1]) as reader, Device(run, "write", homes[0]) as writer:
        changes(writer, reader, 50, 0, name + "-first")
        ends = changes(writer, reader, count, pause, name)
        writer.process.stdin.close()
        begins = writer.read()[-count:]
    return distribution((end - begin) / 1e6 for begin, end in zip(begins, ends))


def bytes_on_the_wire(run, server):
    """Bytes that one small change takes: the request, its answer, and the event."""
    relays = Relay(server.port), Relay(server.port)
    try:
        homes = [
            home(server, run.stage, f"wire-{index}", "wire", relay.url) for index, relay in enumerate(relays)]
        count = 100
        with Device(run, "watch", homes[1]) as reader, Device(run, "write", homes[0]) as writer:
            changes(writer, reader, 20, 0.02, "first")
            time.sleep(0.5)
            for relay in relays: relay.forget()
            changes(writer, reader, count, 0.02, "value")
            time.sleep(0.5)
            # A device sends nothing on the connection of its event stream.
            asked = [one for one in relays[0].counts if one[0]]
            event = sum(one[1] for one in relays[1].counts if not one[0])
        request, answer = (sum(one[direction] for one in asked) for direction in (0, 1))
        return {name: size / count for name, size in {
            "request": request, "answer": answer, "event": event, "bytes": request + answer + event}.items()}
    finally:
        for relay in relays: relay.close()


def measure(run):
    if not run.client: raise Trouble("there is no --client")
    allow_files()
    with run.servers(lambda: Ubiquity(run.stage, run.program), lambda: Etcd(run.stage)) as (
        server, etcd
    ):
        homes = [home(server, run.stage, name, "change") for name in ("writer", "reader")]
        watch = sampled(run, lambda: PutToWatch(etcd))
        for _ in run.rounds:
            for title, pause in SPACINGS.items():
                count = (50 if run.is_quick else 200) if pause else (200 if run.is_quick else 1_000)
                run.measure(f"library, {title}", lambda: change_latency(run, homes, count, pause))
                run.measure(f"library beside, {title}", lambda: watch(pause))
            with contextlib.closing(opened(server, LISTENERS, f"other-{time.monotonic_ns()}")):
                run.measure("library, many listeners", lambda: change_latency(
                    run, homes, 200 if run.is_quick else 1_000, 0))
        run.measure("wire", lambda: bytes_on_the_wire(run, server))
        opening(run, server)

        def local():
            with Device(run, "local", os.path.join(run.stage, "local")) as device:
                return {one["name"]: {
                    **one, "ratio": one["own"] / one["foundation"]} for one in device.read()}
        for _ in run.rounds: run.measure("local", local)
        seconds = 10 if run.is_quick else 40

        def idle():
            with Device(
                run, "idle", home(server, run.stage, "idle", "idle"), "--seconds", str(seconds)) as device:
                return {**device.read(), "seconds": seconds}
        run.measure("idle app", idle)


def opening(run, server):
    """Devices that open a full store: the first time, and once they have it."""
    server.push(server.account("full"), full_store())
    homes = []

    def opened_by(device):
        with Device(run, "open", device) as process:
            return {name: time / 1e6 for name, time in process.read().items()}

    def first():
        homes.append(home(server, run.stage, f"full-{len(homes)}", "full"))
        return opened_by(homes[-1])

    for _ in range(3 if run.is_quick else DEVICES):
        run.measure("first sync", first)
        run.measure("opening", lambda: opened_by(homes[-1]))
        run.measure("flush, opening", lambda: flushes(run.stage, 100))


def report(run):
    rows = [
        Row.at_most(
            f"`set` to notified on another device, {title}: p50, to etcd's put to watch",
            1.8 if SPACINGS[title] else 2.5,
            run.ratio(f"library, {title}", f"library beside, {title}", "p50"))
        for title in SPACINGS]
    rows.append(Row.at_most(
        f"`set` to notified, {LISTENERS:,} listeners on other stores: p50, to without them", 1.2,
        run.ratio("library, many listeners", "library, one after the other", "p50")))
    rows.append(Row.at_most(
        "Bytes on the wire for one small change: request, answer and event", 600,
        run.median("wire", "bytes"), " bytes"))
    rows += [
        Row.at_most(f"`{call}`, to that of `UserDefaults`", goal, call_figure(run, call, "ratio"))
        for call, goal in (("string(forKey:)", 0.07), ("set(_:forKey:)", 0.025))]
    rows += [
        Row.at_most("Opening of a full store, in flushes of 4 KiB", 60, run.ratio(
            "opening", "flush, opening", "opened", "p50")),
        Row.without_goal("First sync of a full store, to its opening with every value read", run.ratio(
            "first sync", "opening", "whole")),
    ]
    names = [(f"library, {title}", f"`set` to notified, {title}") for title in SPACINGS]
    names.append((
        "library, many listeners",
        f"the same, one after the other, {LISTENERS:,} listeners on other stores"))
    names += [
        (f"library beside, {title}", f"etcd, put to watch, bare sockets, {title}") for title in SPACINGS]
    lines = [
        ("First sync of 1,024 keys and 1 MiB, every value read", "first sync", "whole", " ms"),
        ("Opening of that store, once synced", "opening", "opened", " ms"),
        ("The same, with every value read", "opening", "whole", " ms"),
        ("Flush of 4 KiB, between them", "flush, opening", "p50", " ms"),
        ("Bytes of a push", "wire", "request", ""), ("Bytes of its answer", "wire", "answer", ""),
        ("Bytes of its event", "wire", "event", ""),
    ]
    text = [
        run.durations(names),
        table(["1,024 keys", "ns", "`UserDefaults`, ns", "allocations"], [
            [f"`{call}`"] + [spread(call_figure(run, call, field)) for field in (
                "own", "foundation", "allocations")]
            for call in ("string(forKey:)", "bool(forKey:)", "set(_:forKey:)")]),
        table(["", "median (range)"], [
            [title, run.failures.get(name) or spread(run.median(name, field), unit)]
            for title, name, field, unit in lines])]
    if "idle app" in run.results:
        idle = run.results["idle app"][0]
        text.append(
            f"A connected app that does nothing for {idle['seconds']} s takes "
            f"{idle['cpuMilliseconds']:.1f} ms of CPU time, and its threads are woken {idle['wakes']} times.")
    return Section("The library", rows, "\n\n".join(text))


def call_figure(run, call, field):
    return Figure.of(one[call].get(field) for one in run.results.get("local", []))
