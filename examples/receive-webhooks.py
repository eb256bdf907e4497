"""Receives webhooks, verifies their signatures and prints each message once. WEBHOOK_SECRET is the secret (whsec_…).

    PORT=8000 python3 receive-webhooks.py
"""

import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
handled = set()  # A real receiver keeps the ids in its database.


def is_genuine(headers, body):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    # While a secret is replaced, a message has a signature of each.
    found = [part.removeprefix("v1,") for part in headers["webhook-signature"].split()]
    is_fresh = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return is_fresh and any(hmac.compare_digest(expected, one) for one in found)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            status = 204 if is_genuine(self.headers, body) else 400
        except (KeyError, TypeError, ValueError, AttributeError):
            status = 400
        if status == 204 and self.headers["webhook-id"] not in handled:
            handled.add(self.headers["webhook-id"])
            event = json.loads(body)
            print(event["type"], event["data"].get("key", {}).get("name", ""), flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
