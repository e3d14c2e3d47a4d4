import {
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
  verify,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { StreamHello, StreamLost, StreamLostAck } from './packet.ts'
import { parseStreamPacket } from './parse.ts'
import { agreeOnKeys, type Hello, helloProof, lostProof, openPacket, publicOf, sealPacket } from './seal.ts'

interface Vector {
  version: 2 | 3
  /** Of the device's TPM, what it signed, and its signature. */
  device_key?: string
  signed_digest?: string
  signature?: string
  name: string
  cipher: 'aegis_128l' | 'chacha20_poly1305'
  kind: StreamHello['kind']
  secret: string
  device_secret: string
  device_public: string
  edge_secret: string
  edge_public: string
  packet_size_max: number
  client_nonce: string
  boot_id: string
  ciphers: StreamHello['ciphers']
  /** Only with kind `ticket`. */
  age_us?: string
  ticket?: string
  /** The sent bytes, with the cookie. */
  hello: string
  proof: string
  shared: string
  context: string
  from_device: string
  from_edge: string
  device_counter_first: string
  sealed: {
    packet: string
    direction: 'from_device' | 'from_edge'
    counter: string
    known_size: number
    nonce: string
    sealed: string
  }[]
}

const fileOf = (name: string) => JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8'))
const vectorsOf = (version: 2 | 3): Vector[] =>
  fileOf(`stream-sealed-v${version}.json`).map((vector: Vector) => Object.assign(vector, { version }))
const vectors = [...vectorsOf(2), ...vectorsOf(3)]
const hex = (text: string) => Buffer.from(text, 'hex')

test.each(vectors)('hello and keys of a session of version $version: $name', (vector) => {
  const hello = parseStreamPacket(hex(vector.hello)) as Hello
  const { kind, client_nonce, ciphers, packet_size_max, boot_id, proof, age_us, ticket } = vector
  expect(hello).toMatchObject({ kind, client_nonce, ciphers, packet_size_max, boot_id, proof })
  expect(hello.client_public).toBe(vector.device_public)
  expect(hello.shown).toEqual(kind === 'ticket' ? { age_us, ticket } : undefined)
  const secret = hex(vector.secret)
  expect(publicOf(hex(vector.device_secret)).toString('hex')).toBe(vector.device_public)
  expect(helloProof(secret, hello).toString('hex')).toBe(proof)
  const edgePublic = hex(vector.edge_public)
  const keys = agreeOnKeys(hello, edgePublic, vector.cipher, secret, hex(vector.device_secret), edgePublic)
  expect(keys.fromDevice.toString('hex')).toBe(vector.from_device)
  expect(keys.fromEdge.toString('hex')).toBe(vector.from_edge)
  expect(keys.deviceCounterFirst).toBe(BigInt(`0x${vector.device_counter_first}`))
})

/** RFC 8410: precedes the 32 bytes of an X25519 key. */
const keyOf = (secret: string) =>
  createPrivateKey({ key: hex(`302e020100300506032b656e04220420${secret}`), format: 'der', type: 'pkcs8' })
const publicKeyOf = (bytes: string) =>
  createPublicKey({ key: hex(`302a300506032b656e032100${bytes}`), format: 'der', type: 'spki' })

test.each(vectors)("the steps to the keys, from the vector's secrets: version $version, $name", (vector) => {
  const shared = diffieHellman({
    privateKey: keyOf(vector.edge_secret),
    publicKey: publicKeyOf(vector.device_public),
  })
  expect(shared.toString('hex')).toBe(vector.shared)
  const proofAt = vector.version === 3 ? 120 : 116
  const text = hex(vector.hello)
    .fill(0, 32, 64)
    .fill(0, proofAt, proofAt + 32)
  if (vector.version === 3 && vector.kind === 'token') text.fill(0, 217, 281)
  const cipher = Buffer.of(vector.cipher === 'aegis_128l' ? 1 : 2)
  const spoken = Buffer.concat([
    Buffer.from(`bootfarm stream ${vector.version}`),
    text,
    hex(vector.edge_public),
    cipher,
  ])
  const context = createHash('sha256').update(spoken).digest()
  expect(context.toString('hex')).toBe(vector.context)
  const keys = Buffer.from(hkdfSync('sha256', shared, hex(vector.secret), context, 72)).toString('hex')
  expect(keys.slice(0, 128)).toBe(vector.from_device + vector.from_edge)
})

const signed = vectors.filter((vector) => vector.signature)

test.each(signed)("the device's key has signed the hello: $name", (vector) => {
  const label = Buffer.concat([Buffer.from('bootfarm device identity v1'), Buffer.alloc(5)])
  const hello = hex(vector.hello).fill(0, 120, 152).fill(0, 217, 281)
  const text = Buffer.concat([
    label,
    hex(vector.boot_id + vector.client_nonce),
    hello.subarray(32, 64),
    hex(vector.device_public + vector.device_key),
    createHash('sha256').update(hello).digest(),
  ])
  expect(text).toHaveLength(225)
  expect(createHash('sha256').update(text).digest('hex')).toBe(vector.signed_digest)
  // RFC 5480: precedes an uncompressed point of P-256.
  const point = hex(`3059301306072a8648ce3d020106082a8648ce3d030107034200${vector.device_key}`)
  const key = createPublicKey({ key: point, format: 'der', type: 'spki' })
  const signature = hex(vector.signature ?? '')
  expect(verify('sha256', text, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true)
  text.writeUInt8(text.readUInt8(80) ^ 1, 80)
  expect(verify('sha256', text, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(false)
})

test('some device has signed', () => expect(signed.length).toBeGreaterThan(0))

const lostVectors: { name: string; secret: string; lost: string; lost_ack: string }[] = fileOf('stream-lost-v3.json')

test.each(lostVectors)('the proofs of $name', ({ secret, lost, lost_ack }) => {
  const asked = parseStreamPacket(hex(lost)) as StreamLost
  const answer = parseStreamPacket(hex(lost_ack)) as StreamLostAck
  expect(lostProof(hex(secret), asked).toString('hex')).toBe(asked.proof)
  expect(lostProof(hex(secret), answer).toString('hex')).toBe(answer.proof)
  expect(answer.nonce).toBe(asked.nonce)
})

const sealed = vectors
  .filter(({ cipher }) => cipher === 'chacha20_poly1305')
  .flatMap((vector) => vector.sealed.map((one) => ({ ...one, key: hex(vector[one.direction]) })))

test.each(sealed)('a packet with $known_size readable bytes and $counter is sealed and opened', (vector) => {
  const { key, known_size } = vector
  const packet = hex(vector.packet)
  const bytes = sealPacket(key, BigInt(`0x${vector.counter}`), packet, known_size)
  expect(bytes.toString('hex')).toBe(vector.sealed)
  expect(openPacket(key, bytes, vector.packet.slice(16, 32), known_size)).toEqual(packet)
  const decipher = createDecipheriv('chacha20-poly1305', key, hex(vector.nonce), { authTagLength: 16 })
  decipher.setAAD(bytes.subarray(0, known_size), { plaintextLength: packet.length - known_size })
  decipher.setAuthTag(bytes.subarray(-16))
  const opened = Buffer.concat([decipher.update(bytes.subarray(known_size, -16)), decipher.final()])
  expect(opened).toEqual(packet.subarray(known_size))
  bytes.writeUInt8(bytes.readUInt8(4) ^ 1, 4)
  expect(() => openPacket(key, bytes, vector.packet.slice(16, 32), known_size)).toThrow()
})
