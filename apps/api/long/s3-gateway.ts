import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import http from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'

const keys = { accessKeyId: 'bootfarm', secretAccessKey: 'a-secret-of-this-test' }
export const bucket = 'differences'

/** Versity's S3 gateway over a directory. */
export class S3Gateway {
  readonly keys = keys
  readonly port: number
  readonly #program: string
  readonly #directory: string
  #process: ChildProcess | null = null

  private constructor(program: string, directory: string, port: number) {
    this.#program = program
    this.#directory = directory
    this.port = port
  }

  static async start(program: string, directory: string): Promise<S3Gateway> {
    mkdirSync(path.join(directory, bucket), { recursive: true })
    const gateway = new S3Gateway(program, directory, await freePort())
    await gateway.start()
    return gateway
  }

  async start(): Promise<void> {
    const { accessKeyId, secretAccessKey } = keys
    const address = `127.0.0.1:${this.port}`
    const args = ['--access', accessKeyId, '--secret', secretAccessKey, '--port', address, '--quiet', '--health', '/up']
    this.#process = spawn(this.#program, [...args, 'posix', this.#directory], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk) => {
        output += chunk
      })
    while (!(await this.#answers())) if (this.#process.exitCode !== null) throw new Error(output)
  }

  /** As a power cut does. */
  async kill(): Promise<void> {
    if (!this.#process || this.#process.exitCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await ended
    this.#process = null
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch(`http://127.0.0.1:${this.port}/up`)).ok
    } catch {
      return false
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** What the proxy does with an answer to a request for an object; null: pass it on. */
export type Fault = 'error' | 'silence' | 'other_bytes' | 'cut' | 'slow' | null

/** Passes requests on to the gateway, or does worse. */
export class FaultyProxy {
  /** Asked for each request. */
  fault: (request: { method: string; path: string }) => Fault = () => null
  /** It changes what is sent, too. */
  garblesBodies = false
  readonly #server: http.Server
  readonly #gateway: { port: number }

  private constructor(gateway: { port: number }) {
    this.#gateway = gateway
    this.#server = http.createServer((request, response) => this.#pass(request, response))
  }

  static async start(gateway: { port: number }): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(gateway)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #pass(request: http.IncomingMessage, response: http.ServerResponse): void {
    const { method = '', url = '', headers } = request
    const fault = this.fault({ method, path: url })
    if (fault === 'silence') {
      request.resume()
      return
    }
    if (fault === 'error') {
      request.resume().on('end', () => response.writeHead(500).end('<html>oops</html>'))
      return
    }
    // The name of the host is signed.
    const options = { host: '127.0.0.1', port: this.#gateway.port, method, path: url, headers, agent: false as const }
    const passed = http.request(options, (answer) => void answerWith(answer, response, fault))
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    if (this.garblesBodies) request.on('data', (chunk: Buffer) => chunk.writeUInt8(chunk.readUInt8(0) ^ 1, 0))
    request.pipe(passed)
  }
}

async function answerWith(answer: http.IncomingMessage, response: http.ServerResponse, fault: Fault): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  response.writeHead(answer.statusCode ?? 502, answer.headers)
  if (fault === 'other_bytes') bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0)
  if (fault === 'slow' || fault === 'cut') {
    response.write(bytes.subarray(0, bytes.length / 2))
    if (fault === 'cut') response.destroy()
    return
  }
  response.end(bytes)
}
