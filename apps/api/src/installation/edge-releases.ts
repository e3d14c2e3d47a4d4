import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { verifyText } from '@bootfarm/proto/uplink-signature'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'

export interface InstallationSettings {
  /** `ARCH/bootfarm-edge`, `ARCH/release` and `ARCH/release.sig`; null if no directory is set. */
  directory: string | null
  /** Raw Ed25519 key in base64 that releases are signed by; its private half is never here. */
  publicKey: string | null
  /** The URL at which servers of sites reach the control plane, without a slash at its end. */
  url: string
}

interface SignedRelease extends EdgeRelease {
  text: string
  /** Base64. */
  signature: string
}

const howToSign = 'Run `node scripts/release/main.mjs` on the control plane (docs/guides/operations.md).'

/** The programs for site servers that this control plane hands out, and whether they are what was released. */
export class EdgeReleases {
  readonly settings: InstallationSettings
  /** Hashes of programs by what changes whenever a file does. */
  readonly #hashes = new Map<string, Promise<string>>()

  constructor(settings: InstallationSettings) {
    this.settings = settings
  }

  /** Throws `unavailable` where none may be installed. */
  get publicKey(): string {
    const { publicKey } = this.settings
    if (!publicKey)
      throw unavailable('No edge can be installed: BOOTFARM_RELEASE_KEY is not set for the control plane.')
    return publicKey
  }

  programOf(arch: EdgeArchitecture): string {
    return path.join(this.#directory(), arch, 'bootfarm-edge')
  }

  /**
   * Returns a release whose signature and program are valid. Throws `not_found` if there is none for this processor,
   * and `unavailable` if the existing one must not be served.
   */
  async read(arch: EdgeArchitecture): Promise<SignedRelease> {
    const { publicKey } = this
    const folder = path.join(this.#directory(), arch)
    const [text, signature] = await Promise.all([
      textOf(path.join(folder, 'release'), arch),
      textOf(path.join(folder, 'release.sig'), arch),
    ])
    const release = parseRelease(text)
    if (!release || release.arch !== arch)
      throw unavailable(`The release for ${arch} has no valid description. ${howToSign}`)
    if (!verifyText(text, signature.trim(), publicKey))
      throw unavailable(`The release for ${arch} is not signed by BOOTFARM_RELEASE_KEY. ${howToSign}`)
    if ((await this.#hashOf(this.programOf(arch), arch)) !== release.sha256)
      throw unavailable(`The program for ${arch} does not match its release. ${howToSign}`)
    return { ...release, text, signature: signature.trim() }
  }

  /** Returns the available releases, and the reason if there is none. */
  async describe(): Promise<z.infer<typeof edgeInstallation>> {
    const releases = edgeArchitectures.map(async (arch) => {
      try {
        return { arch, version: (await this.read(arch)).version, problem: null }
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return { arch, version: null, problem: error.publicText }
      }
    })
    return { url: this.settings.url, releases: await Promise.all(releases) }
  }

  #directory(): string {
    const { directory } = this.settings
    if (!directory)
      throw unavailable('No edge can be installed: BOOTFARM_EDGE_BINARIES is not set for the control plane.')
    return directory
  }

  async #hashOf(file: string, arch: string): Promise<string> {
    const { ino, size, mtimeMs } = await stat(file).catch(() => {
      throw missing(arch)
    })
    const key = `${file} ${ino} ${size} ${mtimeMs}`
    const known = this.#hashes.get(key)
    if (known) return known
    // One for each architecture; a new program has another key.
    if (this.#hashes.size >= edgeArchitectures.length) this.#hashes.clear()
    const hash = sha256Of(file)
    this.#hashes.set(key, hash)
    hash.catch(() => this.#hashes.delete(key))
    return hash
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

async function textOf(file: string, arch: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch {
    throw missing(arch)
  }
}

function missing(arch: string): AppError {
  return new AppError('not_found', {
    public: `This control plane has no edge program for ${arch}. Build it (zig build -Darch=${arch}) and sign it: see docs/guides/operations.md.`,
  })
}

function unavailable(sentence: string): AppError {
  return new AppError('unavailable', { public: sentence })
}

/** Processors that edges are built for, as `uname -m` names them. */
export const edgeArchitectures = ['x86_64', 'aarch64'] as const
export type EdgeArchitecture = (typeof edgeArchitectures)[number]

/**
 * A release and the content that its signature covers: five lines (docs/decisions/0010-edge-installation.md). Written
 * by scripts/release/sign-edge.mjs, read here, by install/edge.sh, and by `bootfarm-edge verify-release`.
 */
const releaseText =
  /^bootfarm-edge-release-v1\n(\d+\.\d+\.\d+[0-9A-Za-z.+-]{0,64})\n(x86_64|aarch64)\n([0-9a-f]{64})\n(\d{1,12})\n$/

interface EdgeRelease {
  version: string
  arch: string
  sha256: string
  sizeBytes: number
}

/** Null for anything that is not one. */
function parseRelease(text: string): EdgeRelease | null {
  const [, version, arch, sha256, size] = releaseText.exec(text) ?? []
  if (!version || !arch || !sha256 || !size) return null
  return { version, arch, sha256, sizeBytes: Number(size) }
}

/** The facts that "Add edge" needs before it creates a token. */
export const edgeInstallation = z
  .object({
    url: z.string().describe("The URL of the script and of the edges' uplink, without a slash at its end."),
    releases: z.array(
      z.object({
        arch: z.enum(edgeArchitectures),
        version: z.string().nullable().describe('Null if there is none to install.'),
        problem: z.string().nullable().describe('The reason why there is none.'),
      }),
    ),
  })
  .meta({ id: 'EdgeInstallation' })
