import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'

/** docs/decisions/0010-edge-installation.md describes what is signed and who verifies it. */
const head = 'bootfarm-edge-release-v1'
/** In the program's bytes: `release_mark` in edge/streamer-zig/src/base/base.zig. */
const mark = /bootfarm release mark: (\d+\.\d+\.\d+[0-9A-Za-z.+-]*) (x86_64|aarch64)\n/
/** e_machine of an ELF header. */
const machines = { x86_64: 62, aarch64: 183 }

/**
 * The key that releases are signed by, made at the first call.
 * @param {string} file PEM, readable by its owner alone
 * @returns {string} the public half, raw, in base64
 */
export function ensureReleaseKey(file) {
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true })
    const { privateKey } = generateKeyPairSync('ed25519')
    writeWhole(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), 0o600)
  }
  return createPublicKey(readFileSync(file)).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
}

/**
 * Copies a program to where the API hands it out, with what proves it. A release that is there already stays as it is.
 * @param {{ key: string, out: string, program: string }} options
 * @returns {{ version: string, arch: string }}
 */
export function signEdge({ key, out, program }) {
  const { bytes, version, arch, sha256 } = describeProgram(program)
  const text = `${[head, version, arch, sha256, bytes.length].join('\n')}\n`
  const signature = sign(null, Buffer.from(text), createPrivateKey(readFileSync(key))).toString('base64')
  const folder = path.join(out, arch)
  mkdirSync(folder, { recursive: true })
  const isThere = (name, content) =>
    existsSync(path.join(folder, name)) && readFileSync(path.join(folder, name), 'utf8') === content
  // Ed25519 has one signature for a text and a key.
  if (isThere('release', text) && isThere('release.sig', `${signature}\n`) && isProgram(folder, sha256))
    return { version, arch }
  writeWhole(path.join(folder, 'bootfarm-edge'), bytes, 0o755)
  writeWhole(path.join(folder, 'release'), text, 0o644)
  writeWhole(path.join(folder, 'release.sig'), `${signature}\n`, 0o644)
  return { version, arch }
}

/**
 * Reads a program, and what it says about itself.
 * @param {string} program
 */
export function describeProgram(program) {
  if (!existsSync(program)) throw new UserError(`${program} is not there; build it first.`)
  const bytes = readFileSync(program)
  const [, version, arch] = mark.exec(bytes.toString('latin1')) ?? []
  if (!version || bytes.readUInt16LE(18) !== machines[arch])
    throw new UserError(`${program} is not a bootfarm-edge that can be released.`)
  return { bytes, version, arch, sha256: createHash('sha256').update(bytes).digest('hex') }
}

function isProgram(folder, sha256) {
  const file = path.join(folder, 'bootfarm-edge')
  return existsSync(file) && createHash('sha256').update(readFileSync(file)).digest('hex') === sha256
}

/** A concurrent reader gets the old file or the new one. */
export function writeWhole(file, content, mode) {
  writeFileSync(`${file}.new`, content, { mode })
  renameSync(`${file}.new`, file)
}
