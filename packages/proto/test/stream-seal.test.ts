import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { StreamHello } from '../src/stream-packet.ts'
import { agreeOnKeys, helloProof, openPacket, publicOf, sealPacket } from '../src/stream-seal.ts'

interface Vector {
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
  proof: string
  from_device: string
  from_edge: string
  device_counter_first: string
  sealed: {
    packet: string
    direction: 'from_device' | 'from_edge'
    counter: string
    known_size: number
    sealed: string
  }[]
}

const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../vectors/stream-sealed-v2.json', import.meta.url), 'utf8'),
)
const hex = (text: string) => Buffer.from(text, 'hex')

test.each(vectors)('keys of the session: $name', (vector) => {
  const hello: StreamHello = {
    ...{ type: 'hello', client_nonce: vector.client_nonce, cookie: '11'.repeat(32), kind: vector.kind },
    ...{ ciphers: ['aegis_128l', 'chacha20_poly1305'], packet_size_max: vector.packet_size_max },
    ...{ boot_id: vector.boot_id, client_public: vector.device_public, proof: vector.proof },
  }
  const secret = hex(vector.secret)
  expect(publicOf(hex(vector.device_secret)).toString('hex')).toBe(vector.device_public)
  expect(helloProof(secret, hello).toString('hex')).toBe(vector.proof)
  const edgePublic = hex(vector.edge_public)
  const keys = agreeOnKeys(hello, edgePublic, vector.cipher, secret, hex(vector.device_secret), edgePublic)
  expect(keys.fromDevice.toString('hex')).toBe(vector.from_device)
  expect(keys.fromEdge.toString('hex')).toBe(vector.from_edge)
  expect(keys.deviceCounterFirst).toBe(BigInt(`0x${vector.device_counter_first}`))
})

const sealed = vectors
  .filter(({ cipher }) => cipher === 'chacha20_poly1305')
  .flatMap((vector) => vector.sealed.map((one) => ({ ...one, key: hex(vector[one.direction]) })))

test.each(sealed)('a packet of $known_size bytes known and $counter is sealed and opened', (vector) => {
  const { key, known_size } = vector
  const packet = hex(vector.packet)
  const bytes = sealPacket(key, BigInt(`0x${vector.counter}`), packet, known_size)
  expect(bytes.toString('hex')).toBe(vector.sealed)
  expect(openPacket(key, bytes, vector.packet.slice(16, 32), known_size)).toEqual(packet)
  bytes.writeUInt8(bytes.readUInt8(4) ^ 1, 4)
  expect(() => openPacket(key, bytes, vector.packet.slice(16, 32), known_size)).toThrow()
})
