/** Read at each start, not at build time: one build serves every address of the API. */
export function apiUrl(): string {
  return process.env.API_URL ?? 'http://127.0.0.1:4000'
}

/** Returns whether people open the dashboard over HTTPS, according to its address. */
export function isServedSecurely(): boolean {
  return process.env.WEB_URL?.startsWith('https:') ?? false
}
