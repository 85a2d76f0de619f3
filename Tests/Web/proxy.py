# SPDX-License-Identifier: Apache-2.0

"""What may stand before a server."""

import contextlib
import http.client
import http.server
import threading


class Proxy(http.server.ThreadingHTTPServer):
    """
    Has a server below a path of its own host, and may show its page as another version, of which it lacks files,
    or which it has not yet; or answer in the server's place.
    """

    def __init__(self, server, path=""):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.path, self.version = server.url.removeprefix("http://"), path, {}
        self.lacks, self.oldPage, self.pages = None, False, 0
        # The status of its own answers, while the server is away.
        self.status = None
        self.url = f"http://127.0.0.1:{self.server_port}{path}"
        # What is refused once: a path, and what its answer is for.
        self.refused = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Passing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if not self.path.startswith(f"{self.server.path}/"):
            self.send_error(404)
            return
        if self.server.status:
            self.send_error(self.server.status)
            return
        path, version = self.path.removeprefix(self.server.path), self.server.version
        if self.server.lacks and self.server.lacks in path:
            self.send_error(404)
            return
        if path == "/":
            self.server.pages += 1
            version = {} if self.server.oldPage else version
        for old, new in version.items():
            path = path.replace(new, old)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = path, self.headers.get("Sec-Fetch-Dest")
        if kind in self.server.refused:
            self.server.refused.remove(kind)
            self.send_error(429)
            return
        server = http.client.HTTPConnection(self.server.behind)
        headers = dict(self.headers) | ({"Accept-Encoding": "identity"} if version else {})
        with contextlib.closing(server), contextlib.suppress(OSError):
            server.request(self.command, path, body, headers)
            answer = server.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "etag"):
                    self.send_header(name, value)
            self.end_headers()
            while piece := answer.read1(65_536):
                for old, new in version.items():
                    piece = piece.replace(old.encode(), new.encode())
                self.wfile.write(piece)

    do_POST = do_DELETE = do_PATCH = do_GET

    def log_message(self, *_):
        pass
