// usage: node agent_session.mjs MODULES FOLDER
//
// A small coding agent, as it runs in a sandbox: it knows its gateway by ANTHROPIC_BASE_URL and
// OPENAI_BASE_URL alone, and has no key but the placeholder that init sets. With each SDK in turn
// it streams an answer that calls a tool, runs the tool's argument as a shell command in FOLDER,
// and sends back its output; then it uploads 20 MB, and leaves an endless stream in the middle. It
// prints a line of JSON for each step; a failure is an exception.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";

const [modules, folder] = process.argv.slice(2);
const load = createRequire(modules + "/");
const { Anthropic } = load("@anthropic-ai/sdk");
const { OpenAI } = load("openai");
const say = (step, value) => process.stdout.write(JSON.stringify({ step, ...value }) + "\n");
const anthropic = new Anthropic({ maxRetries: 0 });
const openai = new OpenAI({ maxRetries: 0 });
const schema = { type: "object", properties: { command: { type: "string" } },
  required: ["command"] };
const settings = { model: "codev-demo", max_tokens: 1000 };
const run = ({ command }) => execFileSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" });
const UPLOAD = 20 * 1000 * 1000;
const LEAVE_AFTER = 3;

async function withAnthropic() {
  const tools = [{ name: "shell", description: "runs a command", input_schema: schema }];
  const messages = [{ role: "user", content: "look around" }];
  let pieces = 0;
  const first = await anthropic.messages.stream({ ...settings, tools, messages })
      .on("text", () => pieces++).finalMessage();
  const call = first.content.find((block) => block.type === "tool_use");
  const content = run(call.input);
  const result = { type: "tool_result", tool_use_id: call.id, content };
  messages.push({ role: "assistant", content: first.content },
                { role: "user", content: [result] });
  const second = await anthropic.messages.stream({ ...settings, tools, messages }).finalMessage();
  say("anthropic", { pieces, stop: first.stop_reason, command: call.input.command,
        text: second.content[0].text });
}

async function withOpenai() {
  const tools = [{ type: "function", function: { name: "shell", parameters: schema } }];
  const messages = [{ role: "user", content: "look around" }];
  let pieces = 0, input = "", id = "";
  for await (const chunk of
    await openai.chat.completions.create({ ...settings, tools, messages, stream: true })) {
    const delta = chunk.choices[0].delta;
    pieces += delta.content ? 1 : 0;
    for (const call of delta.tool_calls ?? []) {
      id ||= call.id;
      input += call.function.arguments;
    }
  }
  const content = run(JSON.parse(input));
  messages.push({ role: "assistant", tool_calls: [{ id, type: "function",
        function: { name: "shell", arguments: input } }] },
                { role: "tool", tool_call_id: id, content });
  let text = "";
  for await (const chunk of
    await openai.chat.completions.create({ ...settings, tools, messages, stream: true }))
    text += chunk.choices[0].delta.content ?? "";
  say("openai", { pieces, command: JSON.parse(input).command, text });
}

async function upload() {
  const body = Buffer.alloc(UPLOAD, "twenty million bytes ");
  const expected = createHash("sha256").update(body).digest("hex");
  const headers = { "content-type": "application/octet-stream" };
  const answer = await anthropic.post("/upload", { body, headers, timeout: 300000 });
  say("upload", { length: answer.length, same: answer.sha256 === expected });
}

async function leave() {
  const stream = await anthropic.messages.create(
    { ...settings, messages: [{ role: "user", content: "go on" }], stream: true },
    { query: { events: "100000" } });
  let pieces = 0;
  for await (const event of stream)
    // the SDK aborts the request
    if (event.type === "content_block_delta" && ++pieces === LEAVE_AFTER) break;
  say("left", { pieces });
}

say("start", { keys: [process.env.ANTHROPIC_API_KEY, process.env.OPENAI_API_KEY] });
await withAnthropic();
await withOpenai();
await upload();
await leave();
say("end");
