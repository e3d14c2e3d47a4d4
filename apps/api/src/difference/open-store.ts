import { readFile } from 'node:fs/promises'
import { DirectoryStore, type ObjectStore } from './object-store.ts'
import { defaultS3Limits, S3Store } from './s3-store.ts'

export interface StoreSettings {
  BOOTFARM_OBJECTS: string
  /** Empty: that of AWS in the region. */
  OBJECTS_S3_ENDPOINT: string
  OBJECTS_S3_REGION: string
  OBJECTS_S3_BUCKET: string
  OBJECTS_S3_PREFIX: string
  /** Empty: with an endpoint. */
  OBJECTS_S3_PATH_STYLE: '' | 'on' | 'off'
  OBJECTS_S3_ACCESS_KEY_ID: string
  OBJECTS_S3_SECRET_ACCESS_KEY: string
  OBJECTS_S3_SECRET_ACCESS_KEY_FILE: string
}

/**
 * Opens the object store that the environment names: a directory, a bucket, or none. Throws one sentence that names the
 * variable.
 */
export async function openObjectStore(settings: StoreSettings): Promise<ObjectStore | null> {
  const { BOOTFARM_OBJECTS: directory, OBJECTS_S3_BUCKET: bucket } = settings
  if (directory && bucket)
    throw new Error('BOOTFARM_OBJECTS and OBJECTS_S3_BUCKET exclude each other: set one of them.')
  if (!bucket) {
    const set = Object.entries(settings).find(
      ([name, value]) => name.startsWith('OBJECTS_S3_') && name !== 'OBJECTS_S3_REGION' && value,
    )
    if (set) throw new Error(`${set[0]} needs OBJECTS_S3_BUCKET: set it to the name of the bucket.`)
    return directory ? new DirectoryStore(directory) : null
  }
  const { OBJECTS_S3_ENDPOINT: endpoint, OBJECTS_S3_PATH_STYLE: pathStyle, OBJECTS_S3_PREFIX: prefix } = settings
  return new S3Store({
    endpoint: endpoint || null,
    region: settings.OBJECTS_S3_REGION,
    bucket,
    prefix: prefix === '' ? '' : `${prefix.replace(/\/+$/, '')}/`,
    isPathStyle: pathStyle === '' ? endpoint !== '' : pathStyle === 'on',
    keys: await keysOf(settings),
    limits: defaultS3Limits,
  })
}

async function keysOf(settings: StoreSettings) {
  const { OBJECTS_S3_ACCESS_KEY_ID: accessKeyId, OBJECTS_S3_SECRET_ACCESS_KEY: text } = settings
  const { OBJECTS_S3_SECRET_ACCESS_KEY_FILE: file } = settings
  if (text && file)
    throw new Error(
      'OBJECTS_S3_SECRET_ACCESS_KEY and OBJECTS_S3_SECRET_ACCESS_KEY_FILE exclude each other: set one of them.',
    )
  if (!accessKeyId && !text && !file) return null
  if (!accessKeyId) throw new Error('OBJECTS_S3_ACCESS_KEY_ID is not set, and its secret is.')
  if (!text && !file) throw new Error('OBJECTS_S3_SECRET_ACCESS_KEY is not set: set it, or the one with _FILE.')
  return { accessKeyId, secretAccessKey: file ? await readKey(file) : text }
}

async function readKey(file: string): Promise<string> {
  try {
    const key = (await readFile(file, 'utf8')).trim()
    if (key === '') throw new Error('there is no key')
    return key
  } catch (error) {
    throw new Error(`OBJECTS_S3_SECRET_ACCESS_KEY_FILE: ${error instanceof Error ? error.message : String(error)}`)
  }
}
