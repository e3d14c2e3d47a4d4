import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sealBox } from './sealed-box.ts'

const { rfc9180 } = JSON.parse(readFileSync(new URL('../vectors/sealed-box-v1.json', import.meta.url), 'utf8')) as {
  rfc9180: Record<string, string>
}
const bytes = (name: string) => Buffer.from(rfc9180[name] ?? '', 'hex')
const content = { info: bytes('infoHex'), aad: bytes('aadHex'), plaintext: bytes('plaintextHex') }

test('a box is what RFC 9180 says, appendix A.2.1', () => {
  const box = sealBox(bytes('recipientPublicHex'), content, bytes('ephemeralSecretHex'))
  expect(box.toString('hex')).toBe(`${rfc9180.ephemeralPublicHex}${rfc9180.ciphertextHex}`)
})

test('no two boxes of the same content are alike', () => {
  const boxes = [1, 2].map(() => sealBox(bytes('recipientPublicHex'), content).toString('hex'))
  expect(new Set(boxes).size).toBe(2)
})

test('a key with which every sender gets the same secret is refused', () => {
  expect(() => sealBox(Buffer.alloc(32), content)).toThrow()
})
