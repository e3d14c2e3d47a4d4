import {
  createCipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/**
 * HPKE (RFC 9180) in base mode, one message for each encapsulation: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
 * ChaCha20Poly1305. Only the owner of the recipient's private key can open a box; anybody can make one, so the box must
 * be inside something that is signed.
 */

const pkcs8Prefix = Buffer.from('302e020100300506032b656e04220420', 'hex')
const spkiPrefix = Buffer.from('302a300506032b656e032100', 'hex')
const keySize = 32
const nonceSize = 12
const tagSize = 16

/** `KEM` and the id of DHKEM(X25519, HKDF-SHA256). */
const kemSuite = Buffer.from('KEM\x00\x20', 'latin1')
/** `HPKE` and the ids of KEM, KDF and AEAD. */
const suite = Buffer.from('HPKE\x00\x20\x00\x01\x00\x03', 'latin1')
const baseMode = Buffer.from([0])
const none = Buffer.alloc(0)

export interface BoxContent {
  /** What the box is for: one made for another purpose, or for another edge, does not open. */
  info: Uint8Array
  aad?: Uint8Array
  plaintext: Uint8Array
}

/**
 * Returns the encapsulated key (32 bytes), the ciphertext and the tag (16 bytes). Throws if the recipient's key is one
 * of the few with which every sender would get the same secret.
 * @param recipient the raw 32-byte public key
 * @param ephemeral the raw 32-byte private key of this box alone; only tests name it
 */
export function sealBox(
  recipient: Uint8Array,
  { info, aad = none, plaintext }: BoxContent,
  ephemeral: Uint8Array = randomBytes(keySize),
): Buffer {
  const own = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, ephemeral]), format: 'der', type: 'pkcs8' })
  const other = createPublicKey({ key: Buffer.concat([spkiPrefix, recipient]), format: 'der', type: 'spki' })
  const encapsulated = rawPublicKeyOf(own)
  const dh = diffieHellman({ privateKey: own, publicKey: other })
  const { key, nonce } = messageKey(dh, { encapsulated, recipient, info })
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: tagSize })
  cipher.setAAD(aad, { plaintextLength: plaintext.length })
  return Buffer.concat([encapsulated, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

function rawPublicKeyOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-keySize)
}

export interface BoxKeys {
  encapsulated: Uint8Array
  recipient: Uint8Array
  info: Uint8Array
}

/** RFC 9180, sections 4.1 and 5.1. The nonce is that of sequence number 0: a box has one message. */
export function messageKey(dh: Buffer, { encapsulated, recipient, info }: BoxKeys): { key: Buffer; nonce: Buffer } {
  const eaePrk = labeledExtract(kemSuite, { salt: none, label: 'eae_prk', input: dh })
  const kemContext = Buffer.concat([encapsulated, recipient])
  const shared = labeledExpand(kemSuite, { secret: eaePrk, label: 'shared_secret', info: kemContext, size: keySize })
  const context = Buffer.concat([
    baseMode,
    labeledExtract(suite, { salt: none, label: 'psk_id_hash', input: none }),
    labeledExtract(suite, { salt: none, label: 'info_hash', input: info }),
  ])
  const secret = labeledExtract(suite, { salt: shared, label: 'secret', input: none })
  return {
    key: labeledExpand(suite, { secret, label: 'key', info: context, size: keySize }),
    nonce: labeledExpand(suite, { secret, label: 'base_nonce', info: context, size: nonceSize }),
  }
}

function labeledExtract(
  suiteId: Buffer,
  { salt, label, input }: { salt: Buffer; label: string; input: Uint8Array },
): Buffer {
  return createHmac('sha256', salt).update('HPKE-v1').update(suiteId).update(label).update(input).digest()
}

/** @param size at most 32: the first block of RFC 5869's expansion */
function labeledExpand(
  suiteId: Buffer,
  { secret, label, info, size }: { secret: Buffer; label: string; info: Uint8Array; size: number },
): Buffer {
  const expanded = createHmac('sha256', secret)
    .update(Buffer.from([0, size]))
    .update('HPKE-v1')
    .update(suiteId)
    .update(label)
    .update(info)
    .update(Buffer.from([1]))
    .digest()
  return expanded.subarray(0, size)
}
