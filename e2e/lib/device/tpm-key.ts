import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { emitStreamPacket } from '@bootfarm/proto/testing/stream-emit'
import type { Hello } from '@bootfarm/proto/testing/stream-seal'

const label = Buffer.from('bootfarm device identity v1'.padEnd(32, '\0'))

/** The key that a device has in its TPM, without the TPM (packages/proto/STREAM.md, "Device identity"). */
export class TpmKey {
  readonly #secret: KeyObject
  /** 65 bytes in hex: 4, x, y. */
  readonly publicKey: string

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#secret = privateKey
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    this.publicKey = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]).toString(
      'hex',
    )
  }

  /** As `bootfarm-target identity` prints it. */
  get fingerprint(): string {
    return createHash('sha256').update(Buffer.from(this.publicKey, 'hex')).digest('hex')
  }

  /** Returns the HELLO with this key and its signature; the proof covers both, and comes afterwards. */
  signed(hello: Hello): Hello {
    const unsigned: Hello = { ...hello, device_key: this.publicKey, proof: '00'.repeat(32) }
    const text = Buffer.concat([
      label,
      ...[hello.boot_id, hello.client_nonce, hello.cookie, hello.client_public, this.publicKey].map((field) =>
        Buffer.from(field, 'hex'),
      ),
      createHash('sha256').update(emitStreamPacket(unsigned)).digest(),
    ])
    const signature = sign('sha256', text, { key: this.#secret, dsaEncoding: 'ieee-p1363' })
    return { ...unsigned, signature: signature.toString('hex') }
  }
}
