import type { TestApi } from './test-api.ts'
import { testOrigin } from './test-constants.ts'

/** A browser before /api/auth: it keeps its cookies. */
export class AuthClient {
  readonly #cookies = new Map<string, string>()
  readonly #api: Pick<TestApi, 'url'>

  constructor(api: Pick<TestApi, 'url'>) {
    this.#api = api
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async post(path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> {
    const answer = await fetch(`${this.#api.url}/api/auth${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: testOrigin, cookie: this.cookie },
      body: JSON.stringify(body),
    })
    this.#keep(answer)
    const text = await answer.text()
    return { status: answer.status, body: text ? JSON.parse(text) : {} }
  }

  /** Without following where it leads to. */
  async get(url: string): Promise<Response> {
    const { pathname, search } = new URL(url)
    const answer = await fetch(`${this.#api.url}${pathname}${search}`, {
      headers: { cookie: this.cookie },
      redirect: 'manual',
    })
    this.#keep(answer)
    return answer
  }

  #keep(answer: Response): void {
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const [name = '', ...value] = pair.split('=')
      if (/max-age=0/i.test(line)) this.#cookies.delete(name)
      else this.#cookies.set(name, value.join('='))
    }
  }
}
