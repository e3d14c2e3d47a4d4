import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** A directory as a layer. Owners, times and the order of entries do not depend on the machine. */
export function tarOf(directory: string, file: string): Buffer {
  const options = ['--sort=name', '--mtime=@1700000000', '--owner=0', '--group=0', '--format=pax', '--sparse']
  execFileSync('tar', [...options, '--pax-option=delete=atime,delete=ctime', '-cf', file, '-C', directory, '.'])
  return readFileSync(file)
}

const packers = {
  tar: (bytes: Buffer) => bytes,
  'tar+gzip': (bytes: Buffer) => gzipSync(bytes),
  'tar+zstd': (bytes: Buffer) => zstdCompressSync(bytes),
}

export type Packing = keyof typeof packers

/**
 * Writes an OCI layout (Open Container Initiative, Image Format Specification 1.1, "Image Layout") of one image, the
 * layers packed as `packings` say by turns. Returns the paths of the layers' files.
 */
export function writeOciLayout(directory: string, layers: Buffer[], packings: Packing[]): string[] {
  const blobs = path.join(directory, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const put = (mediaType: string, bytes: Buffer) => {
    const digest = sha256(bytes)
    writeFileSync(path.join(blobs, digest), bytes)
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length }
  }
  const image = (what: string) => `application/vnd.oci.image.${what}`
  const packed = layers.map((layer, index) => {
    const packing = packings[index % packings.length] as Packing
    return put(image(`layer.v1.${packing}`), packers[packing](layer))
  })
  const config = {
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: image('manifest.v1+json'),
    config: put(image('config.v1+json'), Buffer.from(JSON.stringify(config))),
    layers: packed,
  }
  const platform = { architecture: 'amd64', os: 'linux' }
  const manifests = [{ ...put(image('manifest.v1+json'), Buffer.from(JSON.stringify(manifest))), platform }]
  writeFileSync(path.join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }))
  writeFileSync(path.join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  return packed.map(({ digest }) => path.join(blobs, digest.slice('sha256:'.length)))
}

/** Writes what `docker save` wrote before it wrote OCI layouts: a list, a configuration, and layers as they are. */
export function writeDockerArchive(file: string, layers: Buffer[], scratch: string): void {
  mkdirSync(scratch, { recursive: true })
  const names = layers.map((_, index) => `layer-${index}.tar`)
  layers.forEach((layer, index) => {
    writeFileSync(path.join(scratch, names[index] as string), layer)
  })
  const diffIds = layers.map((layer) => `sha256:${sha256(layer)}`)
  const config = { architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: diffIds } }
  writeFileSync(path.join(scratch, 'config.json'), JSON.stringify(config))
  const manifest = [{ Config: 'config.json', RepoTags: ['lab:1'], Layers: names }]
  writeFileSync(path.join(scratch, 'manifest.json'), JSON.stringify(manifest))
  execFileSync('tar', ['-cf', file, '-C', scratch, 'manifest.json', 'config.json', ...names])
}
