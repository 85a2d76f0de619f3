# SPDX-License-Identifier: Apache-2.0
"""Connections that wait for events: what idle ones take, and how fast one write reaches many."""

import os, resource, select, socket, ssl, subprocess, time

from latency import PushToEvent, request
from machine import Process, kernel_memory, memory
from plot import Linear, line_chart
from run import Picture, Row, Section, distribution, table
from servers import Nats, Redis, Trouble, Ubiquity

SECONDS_MAX = 120
# Connections that are being made at one time: fewer than the queue of a listening socket holds.
MAKING_MAX = 256
STREAMS, QUICK_STREAMS, FEWER = 15_000, 3_000, [1_000, 5_000, 10_000]
LISTENERS, PER_ACCOUNT = 1_000, 15
ENDED = object()
# As rare as they can be: one of 15,000 streams' comes every 16 ms.
RARE_KEEP_ALIVES = ["--keep-alive-seconds", "240"]


def allow_files():
    """Lets this process and those that it starts open as many files as the system allows.
    Returns how many connections that is room for.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most - 500


def until(function):
    """Yields as often as a socket has to be waited for."""
    while True:
        try:
            return function()
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            yield


class Streams:
    """Connections that have said what they wait for, and been answered."""

    def __init__(self, port, answer, tls=None):
        self.port, self.answer, self.tls = port, answer, tls
        self.poll, self.sockets = select.epoll(), {}

    def add(self, requests):
        """Opens one for each request.
        Returns the seconds until all were answered.
        """
        begin, waiting, opening = time.monotonic(), list(reversed(requests)), {}
        while waiting or opening:
            while waiting and len(opening) < MAKING_MAX:
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", self.port))
                opening[one.fileno()] = self.opened(one, waiting.pop())
                self.poll.register(one.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
            for file, _ in self.poll.poll(1, 1024):
                if file in opening and next(opening[file], ENDED) is ENDED: del opening[file]
            if time.monotonic() - begin > SECONDS_MAX:
                raise Trouble(f"{len(opening) + len(waiting)} connections were not answered")
        return time.monotonic() - begin

    def opened(self, one, data):
        if self.tls: one = self.tls.wrap_socket(one, do_handshake_on_connect=False)
        self.sockets[one.fileno()] = one
        if self.tls: yield from until(one.do_handshake)
        yield from until(lambda: one.send(data))
        received = b""
        while self.answer not in received:
            more = yield from until(lambda: one.recv(65536))
            if not more: raise Trouble(f"a connection ended after {received[-300:]}")
            received += more

    def wait(self, text):
        """Until all have received a text."""
        left, end = set(self.sockets), time.monotonic() + 10
        while left:
            for file, _ in self.poll.poll(1, 1024):
                try:
                    if text in self.sockets[file].recv(65536): left.discard(file)
                except BlockingIOError:
                    # It is told too when more can be sent.
                    pass
            if time.monotonic() > end: raise Trouble(f"{len(left)} listeners did not get an event")

    def close(self):
        for one in self.sockets.values(): one.close()
        self.poll.close()


def requests_for(server, number, name="listener"):
    """Event streams of stores of their own, a few of each account."""
    accounts = server.accounts(-(-number // PER_ACCOUNT), name)
    return [
        request("GET", server.PATH, [
            f"Authorization: Bearer {accounts[index % len(accounts)]}", "Accept: text/event-stream"])
        for index in range(number)]


def opened(server, number, name="listener"):
    """Idle streams of other stores."""
    streams = Streams(server.port, b"event: ready")
    streams.add(requests_for(server, number, name))
    return streams


def grown(server, make, answer, number, idle_seconds, tls=None):
    """Opens more and more streams, and measures the server."""
    requests = make(number)
    time.sleep(1)
    before, kernel_before = memory(server.pid), kernel_memory()
    streams, seconds, sizes = Streams(server.port, answer, tls), 0, {}
    try:
        for count in [step for step in FEWER if step < number] + [number]:
            seconds += streams.add(requests[len(streams.sockets):count])
            time.sleep(1)
            sizes[count] = (memory(server.pid) - before) / count
        kernel = (kernel_memory() - kernel_before) / number
        time.sleep(2)
        processor = Process(server.pid).microseconds
        time.sleep(idle_seconds)
        idle = (Process(server.pid).microseconds - processor) / idle_seconds / 1e4
        return {
            "number": number, "bytes": sizes[number], "sizes": sizes, "seconds": seconds, "idle": idle,
            "kernel": kernel}
    finally:
        streams.close()


def one_to_many(server):
    """Milliseconds until one write has reached all listeners of its store."""
    credential = server.account("many")
    pair = PushToEvent(server, credential)
    streams, times = Streams(server.port, b"event: ready"), []
    streams.add([request("GET", server.PATH, [
        f"Authorization: Bearer {credential}", "Accept: text/event-stream"])] * LISTENERS)
    try:
        for count in range(110):
            time.sleep(0.02)
            data, event = pair.write(count)
            begin = time.perf_counter()
            pair.writer.send(data)
            streams.wait(event)
            if count >= 10: times.append((time.perf_counter() - begin) * 1000)
            pair.writer.receive(pair.done)
    finally:
        streams.close()
    return distribution(times)


def certificate(stage):
    names = [os.path.join(stage, name) for name in ("certificate.pem", "key.pem")]
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-out", names[0], "-keyout", names[1]], check=True, capture_output=True)
    os.chmod(names[1], 0o600)
    return names


def measure(run):
    room = min(allow_files(), QUICK_STREAMS if run.is_quick else STREAMS)
    seconds = 5 if run.is_quick else 20

    def plain():
        with Ubiquity(run.stage, run.program, RARE_KEEP_ALIVES) as server:
            return grown(server, lambda number: requests_for(server, number), b"event: ready", room, seconds)

    def secured():
        pem, key = certificate(run.stage)
        tls = ssl.create_default_context(cafile=pem)
        tls.check_hostname = False
        options = RARE_KEEP_ALIVES + ["--tls-certificate", pem, "--tls-key", key]
        with Ubiquity(run.stage, run.program, options, tls=tls) as server:
            return grown(
                server, lambda number: requests_for(server, number), b"event: ready", room, seconds, tls)

    def redis():
        with Redis(run.stage, ["--maxclients", str(room + 100)]) as server:
            return grown(
                server, lambda number: [b"SUBSCRIBE store-%d\r\n" % index for index in range(number)],
                b"subscribe", room, seconds)

    def nats():
        with Nats(run.stage) as server:
            return grown(
                server, lambda number: [
                    b'CONNECT {"verbose":false}\r\nSUB store-%d 1\r\nPING\r\n' % index
                    for index in range(number)], b"PONG", room, seconds)

    for name, function in {"plain": plain, "TLS": secured, "Redis": redis, "NATS": nats}.items():
        run.measure(f"idle, {name}", function)
    with run.servers(
        lambda: Ubiquity(run.stage, run.program, ["--streams-max", str(2 * LISTENERS)])
    ) as (server,):
        run.measure("one to many", lambda: one_to_many(server))


def report(run):
    rows = [
        Row.at_most(
            "An idle event stream: the server's memory, to that of Redis's subscriber", 1,
            run.ratio("idle, plain", "idle, Redis", "bytes")),
        Row.without_goal(
            "Opening of event streams: time, to Redis's subscriptions",
            run.ratio("idle, plain", "idle, Redis", "seconds")),
        Row.without_goal(
            "Idle event streams: CPU time, to that of Redis's subscribers",
            run.ratio("idle, plain", "idle, Redis", "idle")),
    ]
    kinds = {
        "plain": "Ubiquity", "TLS": "Ubiquity, TLS", "Redis": "Redis, subscribers",
        "NATS": "NATS, subscribers"}
    sizes = {
        title: [(0, 0)] + [
            (number, size * number / 1e6)
            for number, size in run.results[f"idle, {kind}"][0]["sizes"].items()]
        for kind, title in kinds.items() if f"idle, {kind}" in run.results}
    picture = Picture("listeners", "Memory by idle listeners", line_chart(
        "Memory of the server", "idle listeners", "MB", sizes, Linear, Linear))
    fields = "number", "bytes", "kernel", "seconds", "idle"
    return Section("Idle listeners", rows, table(
        ["Listeners", "number", "memory each, bytes", "kernel, both ends, bytes", "opened in, s",
         "idle, % of a core"],
        [run.line(f"idle, {kind}", title, fields) for kind, title in kinds.items()])
        + "\n\n" + run.durations([
            ("one to many", f"One write until the last of {LISTENERS:,} listeners has it")]), [picture])
