import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { sealStateKeys } from './seal-state.ts'
import {
  desiredState,
  type EdgeKeyStatement,
  edgeKeyText,
  enrolRequest,
  heartbeat,
  reportBatch,
  rotateKeyRequest,
  type SealedStateKeys,
  type SigningKeyStatement,
  signingKeyText,
  stateEnvelope,
  stateQuery,
  storeMessage,
} from './uplink.ts'
import {
  publicKeyOf,
  signText,
  stateSignedText,
  type UplinkRequestFacts,
  uplinkSignedText,
  verifyText,
} from './uplink-signature.ts'

interface Key {
  seedHex: string
  publicKey: string
}

interface RequestVector extends Omit<UplinkRequestFacts, 'body'> {
  name: string
  /** One of the two is present; bytes that are not text stand in `bodyHex`. */
  body?: string
  bodyHex?: string
  signedText: string
  signature: string
}

interface StateVector {
  name: string
  verdict: string
  envelope: { payload: string; signature: string; keyId: string; keys?: SigningKeyStatement[] }
}

interface Vectors {
  edgeId: string
  edgeKey: Key
  organizationId: string
  organizationKey: Key
  newEdgeKey: Key
  edgeSealKey: { secretHex: string; publicKey: string }
  sealedKeys: SealedStateKeys
  edgeKeyStatement: EdgeKeyStatement & { text: string }
  signingKeyText: string
  requests: RequestVector[]
  states: StateVector[]
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('../vectors/uplink-v1.json', import.meta.url), 'utf8'))

const bodyOf = ({ body = '', bodyHex }: RequestVector) =>
  bodyHex === undefined ? Buffer.from(body) : Buffer.from(bodyHex, 'hex')
const seedOf = (key: Key) => Buffer.from(key.seedHex, 'hex')

describe('the golden requests of the uplink', () => {
  test('public keys follow from their seeds', () => {
    for (const key of [vectors.edgeKey, vectors.organizationKey]) {
      expect(publicKeyOf(seedOf(key))).toBe(key.publicKey)
    }
  })

  test.each(vectors.requests)('$name is signed as recorded', (vector) => {
    const text = uplinkSignedText({ ...vector, body: bodyOf(vector) })
    expect(text).toBe(vector.signedText)
    expect(signText(text, seedOf(vectors.edgeKey))).toBe(vector.signature)
    expect(verifyText(text, vector.signature, vectors.edgeKey.publicKey)).toBe(true)
    expect(verifyText(`${text} `, vector.signature, vectors.edgeKey.publicKey)).toBe(false)
  })

  test("their bodies are accepted by the API's schemas", () => {
    const messageOf = (name: string) =>
      JSON.parse(vectors.requests.find((vector) => vector.name === name)?.body ?? 'null')
    expect(enrolRequest.safeParse(messageOf('enrolment')).error).toBeUndefined()
    expect(reportBatch.safeParse(messageOf('reports')).error).toBeUndefined()
    expect(heartbeat.safeParse(messageOf('heartbeat')).error).toBeUndefined()
    expect(storeMessage.safeParse(messageOf('store')).error).toBeUndefined()
    const path = vectors.requests.find((vector) => vector.name === 'state')?.path ?? ''
    const query = Object.fromEntries(new URL(path, 'http://edge').searchParams)
    expect(stateQuery.parse(query)).toEqual({ after: '1.5', waitMs: 25_000 })
  })
})

/**
 * Returns the newest key that statements lead to from the pinned one; none where a statement is not signed by the
 * previous key.
 */
function reachedKey(statements: SigningKeyStatement[]): string {
  let key = vectors.organizationKey.publicKey
  for (const statement of statements) {
    if (statement.previousPublicKey !== key) continue
    const text = signingKeyText(vectors.organizationId, statement)
    if (!verifyText(text, statement.signature, key)) return ''
    key = statement.publicKey
  }
  return key
}

describe('the golden statements of new keys', () => {
  test('an edge’s statement is made as recorded', () => {
    const { text, signature, ...keys } = vectors.edgeKeyStatement
    expect(edgeKeyText(vectors.edgeId, keys)).toBe(text)
    expect(signText(text, seedOf(vectors.edgeKey))).toBe(signature)
    expect(publicKeyOf(seedOf(vectors.newEdgeKey))).toBe(keys.newPublicKey)
    expect(rotateKeyRequest.safeParse({ version: 1, statements: [{ ...keys, signature }] }).success).toBe(true)
  })

  test('an organization’s statement is signed as recorded', () => {
    const [first] = vectors.states.flatMap(({ envelope }) => envelope.keys ?? [])
    expect(first && signingKeyText(vectors.organizationId, first)).toBe(vectors.signingKeyText)
  })
})

describe('the golden states of the uplink', () => {
  test('keys are sealed to the edge as recorded, and differently each time', () => {
    const edge = { edgeId: vectors.edgeId, sealKey: vectors.edgeSealKey.publicKey }
    const recorded = vectors.states.find(({ name }) => name === 'with keys sealed to the edge')?.envelope.payload
    const { sealed } = desiredState.parse(JSON.parse(recorded ?? ''))
    expect(sealStateKeys(vectors.sealedKeys, edge, Buffer.alloc(32, 0x71))).toBe(sealed)
    expect(sealStateKeys(vectors.sealedKeys, edge)).not.toBe(sealStateKeys(vectors.sealedKeys, edge))
  })

  test.each(vectors.states)('$name: $verdict', ({ envelope, verdict }) => {
    expect(stateEnvelope.safeParse(envelope).error).toBeUndefined()
    const text = stateSignedText(envelope.payload)
    const genuine = verifyText(text, envelope.signature, reachedKey(envelope.keys ?? []))
    expect(genuine).toBe(verdict !== 'signature_invalid')
    const parsed = desiredState.safeParse(JSON.parse(envelope.payload))
    const usable = genuine && parsed.success && parsed.data.edgeId === vectors.edgeId
    // The API seals boxes and never opens one.
    expect(usable).toBe(verdict === 'accepted' || verdict === 'not_opened')
  })
})
