const form = document.querySelector(".try"), out = form.querySelector("output"), stats = form.querySelector(".stats");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  out.textContent = stats.textContent = "";
  const start = performance.now();
  try {
    await ask(start);
  } catch (error) {
    stats.textContent = String(error.message || error);
  }
  button.disabled = false;
});

async function ask(start) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: "Bearer " + form.key.value.trim() },
    body: JSON.stringify({ model: form.model.value, messages: [{ role: "user", content: form.prompt.value }] }),
  });
  if (!response.ok) {
    const body = await response.json();
    throw new Error(response.status + " " + body.error.code + ": " + body.error.message);
  }
  let rest = "", first = 0;
  for await (const piece of pieces(response.body)) {
    const events = (rest + piece).split("\n\n");
    rest = events.pop();
    for (const data of events.filter((e) => e.startsWith("data: {"))) {
      const chunk = JSON.parse(data.slice(6));
      if (chunk.error) throw new Error(chunk.error.message);
      first = first || performance.now() - start;
      for (const choice of chunk.choices) out.textContent += choice.delta.content || "";
      if (chunk.usage) show(chunk.usage, first, performance.now() - start);
    }
  }
}

async function* pieces(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let r = await reader.read(); !r.done; r = await reader.read()) yield r.value;
}

function show(usage, first, all) {
  stats.textContent = "first token " + first.toFixed(0) + " ms · done " + all.toFixed(0) + " ms · " +
    usage.prompt_tokens + " + " + usage.completion_tokens + " = " + usage.total_tokens + " tokens";
}
