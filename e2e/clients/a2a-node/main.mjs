// Reads the agent card at BASE with the official library of each protocol
// version, and prints what each has seen.
import { DefaultAgentCardResolver as Old } from "a2a-0.3/client";
import { DefaultAgentCardResolver as New } from "a2a-1/client";

const seen = {};
for (const [version, Resolver] of [["0.3", Old], ["1", New]]) {
  const card = await new Resolver().resolve(process.env.BASE);
  const interfaces = card.supportedInterfaces ?? [{ url: card.url, protocolVersion: card.protocolVersion }];
  seen[version] = { Name: card.name, URL: interfaces[0].url, Skills: card.skills.map((s) => s.id), Schemes: Object.keys(card.securitySchemes) };
}
console.log(JSON.stringify(seen));
