import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
} from 'node:crypto'
import { streamCiphers } from '../../src/stream-ciphers.ts'
import { emitStreamPacket } from './emit.ts'
import type { StreamLost, StreamLostAck, StreamPacket } from './packet.ts'
import { headerSize } from './reader.ts'

/**
 * The protection of a session (STREAM.md, "Protection"), with the one of its ciphers that Node.js has. Keys and secrets
 * are bytes, fields of packets are hex.
 */

const tagSize = 16
/** The part of WELCOME that is not encrypted. */
export const welcomeKnownSize = 72

export type Hello = Extract<StreamPacket, { type: 'hello' }>

/** Proves a HELLO, of version 3 with its cookie; its `proof` does not matter. */
export function helloProof(secret: Buffer, hello: Hello): Buffer {
  const cookie = hello.version === 3 ? hello.cookie : '00'.repeat(32)
  return proofOf(secret, { ...hello, cookie, proof: '00'.repeat(32) })
}

/** Proves a LOST or its answer; its `proof` does not matter. */
export function lostProof(secret: Buffer, packet: { version?: 2 | 3 } & (StreamLost | StreamLostAck)): Buffer {
  return proofOf(secret, { ...packet, proof: '00'.repeat(32) })
}

const proofOf = (secret: Buffer, packet: StreamPacket) =>
  createHmac('sha256', secret).update(emitStreamPacket(packet)).digest()

function helloText(hello: Hello): Buffer {
  const { signature: _, ...unsigned } = hello
  return emitStreamPacket({ ...unsigned, cookie: '00'.repeat(32), proof: '00'.repeat(32) })
}

/** RFC 8410: precedes the 32 bytes of an X25519 key. */
const secretPrefix = Buffer.from('302e020100300506032b656e04220420', 'hex')
const publicPrefix = Buffer.from('302a300506032b656e032100', 'hex')

const secretKey = (bytes: Buffer) =>
  createPrivateKey({ key: Buffer.concat([secretPrefix, bytes]), format: 'der', type: 'pkcs8' })

/** Returns the public half of an X25519 key. */
export function publicOf(secret: Buffer): Buffer {
  return createPublicKey(secretKey(secret)).export({ format: 'der', type: 'spki' }).subarray(publicPrefix.length)
}

export interface StreamKeys {
  fromDevice: Buffer
  fromEdge: Buffer
  /** Where the device's packet counter starts. */
  deviceCounterFirst: bigint
}

/** `secret` is the boot token or the resume secret, `ownSecret` and `otherPublic` are X25519 keys. */
export function agreeOnKeys(
  hello: Hello,
  edgePublic: Buffer,
  cipher: (typeof streamCiphers)[number],
  secret: Buffer,
  ownSecret: Buffer,
  otherPublic: Buffer,
): StreamKeys {
  const publicKey = createPublicKey({
    key: Buffer.concat([publicPrefix, otherPublic]),
    format: 'der',
    type: 'spki',
  })
  const shared = diffieHellman({ privateKey: secretKey(ownSecret), publicKey })
  const context = createHash('sha256')
    .update(`bootfarm stream ${hello.version ?? 2}`)
    .update(helloText(hello))
    .update(edgePublic)
    .update(Buffer.of(streamCiphers.indexOf(cipher)))
    .digest()
  const bytes = Buffer.from(hkdfSync('sha256', shared, secret, context, 72))
  return {
    fromDevice: bytes.subarray(0, 32),
    fromEdge: bytes.subarray(32, 64),
    deviceCounterFirst: (bytes.readBigUInt64BE(64) >> 2n) | 1n,
  }
}

function nonceOf(counter: bigint): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeBigUInt64BE(counter, 4)
  return nonce
}

/** Seals a packet with ChaCha20-Poly1305; its first `knownSize` bytes remain readable. */
export function sealPacket(key: Buffer, counter: bigint, packet: Buffer, knownSize = headerSize): Buffer {
  const known = Buffer.from(packet.subarray(0, knownSize))
  known.writeBigUInt64BE(counter, 8)
  const cipher = createCipheriv('chacha20-poly1305', key, nonceOf(counter), { authTagLength: tagSize })
  cipher.setAAD(known, { plaintextLength: packet.length - knownSize })
  const sealed = Buffer.concat([cipher.update(packet.subarray(knownSize)), cipher.final()])
  return Buffer.concat([known, sealed, cipher.getAuthTag()])
}

/** Opens a sealed packet, with this session id in place of its counter; throws where it is not genuine. */
export function openPacket(key: Buffer, sealed: Buffer, sessionId: string, knownSize = headerSize): Buffer {
  const known = Buffer.from(sealed.subarray(0, knownSize))
  const end = sealed.length - tagSize
  if (end < knownSize) throw new Error(`a sealed packet has ${knownSize + tagSize} bytes or more`)
  const decipher = createDecipheriv('chacha20-poly1305', key, nonceOf(known.readBigUInt64BE(8)), {
    authTagLength: tagSize,
  })
  decipher.setAAD(known, { plaintextLength: end - knownSize })
  decipher.setAuthTag(sealed.subarray(end))
  const text = Buffer.concat([decipher.update(sealed.subarray(knownSize, end)), decipher.final()])
  known.write(sessionId, 8, 'hex')
  return Buffer.concat([known, text])
}
