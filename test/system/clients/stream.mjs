// usage: node stream.mjs MODULES CLIENT BASE
//
// Streams one answer through CLIENT (fetch, openai, anthropic) from the route at BASE and prints a
// line of JSON for each piece of text as it arrives: {"text":...}; at the end {"end":true}, or
// {"status":...,"error":...} with what the client itself makes of a refusal. MODULES is
// the folder that npm has filled.
import { createRequire } from "node:module";

const [modules, client, base] = process.argv.slice(2);
const load = createRequire(modules + "/");
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const messages = [{ role: "user", content: "hello" }];
const settings = { apiKey: "codev-sandbox", maxRetries: 0 }; // the placeholder that the sandbox has

const clients = {
  async fetch() {
    const answer = await fetch(base + "/v1/messages", { method: "POST", body: "{}" });
    if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
    let rest = "";
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + piece).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = JSON.parse(event.slice(event.indexOf("data: ") + 6));
        if (data.type === "content_block_delta") say({ text: data.delta.text });
      }
    }
  },

  async openai() {
    const { OpenAI } = load("openai");
    const stream = await new OpenAI({ ...settings, baseURL: base + "/v1" }).chat.completions.create(
      { model: "codev-demo", messages, stream: true });
    for await (const chunk of stream) say({ text: chunk.choices[0].delta.content });
  },

  async anthropic() {
    const { Anthropic } = load("@anthropic-ai/sdk");
    const stream = await new Anthropic({ ...settings, baseURL: base }).messages.create(
      { model: "codev-demo", max_tokens: 100, messages, stream: true });
    for await (const event of stream)
      if (event.type === "content_block_delta") say({ text: event.delta.text });
  },
};

try {
  await clients[client]();
  say({ end: true });
} catch (error) {
  say({ status: error.status, error: error.message });
}
