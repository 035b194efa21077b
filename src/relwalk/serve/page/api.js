// The service: JSON, problems as errors, the token, and which run is asked.

const API = "/api/v1";
let token = sessionStorage.getItem("relwalk-token");
let askForToken = async () => null;

export const state = { run: null, runs: [] };

export function onToken(ask) {
  askForToken = ask;
}

/** A problem that the service told, with its cure. */
export class Problem extends Error {
  constructor(status, content) {
    super(content.detail ?? `The service answered ${status}.`);
    Object.assign(this, { status, title: content.title, nearest: content.nearest, code: content.code });
  }
}

async function request(path, options = {}) {
  const headers = { ...(options.headers ?? {}) };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "No answer", detail: "The service does not answer. Start it again: relwalk serve RUN" });
  }
  if (response.status === 401) {
    token = await askForToken(token !== null);
    sessionStorage.setItem("relwalk-token", token);
    return request(path, options);
  }
  if (!response.ok) {
    let content = {};
    try {
      content = await response.json();
    } catch {
      content = { title: response.statusText };
    }
    throw new Problem(response.status, content);
  }
  return response;
}

function address(path, params) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries({ run: state.run, ...params })) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined && one !== "") words.append(name, one);
  }
  return `${API}${path}?${words}`;
}

export async function get(path, params = {}, signal = undefined) {
  return (await request(address(path, params), { signal })).json();
}

/** The same for what may take long: a service that gave up after its time is asked again, for it goes on meanwhile. */
export async function patiently(path, params = {}) {
  for (;;) {
    try {
      return await get(path, params);
    } catch (error) {
      if (error.code !== "late") throw error;
    }
  }
}

export async function post(path, content) {
  const body = JSON.stringify(content);
  return (await request(address(path, {}), { method: "POST", body, headers: { "Content-Type": "application/json" } })).json();
}

export async function bytes(path) {
  return (await request(address(path, {}))).arrayBuffer();
}

/** A file of the service to the downloads, whatever token it needs. */
export async function download(path, params, name) {
  const content = await (await request(address(path, params))).blob();
  await save(content, name);
}

export async function picture(path, params) {
  const content = await (await request(address(path, params))).blob();
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = failed;
    reader.readAsDataURL(content);
  });
}

async function save(content, name) {
  const place = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = place;
  anchor.download = name;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}
