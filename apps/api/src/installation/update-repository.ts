import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import { canonicalJson, type Json } from '../rules/canonical-json.ts'

export interface UpdateSettings {
  /** Made by scripts/release/repository.mjs; null: edges are not updated from here. */
  directory: string | null
  /** PEM; null: somebody else signs the timestamp again before it expires. */
  timestampKey: string | null
}

const metadataName = /^(timestamp|[1-9]\d{0,15}\.(root|targets|snapshot))\.json$/
/** The form that core/update/metadata.zig requests: consistent snapshots. */
const targetName = /^bootfarm-edge\/([0-9A-Za-z.+-]{1,96})\/(x86_64|aarch64)\/([0-9a-f]{64})\.bootfarm-edge$/
const programPath = /^bootfarm-edge\/([0-9A-Za-z.+-]{1,96})\/(x86_64|aarch64)\/bootfarm-edge$/

const timestampDocument = z.object({
  signatures: z.array(z.object({ keyid: z.string() })),
  signed: z.looseObject({ version: z.number().int().min(1), expires: z.iso.datetime() }),
})
const targetsDocument = z.object({ signed: z.object({ targets: z.record(z.string(), z.unknown()) }) })

/** A timestamp is signed again for this long, once half of that has passed. */
const timestampLifeMs = 7 * 86_400_000

/**
 * The repository of The Update Framework from which running edges update themselves. The API has no say in what a
 * release is: it serves files, and says with the timestamp key that they are the newest (record 43).
 */
export class UpdateRepository {
  readonly #directory: string | null
  readonly #key: KeyObject | null

  /** Throws where the key cannot be read. */
  constructor({ directory, timestampKey }: UpdateSettings) {
    this.#directory = directory
    this.#key = timestampKey ? createPrivateKey(readFileSync(timestampKey)) : null
  }

  /** Returns a metadata file. Throws `not_found`: an edge asks for the root after its own until there is none. */
  async metadata(name: string, now: Date): Promise<Buffer> {
    if (!metadataName.test(name)) throw new AppError('not_found')
    if (name === 'timestamp.json') await this.#renewTimestamp(now)
    return this.#read(path.join('metadata', name))
  }

  /** Returns the folder of all targets and the path of one below it. Throws `not_found`. */
  target(name: string): { root: string; file: string } {
    if (!this.#directory || !targetName.test(name)) throw new AppError('not_found')
    return { root: path.resolve(this.#directory, 'targets'), file: name }
  }

  /** Returns the versions of edges in the newest list of targets, and the processors of each. */
  async releases(): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>()
    if (!this.#directory) return found
    const names = await readdir(path.join(this.#directory, 'metadata')).catch(() => [])
    const versions = names.flatMap((name) => /^(\d+)\.targets\.json$/.exec(name)?.[1] ?? []).map(Number)
    if (versions.length === 0) return found
    const text = await this.#read(path.join('metadata', `${Math.max(...versions)}.targets.json`))
    const { signed } = targetsDocument.parse(JSON.parse(text.toString()))
    for (const name of Object.keys(signed.targets)) {
      const [, version, arch] = programPath.exec(name) ?? []
      if (version && arch) found.set(version, [...(found.get(version) ?? []), arch])
    }
    return found
  }

  async #read(name: string): Promise<Buffer> {
    if (!this.#directory) throw new AppError('not_found')
    try {
      return await readFile(path.join(this.#directory, name))
    } catch (cause) {
      throw new AppError('not_found', { cause })
    }
  }

  /** Two API processes may do it at once: both write the same version, of which an edge takes either. */
  async #renewTimestamp(now: Date): Promise<void> {
    if (!this.#directory || !this.#key) return
    const file = path.join(this.#directory, 'metadata', 'timestamp.json')
    const text = await readFile(file, 'utf8').catch(() => null)
    if (text === null) return
    const { signatures, signed } = timestampDocument.parse(JSON.parse(text))
    const keyid = keyIdOf(this.#key)
    // What another key signs, no edge would take from this one.
    if (!signatures.some((signature) => signature.keyid === keyid)) return
    if (Date.parse(signed.expires) - now.getTime() > timestampLifeMs / 2) return
    const expires = new Date(now.getTime() + timestampLifeMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const renewed = { ...signed, version: signed.version + 1, expires } as Json
    const sig = sign(null, Buffer.from(canonicalJson(renewed)), this.#key).toString('hex')
    const part = `${file}.${process.pid}`
    await writeFile(part, canonicalJson({ signatures: [{ keyid, sig }], signed: renewed }))
    await rename(part, file)
  }
}

function keyIdOf(key: KeyObject): string {
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  const described = canonicalJson({ keytype: 'ed25519', keyval: { public: raw }, scheme: 'ed25519' })
  return createHash('sha256').update(described).digest('hex')
}
