# SPDX-License-Identifier: Apache-2.0
"""The server and its peers, each a process with a folder of its own, all on the loopback interface."""

import contextlib, ctypes, glob, http.client, json, os, pwd, re, signal, socket, subprocess
import tempfile, time

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
    """The server with everything as it comes, but for its log and the limits of what one address may ask."""

    OPTIONS = ["--log-level", "error", "--connections-per-address-max", "16384", *(word for rate in (
        "--pushes-per-second", "--requests-per-second", "--sign-ins-per-second") for word in (rate, "1000000"))]
    STORE = "TEAM.example.benchmark"
    PATH = f"/v1/stores/{STORE}/changes"

    def __init__(self, stage, program, options=(), data=None, tls=None, pinned=()):
        folder = tempfile.mkdtemp(prefix="ubiquity-", dir=stage)
        self.program, self.data = program, data or os.path.join(folder, "data")
        command = [
            *pinned, program, "serve", *self.place(), "--port", "0", "--json",
            "--end-with-input", *self.OPTIONS, *options]
        super().__init__(folder, command, 0)
        self.wait(self.has_said_port)
        self.connection = (
            http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=tls) if tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))

    def place(self):
        """Where its data is."""
        return ["--data", self.data]

    @property
    def operator(self):
        with open(os.path.join(self.data, "operator-credential")) as file: return file.read().strip()

    def code(self, name):
        """A code for a new account."""
        return self.ask("POST", "/v1/accounts", self.operator, {"name": name})["code"]

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
        if answer.status not in (200, 204): raise Trouble(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text) if text else None

    def account(self, name):
        """The credential of a device of a new account."""
        return self.ask(
            "POST", "/v1/sign-in", None, {"code": self.code(name), "deviceName": "benchmark"})["credential"]

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


class Node(Ubiquity):
    """A server on a PostgreSQL database."""

    def __init__(self, stage, program, database, options=(), pinned=()):
        self.database = database
        super().__init__(stage, program, ["--metrics-port", "0", *options], pinned=pinned)

    def place(self):
        return ["--database", self.database]

    @property
    def operator(self):
        """A new credential, which the nodes accept within some seconds."""
        done = subprocess.run(
            [self.program, "database", "credential", "--database", self.database],
            capture_output=True, text=True)
        if done.returncode: raise Trouble(f"database credential: {done.stderr[-300:]}")
        credential, end = done.stdout.strip(), time.monotonic() + 30
        while True:
            try: self.ask("GET", "/v1/apps", credential)
            except Trouble:
                if time.monotonic() > end: raise
                time.sleep(0.2)
            else: return credential

    def metrics(self):
        """The numbers of all metrics without labels."""
        with open(self.log.name) as log: address = re.search(r'"metrics":"http:..([^/"]+)', log.read())[1]
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return {words[0]: float(words[1]) for line in lines if len(words := line.split()) == 2}


class Postgres(Server):
    """A server of its own, with everything as it comes but for its memory and its connections."""

    def __init__(self, stage, pinned=()):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:]
        if not programs: raise Trouble("there is no PostgreSQL")
        self.programs, port = programs[0], free_port()
        folder = tempfile.mkdtemp(prefix="postgres-", dir=stage)
        self.user = []
        if os.getuid() == 0:
            # It does not run as root.
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            for above in stage, os.path.dirname(stage): os.chmod(above, os.stat(above).st_mode | 0o011)
            self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = os.path.join(folder, "data")
        self.run("initdb", "--pgdata", data, "--auth", "trust", "--username", "benchmark", "--encoding",
                 "UTF8", "--locale", "C")
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        super().__init__(folder, [
            *pinned, *self.user, os.path.join(self.programs, "postgres"), "-D", data, "-p", str(port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}",
            "-c", f"shared_buffers={memory // 4}MB", "-c", "max_wal_size=8GB",
            "-c", "autovacuum_naptime=10s"], port)
        self.wait(lambda: self.accepts() and self.is_ready())

    def run(self, name, *arguments):
        done = subprocess.run(
            [*self.user, os.path.join(self.programs, name), *arguments], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, cwd="/")
        if done.returncode: raise Trouble(f"{name}: {done.stderr[-300:]}{done.stdout[-300:]}")
        return done.stdout

    def is_ready(self):
        with contextlib.suppress(Trouble): return self.sql("SELECT 1", "postgres")

    def sql(self, text, database):
        return self.run(
            "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "benchmark", "-d", database, "-qAt", "-v",
            "ON_ERROR_STOP=1", "-c", text)

    def create(self, name, program):
        """The address of a new database with the tables of servers."""
        self.sql(f'CREATE DATABASE "{name}"', "postgres")
        url = f"postgresql://benchmark@127.0.0.1:{self.port}/{name}"
        done = subprocess.run(
            [program, "database", "migrate", "--database", url], capture_output=True, text=True)
        if done.returncode: raise Trouble(f"database migrate: {done.stderr[-300:]}")
        return url

    def stop(self):
        # A fast shutdown: SIGTERM would wait for its clients.
        if self.process.poll() is None: self.process.send_signal(signal.SIGINT)
        super().stop()


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
