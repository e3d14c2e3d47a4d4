import { writeFileSync } from 'node:fs'
import path from 'node:path'

export interface PvsVersion {
  number: number
  file: string
  description?: string
  access?: number
  size?: number
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Writes a manifest as the console of Citrix Provisioning exports it. */
export function writePvsManifest(file: string, versions: PvsVersion[]): void {
  const elements = versions.map(
    ({ number, file: name, description = '', access = 0, size }) => `  <version>
    <versionNumber>${number}</versionNumber>
    <description>${escaped(description)}</description>
    <type>${number === 0 ? 0 : 1}</type>
    <access>${access}</access>
    <createDate>2024-05-02 08:11:06</createDate>
    <scheduledDate></scheduledDate>
    <deleteWhenFree>0</deleteWhenFree>
    <diskFileName>${name}</diskFileName>
    <size>${size ?? ''}</size>
    <lastWriteTime>2024-05-02T08:20:31</lastWriteTime>
  </version>`,
  )
  const lines = [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<versionManifest>',
    '  <startingVersion>0</startingVersion>',
  ]
  writeFileSync(file, `\ufeff${[...lines, ...elements, '</versionManifest>'].join('\r\n')}\r\n`)
}

/** Files that lie beside disks in a store: settings, whose format is not public, and a lock. */
export function writePvsSideFiles(directory: string, disk: string): void {
  writeFileSync(path.join(directory, `${disk}.pvp`), Buffer.alloc(528_896, 'p'))
  writeFileSync(path.join(directory, `${disk}.1.pvp`), Buffer.alloc(528_896, 'p'))
  writeFileSync(path.join(directory, `${disk}.lok`), '')
}
