"""Calls what CALLS names by the methods of the client that openapi-generator made."""
import json
import os
import sys

sys.path.insert(0, os.environ["CLIENT"])
import openapi_client  # noqa: E402


def plain(name):
    return name.replace("_", "").lower()


client = openapi_client.ApiClient(openapi_client.Configuration(host=os.environ["BASE"], access_token=os.environ["KEY"]))
methods = {}
for name in dir(openapi_client):
    if name.endswith("Api"):
        api = getattr(openapi_client, name)(client)
        methods.update({plain(m): getattr(api, m) for m in dir(api) if m.endswith("_with_http_info")})
seen = {}
for call in json.loads(os.environ["CALLS"]):
    method = methods[plain(call["id"] + "WithHttpInfo")]
    body = {}
    if call["body"] is not None:
        model = getattr(openapi_client, call["schema"])
        name = next(p for p in method.__wrapped__.__annotations__ if plain(p) == plain(call["schema"]))
        body[name] = model.from_dict(call["body"])
    try:
        seen[call["id"]] = method(**body).status_code
    except openapi_client.ApiException as e:
        seen[call["id"]] = e.status
print(json.dumps(seen))
