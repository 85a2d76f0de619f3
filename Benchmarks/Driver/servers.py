# SPDX-License-Identifier: Apache-2.0
"""The server and its peers, each a process with a folder of its own, all on the loopback interface."""

import ctypes, http.client, json, os, re, signal, socket, subprocess, tempfile, time

SECONDS_MAX = 20


class Trouble(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A process that listens on a port."""

    def __init__(self, folder, command, port):
        self.folder, self.port = folder, port
        self.log = open(os.path.join(folder, "log"), "w")
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log,
                start_new_session=True, preexec_fn=die_with_parent)
        except FileNotFoundError:
            raise Trouble(f"there is no {command[0]}")
        self.pid = self.process.pid

    def wait(self, is_ready):
        end = time.monotonic() + SECONDS_MAX
        while True:
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                with open(self.log.name) as log:
                    raise Trouble(f"{type(self).__name__} did not start: {log.read()[-500:]}")
            if is_ready(): return
            time.sleep(0.02)

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        if self.process.poll() is None: self.process.terminate()
        try:
            self.process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Ubiquity(Server):
    """The server with everything as it comes, but for the limits of how much one address may ask."""

    RATES = [
        "--push-burst", "--pushes-per-second", "--request-burst", "--requests-per-second",
        "--sign-in-burst", "--sign-ins-per-second", "--total-sign-in-burst",
        "--total-sign-ins-per-second",
    ]
    STORE = "TEAM.example.benchmark"
    PATH = f"/v1/stores/{STORE}/changes"

    def __init__(self, stage, program, options=(), data=None, tls=None):
        folder = tempfile.mkdtemp(prefix="ubiquity-", dir=stage)
        self.program, self.data = program, data or os.path.join(folder, "data")
        command = [
            program, "serve", "--data", self.data, "--port", "0", "--json", "--log-level", "error",
            "--end-with-input", "--connections-per-address-max", "16384", *options]
        for rate in self.RATES: command += [rate, "1000000"]
        super().__init__(folder, command, 0)
        self.wait(self.has_said_port)
        with open(os.path.join(self.data, "operator-credential")) as file:
            self.operator = file.read().strip()
        self.connection = (
            http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=tls) if tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))

    def has_said_port(self):
        with open(self.log.name) as log:
            found = re.search(r'"port":(\d+)', log.read())
        if found: self.port = int(found[1])
        return found

    def ask(self, method, path, credential=None, body=None):
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if credential: headers["Authorization"] = "Bearer " + credential
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200: raise Trouble(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def account(self, name):
        """The credential of a device of a new account."""
        code = self.ask("POST", "/v1/accounts", self.operator, {"name": name})["code"]
        return self.ask("POST", "/v1/sign-in", None, {"code": code, "deviceName": "benchmark"})["credential"]

    def accounts(self, number, name="account"):
        return [self.account(f"{name}-{index}") for index in range(number)]

    def push(self, credential, values):
        """Writes texts by their keys."""
        now = str(int(time.time() * 1000))
        writes = [
            {"key": key, "value": {"string": value}, "milliseconds": now} for key, value in values.items()]
        answer = self.ask("POST", self.PATH, credential, {"transactions": [{"writes": writes}]})
        if "committed" not in answer["results"][0]: raise Trouble(f"a push was refused: {answer}")
        return answer

    def cursor(self, credential):
        return self.ask("GET", self.PATH, credential)["cursor"]


class Etcd(Server):
    """One member, with everything else as it comes: each put is answered after its flush."""

    PATH = "/v3/kv/put"

    def __init__(self, stage):
        port, peers = free_port(), f"http://127.0.0.1:{free_port()}"
        clients = f"http://127.0.0.1:{port}"
        folder = tempfile.mkdtemp(prefix="etcd-", dir=stage)
        super().__init__(folder, [
            "etcd", "--data-dir", os.path.join(folder, "data"), "--log-level", "error",
            "--logger", "zap", "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", f"default={peers}"], port)
        self.wait(self.is_healthy)

    def is_healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/health")
            return b"true" in connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class Redis(Server):
    """Each SET is answered after its flush."""

    def __init__(self, stage, options=("--appendonly", "yes", "--appendfsync", "always")):
        port, folder = free_port(), tempfile.mkdtemp(prefix="redis-", dir=stage)
        super().__init__(folder, [
            "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
            *options], port)
        self.wait(self.accepts)


class Nats(Server):
    def __init__(self, stage):
        port = free_port()
        super().__init__(
            tempfile.mkdtemp(prefix="nats-", dir=stage),
            ["nats-server", "-a", "127.0.0.1", "-p", str(port)], port)
        self.wait(self.accepts)
