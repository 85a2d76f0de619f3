# SPDX-License-Identifier: Apache-2.0
"""From a write on one connection to its event on another, on bare sockets, beside etcd."""

import base64, gc, os, socket, time

from plot import Logarithmic, Percentiles, line_chart
from run import Picture, Row, Section, distribution
from servers import Etcd, Trouble, Ubiquity

SECONDS_MAX = 10
PAUSE = 0.02
SPACINGS = {"one after the other": 0, "20 ms apart": PAUSE}


def request(method, path, headers, body=""):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"] + headers
    if body: lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Connection:
    """A socket and nothing around it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, end):
        """Everything up to a text that an answer must contain."""
        data = b""
        while end not in data:
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                raise Trouble(f"there was no {end} in {data[-300:]}")
            if not more: raise Trouble(f"the connection ended after {data[-300:]}")
            data += more
        return data


class PushToEvent:
    """A device that pushes, and another connection with the store's events, perhaps of another node."""

    def __init__(self, server, credential, other=None):
        self.credential = credential
        self.writer, self.reader = Connection(server.port), Connection((other or server).port)
        bearer = [f"Authorization: Bearer {credential}"]
        self.reader.send(request("GET", server.PATH, bearer + ["Accept: text/event-stream"]))
        self.reader.receive(b"event: ready")
        self.headers, self.path = bearer + ["Accept: application/json"], server.PATH
        self.done = b'"applied":true'

    def write(self, count):
        """A request, and what its event contains."""
        value = f"value-{count:08d}"
        body = (
            f'{{"transactions":[{{"writes":[{{"key":"key-{count % 8}","value":{{"string":"{value}"}},'
            f'"milliseconds":"{int(time.time() * 1000)}","counter":{count % 65536}}}]}}]}}')
        return request("POST", self.path, self.headers, body), value.encode()


class PutToWatch:
    """The same with etcd."""

    def __init__(self, server):
        self.writer, self.reader = Connection(server.port), Connection(server.port)
        watch = '{"create_request":{"key":"a2V5","range_end":"a2V6"}}'
        self.reader.send(request("POST", "/v3/watch", [], watch))
        self.reader.receive(b'"created":true')
        self.done = b'"revision"'

    def write(self, count):
        key, value = (base64.b64encode(text.encode()).decode() for text in (
            f"key-{count % 8}", f"value-{count:08d}"))
        return request("POST", "/v3/kv/put", [], f'{{"key":"{key}","value":"{value}"}}'), value.encode()


def durations(pair, count, pause, start):
    """Milliseconds from the sending of each write until its event has come."""
    times = []
    for index in range(start, start + count):
        if pause: time.sleep(pause)
        data, event = pair.write(index)
        begin = time.perf_counter()
        pair.writer.send(data)
        pair.reader.receive(event)
        times.append((time.perf_counter() - begin) * 1000)
        pair.writer.receive(pair.done)
    return times


def flushes(folder, count):
    """Milliseconds for each flush of 4 KiB."""
    times = []
    file = os.open(os.path.join(folder, "flush"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for _ in range(count):
        begin = time.perf_counter()
        os.write(file, b"1" * 4096)
        os.fdatasync(file)
        times.append((time.perf_counter() - begin) * 1000)
    os.close(file)
    return distribution(times)


def exchanges(connection, count, pause):
    """Milliseconds for each request that does nothing."""
    times = []
    for _ in range(count):
        if pause: time.sleep(pause)
        begin = time.perf_counter()
        connection.send(request("GET", "/v1/config", []))
        connection.receive(b"keepAliveSeconds")
        times.append((time.perf_counter() - begin) * 1000)
    return distribution(times)


def sampled(run, make):
    """A function that takes one round of samples, on connections that are made when it is first called."""
    pairs, sent = [], 0

    def sample(pause):
        nonlocal sent
        if not pairs:
            pairs.append(make())
            durations(pairs[0], 100, 0, 0)
            sent = 100
        count = (100 if run.is_quick else 200) if pause else (500 if run.is_quick else 2_000)
        gc.collect()
        gc.disable()
        try:
            return distribution(durations(pairs[0], count, pause, sent))
        finally:
            sent += count
            gc.enable()
    return sample


def measure(run):
    with run.servers(lambda: Ubiquity(run.stage, run.program), lambda: Etcd(run.stage)) as (server, etcd):
        event = sampled(run, lambda: PushToEvent(server, server.account("raw")))
        watch = sampled(run, lambda: PutToWatch(etcd))
        for _ in run.rounds:
            for title, pause in SPACINGS.items():
                run.measure(f"event, {title}", lambda: event(pause))
                run.measure(f"watch, {title}", lambda: watch(pause))
                run.measure(f"exchange, {title}", lambda: exchanges(
                    Connection(server.port), 100 if pause else 500, pause))
            run.measure("flush", lambda: flushes(run.stage, 300))


def report(run):
    rows = [
        Row.at_most(
            f"Push to event, {title}: p50, to etcd's put to watch", 1, run.ratio(
                f"event, {title}", f"watch, {title}", "p50"))
        for title in SPACINGS]
    names = [(f"{kind}, {title}", f"{word}, {title}") for title in SPACINGS for kind, word in (
        ("event", "Ubiquity, push to event"), ("watch", "etcd, put to watch"),
        ("exchange", "yardstick: `GET /v1/config`"))]
    shares = {
        f"{word}, {title}": [
            (share / 1000, value) for share, value in enumerate(run.shares(f"{kind}, {title}"))
            if share % 10 == 0 or share > 900]
        for title in SPACINGS for kind, word in (("event", "Ubiquity"), ("watch", "etcd"))
        if f"{kind}, {title}" in run.results}
    picture = Picture("latency", "Latency from a write to its event", line_chart(
        "From a write to its event on another connection", "share of the writes", "milliseconds", shares,
        Percentiles, Logarithmic))
    return Section("From one connection to another", rows, run.durations(
        names + [("flush", "yardstick: a flush of 4 KiB")]), [picture])
