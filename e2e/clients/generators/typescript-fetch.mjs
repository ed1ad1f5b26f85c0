// Calls what CALLS names by the methods of the client that openapi-generator made.
const api = await import(process.env.CLIENT + "/index.js");
const config = new api.Configuration({ basePath: process.env.BASE, accessToken: process.env.KEY });
const lower = (s) => s[0].toLowerCase() + s.slice(1);
const methods = {};
for (const [name, type] of Object.entries(api)) {
  if (!name.endsWith("Api") || typeof type !== "function") continue;
  const one = new type(config);
  for (const m of Object.getOwnPropertyNames(type.prototype)) methods[m.toLowerCase()] = one[m].bind(one);
}
const seen = {};
for (const call of JSON.parse(process.env.CALLS)) {
  const request = call.body === null ? {} : { [lower(call.schema)]: api[call.schema + "FromJSON"](call.body) };
  try {
    const answer = await methods[call.id.toLowerCase() + "raw"](request);
    await answer.value();
    seen[call.id] = answer.raw.status;
  } catch (e) {
    if (!(e instanceof api.ResponseError)) throw e;
    seen[call.id] = e.response.status;
  }
}
console.log(JSON.stringify(seen));
