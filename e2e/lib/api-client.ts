/** Signs in as a person does and calls tRPC procedures over HTTP. */
export class ApiClient {
  readonly #url: string
  readonly #cookie: string

  private constructor(url: string, cookie: string) {
    this.#url = url
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
    return new ApiClient(url, cookie)
  }

  async mutate<T>(procedure: string, input: unknown): Promise<T> {
    const answer = await fetch(`${this.#url}/api/trpc/${procedure}`, {
      method: 'POST',
      headers: { cookie: this.#cookie, 'content-type': 'application/json', origin: this.#url },
      body: JSON.stringify(input),
    })
    return resultOf(procedure, answer)
  }

  async query<T>(procedure: string, input?: unknown): Promise<T> {
    const query = input === undefined ? '' : `?input=${encodeURIComponent(JSON.stringify(input))}`
    const answer = await fetch(`${this.#url}/api/trpc/${procedure}${query}`, {
      headers: { cookie: this.#cookie },
    })
    return resultOf(procedure, answer)
  }
}

async function resultOf<T>(procedure: string, answer: Response): Promise<T> {
  if (!answer.ok) throw new Error(`${procedure} answered ${answer.status}: ${await answer.text()}`)
  const body = (await answer.json()) as { result: { data: T } }
  return body.result.data
}

export function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set; run these tests by \`npm test\``)
  return value
}
