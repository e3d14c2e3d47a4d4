import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { cable, Lab } from '../../../scripts/lib/lab/namespaces.mjs'
import { relay } from '../../../scripts/start/relay.mjs'
import { relayProgram, scratchDirectory } from './programs.ts'
import { RunningProcess } from './running-process.ts'

/** Changes an answer of the control plane on its way to a server. */
export type Tamper = (url: string, body: Buffer) => Buffer

/**
 * A site's server: a small Debian whose changes are discarded, in a network namespace with one address. It reaches the
 * control plane at the URL that the product calls its own.
 */
export class ServerRoot {
  readonly address = '10.79.0.1'
  /** Changes what the server receives, as an attacker in the path could. */
  tamper: Tamper | undefined
  readonly #tree: string
  readonly #lab = new Lab('install')
  readonly #namespace = this.#lab.namespace('s')
  readonly #scratch = scratchDirectory()
  readonly #webPort: number
  readonly #running: RunningProcess[] = []
  #doors: { close(): unknown }[] = []

  private constructor(tree: string, webUrl: string) {
    this.#tree = tree
    this.#webPort = Number(new URL(webUrl).port)
    this.#mount()
    const namespace = this.#namespace
    cable({ namespace, device: 'eth0', address: `${this.address}/24` }, { namespace, device: 'eth0-cable' })
  }

  /** @param webUrl of the product, on this machine's loopback */
  static async create(tree: string, webUrl: string): Promise<ServerRoot> {
    const server = new ServerRoot(tree, webUrl)
    const proxy = await server.#startProxy()
    const socket = path.join(server.#scratch.path, 'control-plane')
    const { port } = proxy.address() as AddressInfo
    server.#doors = [await relay({ path: socket }, { port, host: '127.0.0.1' }), proxy]
    const door = server.#inNamespace(process.execPath, [relayProgram, String(server.#webPort), socket])
    server.#running.push(door)
    while (!server.#namespace.listens(server.#webPort)) await new Promise((resolve) => setTimeout(resolve, 20))
    return server
  }

  /** Runs a program there, as root. `input` becomes its standard input. */
  start(program: string, args: string[], input?: string): RunningProcess {
    const started = this.#inNamespace('unshare', ['--mount', 'sh', '-c', inRoot, this.#root, program, ...args], input)
    this.#running.push(started)
    return started
  }

  /** Types a line into the shell there, so that it appears on no command line. Resolves when all of it is over. */
  async type(line: string, around: string[] = []): Promise<{ code: number | string; output: string }> {
    const [program = 'sh', ...args] = [...around, 'sh']
    const shell = this.start(program, args, `${line}\n`)
    return { code: await shell.ended, output: shell.output }
  }

  /** Lists files that were created or changed since the system was new. */
  changedFiles(): string[] {
    const found = execFileSync('find', [this.#upper, '-type', 'f', '-printf', '/%P\\n'], { encoding: 'utf8' })
    return found.split('\n').filter(Boolean).sort()
  }

  /** Lists those of them that contain this text. */
  filesWith(text: string): string[] {
    return this.changedFiles().filter((file) => readFileSync(path.join(this.#upper, file)).includes(text))
  }

  read(file: string): string {
    return readFileSync(path.join(this.#root, file), 'utf8')
  }

  pathOf(file: string): string {
    return path.join(this.#root, file)
  }

  /** Resets the system to its first day. */
  renew(): void {
    run('umount', this.#root)
    run('rm', '-rf', this.#upper, this.#inScratch('work'))
    this.#mount()
  }

  async remove(): Promise<void> {
    for (const process of this.#running.reverse()) await process.stop()
    for (const door of this.#doors) door.close()
    run('umount', this.#root)
    this.#lab.remove()
    this.#scratch.remove()
  }

  get #root(): string {
    return this.#inScratch('root')
  }

  get #upper(): string {
    return this.#inScratch('changes')
  }

  #mount(): void {
    for (const name of ['root', 'changes', 'work']) mkdirSync(this.#inScratch(name), { recursive: true })
    const layers = `lowerdir=${this.#tree},upperdir=${this.#upper},workdir=${this.#inScratch('work')}`
    run('mount', '-t', 'overlay', 'overlay', '-o', layers, this.#root)
  }

  #inNamespace(program: string, args: string[], input?: string): RunningProcess {
    const inside = this.#namespace.command(program, args)
    const process = new RunningProcess(inside.command, inside.args, {}, input === undefined ? 'ignore' : 'pipe')
    if (input !== undefined) process.end(input)
    return process
  }

  /** Passes everything on to the product, and back; `tamper` sees what comes back from /install. */
  #startProxy(): Promise<http.Server> {
    const server = http.createServer((request, reply) => {
      const { url = '/', method, headers } = request
      const options = { host: '127.0.0.1', port: this.#webPort, path: url, method, headers }
      const onward = http.request(options, (answer) => {
        const { statusCode = 502 } = answer
        const tamper = url.startsWith('/install/') ? this.tamper : undefined
        if (!tamper) {
          reply.writeHead(statusCode, answer.headers)
          answer.pipe(reply)
          return
        }
        const parts: Buffer[] = []
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('end', () => reply.writeHead(statusCode).end(tamper(url, Buffer.concat(parts))))
      })
      onward.on('error', () => reply.destroy())
      reply.on('close', () => onward.destroy())
      request.pipe(onward)
    })
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
  }

  #inScratch(name: string): string {
    return path.join(this.#scratch.path, name)
  }
}

/** Mounts a separate /proc for as long as the program runs. */
const inRoot = 'root=$0; mount -t proc proc "$root/proc" && exec chroot "$root" "$@"'

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
