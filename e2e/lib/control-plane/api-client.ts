/** Limits one request. */
const requestLimitMs = 60_000

/** An unsuccessful answer of the API. */
export class ApiError extends Error {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** Signs in as a person does and calls tRPC procedures over HTTP. */
export class ApiClient {
  readonly #url: string
  readonly #origin: string
  readonly #cookie: string

  private constructor({ url, origin, cookie }: { url: string; origin: string; cookie: string }) {
    this.#url = url
    this.#origin = origin
    this.#cookie = cookie
  }

  /** @param url the dashboard's address: its /api is the API's */
  static async signIn(url: string, email: string, password: string): Promise<ApiClient> {
    const answer = await fetch(`${url}/api/auth/sign-in/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url },
      body: JSON.stringify({ email, password }),
    })
    if (!answer.ok) throw new Error(`sign-in answered ${answer.status}: ${await answer.text()}`)
    const cookie = answer.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
    return new ApiClient({ url, origin: url, cookie })
  }

  /** Uses the same session at another process of the same API. */
  at(url: string): ApiClient {
    return new ApiClient({ url, origin: this.#origin, cookie: this.#cookie })
  }

  async mutate<T>(procedure: string, input: unknown): Promise<T> {
    const answer = await fetch(`${this.#url}/api/trpc/${procedure}`, {
      method: 'POST',
      headers: { cookie: this.#cookie, 'content-type': 'application/json', origin: this.#origin },
      body: JSON.stringify(input),
      signal: AbortSignal.timeout(requestLimitMs),
    })
    return resultOf(procedure, answer)
  }

  /** Sends bytes to an operation, such as the piece of an upload. */
  patchBytes(path: string, bytes: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<Response> {
    return fetch(`${this.#url}/api/v1${path}`, {
      method: 'PATCH',
      headers: { cookie: this.#cookie, origin: this.#origin, ...headers },
      body: bytes,
      signal: AbortSignal.timeout(requestLimitMs),
    })
  }

  async query<T>(procedure: string, input?: unknown): Promise<T> {
    const query = input === undefined ? '' : `?input=${encodeURIComponent(JSON.stringify(input))}`
    const answer = await fetch(`${this.#url}/api/trpc/${procedure}${query}`, {
      headers: { cookie: this.#cookie },
      signal: AbortSignal.timeout(requestLimitMs),
    })
    return resultOf(procedure, answer)
  }

  /** Fetches an address of the API that is no procedure, such as a file. */
  async text(path: string): Promise<string> {
    const answer = await fetch(`${this.#url}${path}`, { headers: { cookie: this.#cookie } })
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
    return answer.text()
  }
}

async function resultOf<T>(procedure: string, answer: Response): Promise<T> {
  if (!answer.ok) throw new ApiError(`${procedure} answered ${answer.status}: ${await answer.text()}`, answer.status)
  const body = (await answer.json()) as { result: { data: T } }
  return body.result.data
}

export function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set; run these tests by \`npm test\``)
  return value
}
