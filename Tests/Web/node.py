# SPDX-License-Identifier: Apache-2.0

"""Servers for the operator's tests: on a folder or on a PostgreSQL of their own, with their log."""

import glob
import http.client
import http.server
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

from stage import DEADLINE, Server, free_port, run


class Database:
    """A PostgreSQL, which ends with the test. Its programs refuse to run as root."""

    programs = max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ubiquity-web-database-")
        self.user = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        port = free_port()
        self.data = os.path.join(self.folder, "data")
        self.run("initdb", "--auth=trust", "--username=ubiquity", "--no-sync", "-D", self.data)
        # Not by pg_ctl: what ends this process's group must end the database too.
        self.process = subprocess.Popen(
            [*self.command("postgres"), "-D", self.data, "-p", str(port), "-h", "127.0.0.1", "-k", "",
             "-c", "fsync=off"], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE
        while subprocess.run([*self.command("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode:
            assert self.process.poll() is None and time.monotonic() < end, "PostgreSQL did not start"
            time.sleep(0.1)
        self.url = f"postgresql://ubiquity@127.0.0.1:{port}/postgres"
        run("database", "migrate", "--database", self.url)

    def command(self, program):
        return [*self.user, os.path.join(self.programs, program)]

    def run(self, program, *words):
        subprocess.run([*self.command(program), *words], check=True, timeout=DEADLINE, cwd="/",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def credential(self):
        """A new operator's credential. The one before ends."""
        return run("database", "credential", "--database", self.url)

    def close(self):
        # At once, whoever is connected.
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self.folder, True)


class Node(Server):
    """A server whose log is kept, on a database or on a folder."""

    def __init__(self, folder, *options, database=None):
        self.database = database
        self.log = os.path.join(tempfile.mkdtemp(dir=folder), "log")
        super().__init__(folder, *options)

    def start(self):
        place = ["--database", self.database.url] if self.database else None
        with open(self.log, "ab") as log:
            super().start(place, "notice", log)

    @property
    def link(self):
        """The link that makes the first account, from the log; None without one."""
        found = re.findall(r"http://[^\s\"]+/#[0-9A-Z-]+", pathlib.Path(self.log).read_text())
        return found[-1] if found else None

    @property
    def credential(self):
        """The operator's credential of a server on a folder."""
        return pathlib.Path(self.data, "operator-credential").read_text().strip()

    def delete(self, path, credential):
        request = urllib.request.Request(self.url + path, method="DELETE", headers={"Authorization": f"Bearer {credential}"})
        urllib.request.urlopen(request, timeout=DEADLINE).close()


class Balancer:
    """Passes requests to one server after the other."""

    def __init__(self, *servers):
        turns = iter(range(10**9))

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                server = servers[next(turns) % len(servers)]
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
                connection.request("GET", self.path, headers={
                    name: self.headers[name] for name in ["Accept", "Authorization"] if name in self.headers})
                answer = connection.getresponse()
                text = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                connection.close()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
