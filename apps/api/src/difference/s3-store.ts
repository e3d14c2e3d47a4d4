import { addAbortSignal, type Readable } from 'node:stream'
import type { ListObjectsV2CommandOutput } from '@aws-sdk/client-s3'
import { differencePieceSize } from '@bootfarm/proto/uplink'
import { type DifferenceKey, isStoredId, type ObjectKey, type ObjectStore } from './object-store.ts'

export interface S3Settings {
  /** Null: that of AWS in the region. */
  endpoint: string | null
  region: string
  bucket: string
  /** Before each key; empty, or ends with a slash. */
  prefix: string
  /** The bucket stands in the path, not in the name of the host. */
  isPathStyle: boolean
  /** Null: those that the SDK finds, such as the role of a machine. */
  keys: { accessKeyId: string; secretAccessKey: string } | null
  limits: { operationMs: number; attempts: number }
}

/** An edge waits for 60 s at most. */
export const defaultS3Limits = { operationMs: 40_000, attempts: 3 }
const connectionMs = 5_000
/** 1,000 objects or folders each. */
const pagesMax = 1_000
const deletionsAtOnce = 16

type Sdk = typeof import('@aws-sdk/client-s3')
type Client = InstanceType<Sdk['S3Client']>
interface Opened {
  sdk: Sdk
  client: Client
}

/**
 * An object store as a bucket. Objects have at most 4 MiB, so each is one request; multipart uploads would not make
 * any difference. The SDK signs the SHA-256 of what is sent, and whoever reads compares with the list of pieces.
 */
export class S3Store implements ObjectStore {
  readonly #settings: S3Settings
  #opened: Promise<Opened> | null = null

  constructor(settings: S3Settings) {
    this.#settings = settings
  }

  async put(key: ObjectKey, bytes: Uint8Array): Promise<void> {
    const { sdk, client } = await this.#open()
    const input = { Bucket: this.#settings.bucket, Key: this.#keyOf(key), Body: bytes, ContentLength: bytes.length }
    await client.send(new sdk.PutObjectCommand(input), { abortSignal: this.#limit() })
  }

  async get(key: ObjectKey): Promise<Uint8Array | null> {
    const { sdk, client } = await this.#open()
    const abortSignal = this.#limit()
    try {
      const input = { Bucket: this.#settings.bucket, Key: this.#keyOf(key) }
      const { Body } = await client.send(new sdk.GetObjectCommand(input), { abortSignal })
      return await readBody(Body as Readable, abortSignal)
    } catch (error) {
      if (error instanceof Error && error.name === 'NoSuchKey') return null
      throw error
    }
  }

  async names({ organizationId, differenceId }: DifferenceKey): Promise<string[]> {
    const below = `${organizationId}/${differenceId}/`
    const names: string[] = []
    for await (const { Contents = [] } of this.#pages(below))
      for (const { Key = '' } of Contents) names.push(Key.slice(this.#settings.prefix.length + below.length))
    return names
  }

  async remove(key: ObjectKey): Promise<void> {
    const { sdk, client } = await this.#open()
    const input = { Bucket: this.#settings.bucket, Key: this.#keyOf(key) }
    await client.send(new sdk.DeleteObjectCommand(input), { abortSignal: this.#limit() })
  }

  /** One by one: not all stores know the deletion of many. */
  async delete({ organizationId, differenceId }: DifferenceKey): Promise<void> {
    const names = await this.names({ organizationId, differenceId })
    for (let from = 0; from < names.length; from += deletionsAtOnce) {
      const some = names.slice(from, from + deletionsAtOnce)
      await Promise.all(some.map((name) => this.remove({ organizationId, differenceId, name })))
    }
  }

  differenceIds(organizationId: string): Promise<string[]> {
    return this.#idsBelow(`${organizationId}/`)
  }

  organizationIds(): Promise<string[]> {
    return this.#idsBelow('')
  }

  /** Only ids: other objects of the bucket are not ours. */
  async #idsBelow(below: string): Promise<string[]> {
    const ids: string[] = []
    for await (const { CommonPrefixes = [] } of this.#pages(below, '/'))
      for (const { Prefix = '' } of CommonPrefixes)
        ids.push(Prefix.slice(this.#settings.prefix.length + below.length, -1))
    return ids.filter(isStoredId)
  }

  async *#pages(below: string, delimiter?: string): AsyncGenerator<ListObjectsV2CommandOutput> {
    const { sdk, client } = await this.#open()
    const { bucket, prefix } = this.#settings
    let token: string | undefined
    for (let page = 0; page < pagesMax; page++) {
      const input = { Bucket: bucket, Prefix: prefix + below, Delimiter: delimiter, ContinuationToken: token }
      const answer = await client.send(new sdk.ListObjectsV2Command(input), { abortSignal: this.#limit() })
      yield answer
      token = answer.NextContinuationToken
      if (!answer.IsTruncated || !token) return
    }
    throw new Error(`the list of ${prefix}${below} does not end after ${pagesMax} pages`)
  }

  #keyOf({ organizationId, differenceId, name }: ObjectKey): string {
    return `${this.#settings.prefix}${organizationId}/${differenceId}/${name}`
  }

  #limit(): AbortSignal {
    return AbortSignal.timeout(this.#settings.limits.operationMs)
  }

  /** The SDK is loaded where it is used: most installations have a directory. */
  #open(): Promise<Opened> {
    this.#opened ??= openClient(this.#settings)
    return this.#opened
  }
}

async function openClient({ endpoint, region, isPathStyle, keys, limits }: S3Settings): Promise<Opened> {
  const sdk = await import('@aws-sdk/client-s3')
  const client = new sdk.S3Client({
    region,
    forcePathStyle: isPathStyle,
    maxAttempts: limits.attempts,
    // Not all stores know the SDK's own checksums, and bytes are compared with the list of pieces.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: connectionMs },
    ...(endpoint === null ? {} : { endpoint }),
    ...(keys === null ? {} : { credentials: keys }),
  })
  return { sdk, client }
}

/** Throws where it is larger than any object of ours. */
async function readBody(body: Readable, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of addAbortSignal(signal, body)) {
    size += chunk.length
    if (size > differencePieceSize) throw new Error(`an object has more than ${differencePieceSize} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
