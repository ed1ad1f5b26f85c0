"""Pays for one clip and prints what came of it."""

import base64
import json
import os

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

client = x402ClientSync()
register_exact_evm_client(client, EthAccountSigner(Account.from_key(os.environ["KEY"])))
order = {"source_url": "https://example.com/film.mp4", "start": 1, "duration": 2}
r = x402_requests(client).post(os.environ["URL"], json=order)
receipt = r.headers.get("x-payment-response")
print(json.dumps({"x402": {"status": r.status_code, "receipt": receipt and json.loads(base64.b64decode(receipt))}}))
