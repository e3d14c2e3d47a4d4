/** Read at each start, not at build time: one build serves every address of the API. */
export function apiUrl(): string {
  return process.env.API_URL ?? 'http://127.0.0.1:4000'
}

const firstDataMs = { default: 1_000, max: 60_000 }

/** How long a page waits for its data; then it comes without, and the browser requests what is missing. */
export function firstDataLimitMs(): number {
  const { FIRST_DATA_LIMIT_MS: text } = process.env
  if (!text) return firstDataMs.default
  const ms = Number(text)
  if (Number.isInteger(ms) && ms > 0 && ms <= firstDataMs.max) return ms
  throw new Error(`FIRST_DATA_LIMIT_MS is "${text}"; set a whole number of ms from 1 to ${firstDataMs.max}.`)
}

/** Returns whether people open the dashboard over HTTPS, according to its address. */
export function isServedSecurely(): boolean {
  return process.env.WEB_URL?.startsWith('https:') ?? false
}
