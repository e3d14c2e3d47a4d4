import { execFileSync, spawnSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { findBootPrograms } from '../../../scripts/lib/machines/boot-programs.mjs'
import { edgeProgram } from '../lab/programs.ts'

/**
 * A site's own Secure Boot certificate, as its owner would make one: Debian's test key, which `uefi-secure-site` knows.
 */
export const siteCertificate = '/usr/share/ovmf/PkKek-1-snakeoil.pem'
const siteKey = '/usr/share/ovmf/PkKek-1-snakeoil.key'
const siteKeyPassphrase = 'snakeoil'

/** Why boot programs are missing; undefined where they are there. */
export function bootProgramsMissing(): string | undefined {
  if (findBootPrograms()) return undefined
  return `no boot programs: ${process.env.BOOTFARM_NO_BOOT_PROGRAMS ?? 'npm test fetches them'}`
}

/** The root of Debian's unpacked packages of shim, GRUB and PXELINUX. */
export function unpackedPackages(): string {
  const root = findBootPrograms()
  if (!root) throw new Error('no boot programs')
  return root
}

export function importSets(directory: string, args: string[]): string {
  const command = ['boot-files', 'import', '--boot-files', directory, ...args]
  return execFileSync(edgeProgram, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Runs a command of `bootfarm-edge boot-files`, and returns its result whether or not it failed. */
export function bootFiles(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['boot-files', ...args], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** Signs a UEFI program with the site's key. `scratch` is the caller's folder. */
export function signForSite(program: string, signed: string, scratch: string): void {
  const key = createPrivateKey({ key: readFileSync(siteKey), passphrase: siteKeyPassphrase })
  const plainKey = path.join(scratch, 'site-key.pem')
  writeFileSync(plainKey, key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const sbsign = path.join(unpackedPackages(), 'usr/bin/sbsign')
  execFileSync(sbsign, ['--key', plainKey, '--cert', siteCertificate, '--output', signed, program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}
