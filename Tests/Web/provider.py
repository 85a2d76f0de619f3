# SPDX-License-Identifier: Apache-2.0

"""An identity provider for tests: OpenID Connect's code flow with PKCE, which signs everybody in."""

import base64
import hashlib
import http.server
import json
import os
import secrets
import subprocess
import threading
import time
import urllib.parse


def text(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Provider:
    """`answers` changes the claims of its tokens, `tells` what it says of itself."""

    client = "page"

    def __init__(self, folder):
        self.key = os.path.join(folder, "provider.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key],
                       check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True,
                                 text=True).stdout.strip().partition("=")[2]
        self.keys = os.path.join(folder, "provider.json")
        with open(self.keys, "w") as file:
            json.dump({"keys": [{"kty": "RSA", "use": "sig", "kid": "1", "n": text(bytes.fromhex(modulus)), "e": "AQAB"}]}, file)
        self.answers, self.tells, self.back = {}, {}, {}
        self.codes, self.requests = {}, []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.get(self)

            def do_POST(self):
                provider.post(self)

            def log_message(self, *_):
                pass

        self.site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # Of another site than the server's.
        self.issuer = f"http://localhost:{self.site.server_port}"
        threading.Thread(target=self.site.serve_forever, daemon=True).start()

    @property
    def options(self):
        return ["--identity-issuer", self.issuer, "--identity-client", self.client, "--identity-keys", self.keys]

    def close(self):
        self.site.shutdown()
        self.site.server_close()

    def send(self, request, message, status=200):
        body = json.dumps(message).encode()
        request.send_response(status)
        # Whom it knows: providers allow the origins of their clients.
        request.send_header("Access-Control-Allow-Origin", request.headers.get("Origin", "null"))
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def get(self, request):
        path, _, query = request.path.partition("?")
        if path == "/.well-known/openid-configuration":
            self.send(request, {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize?own=1",
                                "token_endpoint": self.issuer + "/token"} | self.tells)
            return
        asked = dict(urllib.parse.parse_qsl(query))
        assert path == "/authorize" and asked["own"] == "1" and asked["client_id"] == self.client, request.path
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256", asked
        self.requests.append(asked | {"referrer": request.headers.get("Referer")})
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer} | self.back
        request.send_response(302)
        request.send_header("Location", asked["redirect_uri"] + "?" + urllib.parse.urlencode(answer))
        request.send_header("Content-Length", "0")
        request.end_headers()

    def post(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        began = self.codes.pop(asked.get("code"), None)
        challenge = text(hashlib.sha256(asked.get("code_verifier", "").encode()).digest())
        if (request.path != "/token" or not began or began["code_challenge"] != challenge
                or began["redirect_uri"] != asked["redirect_uri"] or asked["client_id"] != self.client):
            self.send(request, {"error": "invalid_grant"}, 400)
            return
        self.send(request, {"token_type": "Bearer", "access_token": "unused", "id_token": self.token(began["nonce"])})

    def token(self, nonce):
        claims = {"iss": self.issuer, "aud": self.client, "sub": "42", "preferred_username": "grace",
                  "exp": int(time.time()) + 600, "nonce": nonce} | self.answers
        signed = ".".join(text(json.dumps(part).encode()) for part in [{"alg": "RS256", "kid": "1"}, claims])
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=signed.encode(), check=True,
                                   capture_output=True).stdout
        return f"{signed}.{text(signature)}"
