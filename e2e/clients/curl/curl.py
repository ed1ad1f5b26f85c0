#!/usr/bin/env python3
"""A stand-in for curl on machines without one: the options that the documentation uses."""
import argparse
import sys
import urllib.error
import urllib.request

options = argparse.ArgumentParser(prog="curl")
for flag in "fsSNi":
    options.add_argument("-" + flag, action="store_true")
options.add_argument("-X", default=None)
options.add_argument("-H", action="append", default=[])
options.add_argument("-d", default=None)
options.add_argument("--data-binary", dest="file", default=None)
options.add_argument("-D", default=None)
options.add_argument("-o", default=None)
options.add_argument("--retry", type=int, default=0)
options.add_argument("url")
given = options.parse_args()


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


request = urllib.request.Request(given.url, method=given.X or ("POST" if given.d is not None or given.file is not None else "GET"))
for header in given.H:
    name, _, value = header.partition(":")
    request.add_header(name, value.strip())
if given.file is not None:
    with open(given.file.removeprefix("@"), "rb") as f:
        request.data = f.read()
if given.d is not None:
    request.data = given.d.encode()
    if not request.has_header("Content-type"):
        request.add_header("Content-Type", "application/x-www-form-urlencoded")
try:
    answer = urllib.request.build_opener(Stay).open(request, timeout=60)
except urllib.error.HTTPError as e:
    answer = e
head = f"HTTP/1.1 {answer.status} {answer.reason}\r\n" + "".join(f"{k.lower()}: {v}\r\n" for k, v in answer.headers.items()) + "\r\n"
if given.i or given.D == "-":
    sys.stdout.write(head)
if given.f and answer.status >= 400:
    sys.exit(f"curl: the server answered {answer.status}")
body = answer.read()
if given.o is None:
    sys.stdout.flush()
    sys.stdout.buffer.write(body)
elif given.o != "/dev/null":
    with open(given.o, "wb") as f:
        f.write(body)
