// Questions to the server: each answer comes as lines of JSON, part by part.

const KEY = "jitdb-token";
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36)).join("");

/** Keep the token of the address for this tab, and take it out of the address; whether there was one. */
export function takeToken() {
  const said = new URLSearchParams(location.hash.slice(1));
  const token = said.get("token");
  if (!token) return false;
  sessionStorage.setItem(KEY, token);
  said.delete("token");
  history.replaceState(null, "", location.pathname + (said.size ? `#${said}` : ""));
  return true;
}

export class Failed extends Error {
  constructor(part) {
    super(part.reason);
    this.part = part;
  }
}

/** Ask; `take` gets each part. It ends when the answer does, or `signal` says so; an error of the answer is thrown. */
export async function ask(name, body, take, signal) {
  let response;
  try {
    response = await fetch(`/api/v1/${name}`, {
      method: "POST",
      signal,
      cache: "no-store",
      headers: { "Content-Type": "application/json", "X-Jitdb-Token": sessionStorage.getItem(KEY) || "" },
      body: JSON.stringify({ page: PAGE, ...body }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failed({ kind: "gone", reason: "jitdb explore does not run any more", remedy: "start it again" });
  }
  if (!response.ok) throw new Failed(await refused(response));
  let failed = null;
  await lines(response.body, (part) => {
    if (part.part === "error") failed = new Failed(part);
    else take(part);
  });
  if (failed) throw failed;
}

/** The one part of an answer that has this name. */
export async function askOne(name, body, signal) {
  let found = null;
  await ask(
    name,
    body,
    (part) => {
      if (part.part !== "progress") found ??= part;
    },
    signal,
  );
  return found;
}

async function refused(response) {
  if (response.status === 401) {
    const remedy = "open the address that jitdb explore printed, with all that stands behind the #";
    return { kind: "token", reason: "this tab has no token for this server", remedy };
  }
  const { reason } = await response.json().catch(() => ({ reason: response.statusText }));
  return { kind: "refused", reason, remedy: "" };
}

async function lines(stream, take) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const found = (rest + value).split("\n");
    rest = found.pop();
    for (const line of found) take(JSON.parse(line));
  }
}
