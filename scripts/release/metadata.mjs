import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { describeProgram, ensureReleaseKey, writeWhole } from './sign-edge.mjs'

/**
 * A repository of The Update Framework (specification 1.0) with one kind of target: programs of edges.
 * docs/decisions/0043-staging-of-releases.md says who has which key.
 *
 *     metadata/VERSION.root.json, VERSION.targets.json, VERSION.snapshot.json, timestamp.json
 *     targets/bootfarm-edge/VERSION/ARCH/SHA256.bootfarm-edge
 *
 * @typedef {{ root: string[], targets: string[], snapshot: string[], timestamp: string[] }} KeyFiles PEM; a role needs
 *   the private half only where it signs
 */

export const roles = ['root', 'targets', 'snapshot', 'timestamp']
/** A role's metadata expire after this many days. An edge then waits for newer ones, and serves as before. */
export const defaultDays = { root: 730, targets: 180, snapshot: 180, timestamp: 7 }
const specification = '1.0.31'
const dayMs = 86_400_000
/** Of edges: core/update/metadata.zig. */
const targetsSizeMax = 256 * 1024

/**
 * Makes the first root, or the next one. A key file that does not exist is made; `formerRoot` are keys of the root
 * before, of which enough must sign as well.
 * @param {{ repository: string, keys: KeyFiles, formerRoot: string[], threshold: number, days: typeof defaultDays,
 *   now: Date }} options
 * @returns {number} its version
 */
export function makeRoot({ repository, keys, formerRoot, threshold, days, now }) {
  const former = newest(repository, 'root')
  if (former && formerRoot.length === 0)
    throw new UserError('There is a root already; name the keys that sign for it with --former-root.')
  for (const role of roles) for (const file of keys[role]) ensureReleaseKey(file)
  if (threshold < 1 || threshold > keys.root.length)
    throw new UserError(`--threshold must be from 1 to the number of root keys (${keys.root.length}).`)
  const publicKeys = Object.fromEntries(
    roles.flatMap((role) => keys[role].map(publicKey)).map((key) => [keyId(key), key]),
  )
  const idsOf = (role) => [...new Set(keys[role].map((file) => keyId(publicKey(file))))]
  const signed = {
    ...head('root', former, days, now),
    consistent_snapshot: true,
    keys: publicKeys,
    roles: Object.fromEntries(
      roles.map((role) => [role, { keyids: idsOf(role), threshold: role === 'root' ? threshold : 1 }]),
    ),
  }
  const text = signedBy(signed, [...new Set([...formerRoot, ...keys.root])])
  for (const trusted of [former?.signed ?? signed, signed]) requireSigned(text, trusted, 'root')
  publish(repository, `${signed.version}.root.json`, text)
  return signed.version
}

/**
 * Adds programs to the repository and signs what changed; without programs it renews everything that expires.
 * @param {{ repository: string, keys: KeyFiles, programs: string[], days: typeof defaultDays, now: Date }} options
 * @returns {{ version: string, arch: string }[]}
 */
export function addReleases({ repository, keys, programs, days, now }) {
  const root = newest(repository, 'root')
  if (!root) throw new UserError(`${repository} has no root; make it first: node scripts/release/repository.mjs root.`)
  const targets = newest(repository, 'targets')
  const listed = { ...targets?.signed.targets }
  const added = programs.map((program) => {
    const { bytes, version, arch, sha256 } = describeProgram(program)
    const folder = `bootfarm-edge/${version}/${arch}`
    const name = `${folder}/bootfarm-edge`
    if (listed[name] && listed[name].hashes.sha256 !== sha256)
      throw new UserError(`${version} for ${arch} is another program already; build this one with another version.`)
    listed[name] = { hashes: { sha256 }, length: bytes.length }
    mkdirSync(path.join(repository, 'targets', folder), { recursive: true })
    writeWhole(path.join(repository, 'targets', folder, `${sha256}.bootfarm-edge`), bytes, 0o644)
    return { version, arch }
  })
  const say = (role, former, more) => {
    const signed = { ...head(role, former, days, now), ...more }
    const text = signedBy(signed, keys[role])
    requireSigned(text, root.signed, role)
    const isNumbered = role !== 'timestamp'
    publish(repository, isNumbered ? `${signed.version}.${role}.json` : `${role}.json`, text)
    return { hashes: { sha256: sha256Of(text) }, length: text.length, version: signed.version }
  }
  const targetsMeta = say('targets', targets, { targets: listed })
  if (targetsMeta.length > targetsSizeMax) throw new UserError('The list of releases is larger than edges accept.')
  const snapshotMeta = say('snapshot', newest(repository, 'snapshot'), { meta: { 'targets.json': targetsMeta } })
  say('timestamp', readDocument(repository, 'timestamp.json'), { meta: { 'snapshot.json': snapshotMeta } })
  return added
}

function head(role, former, days, now) {
  const expires = new Date(now.getTime() + days[role] * dayMs).toISOString().replace(/\.\d+Z$/, 'Z')
  return { _type: role, spec_version: specification, version: (former?.signed.version ?? 0) + 1, expires }
}

function publicKey(file) {
  const key = createPublicKey(readFileSync(file))
  if (key.asymmetricKeyType !== 'ed25519') throw new UserError(`${file} is not an Ed25519 key.`)
  const raw = key.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  return { keytype: 'ed25519', keyval: { public: raw }, scheme: 'ed25519' }
}

const sha256Of = (bytes) => createHash('sha256').update(bytes).digest('hex')
const keyId = (key) => sha256Of(canonical(key))

function signedBy(signed, files) {
  const text = canonical(signed)
  const signatures = files.map((file) => {
    let key
    try {
      key = createPrivateKey(readFileSync(file))
    } catch {
      throw new UserError(`${file} is not a private key, and cannot sign.`)
    }
    return { keyid: keyId(publicKey(file)), sig: sign(null, Buffer.from(text), key).toString('hex') }
  })
  return canonical({ signatures, signed })
}

/** A signature by too few keys would be refused by every edge. */
function requireSigned(text, root, role) {
  const { keyids, threshold } = root.roles[role]
  const { signatures } = JSON.parse(text)
  const count = new Set(signatures.map(({ keyid }) => keyid).filter((id) => keyids.includes(id))).size
  if (count < threshold)
    throw new UserError(`${role} needs signatures by ${threshold} of its keys, and ${count} of the given ones are.`)
}

/** The newest document of a role whose versions are kept; undefined before the first. */
function newest(repository, role) {
  const folder = path.join(repository, 'metadata')
  if (!existsSync(folder)) return undefined
  const versions = readdirSync(folder).flatMap((name) => {
    const [, number, of] = /^(\d+)\.([a-z]+)\.json$/.exec(name) ?? []
    return of === role ? Number(number) : []
  })
  return versions.length > 0 ? readDocument(repository, `${Math.max(...versions)}.${role}.json`) : undefined
}

function readDocument(repository, name) {
  const file = path.join(repository, 'metadata', name)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

function publish(repository, name, text) {
  mkdirSync(path.join(repository, 'metadata'), { recursive: true })
  writeWhole(path.join(repository, 'metadata', name), text, 0o644)
}

/** OLPC canonical JSON; all strings here are printable ASCII, for which it is what JSON.stringify writes. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}
