/** The name of a boot's file: device and start, in characters that every file system accepts. */
export function bootFileName(
  boot: { device: { name: string } | null; mac: string; startedAt: Date },
  extension: string,
): string {
  const machine = namePart(boot.device?.name ?? '') || namePart(boot.mac)
  const at = boot.startedAt.toISOString().slice(0, 19).replaceAll(':', '')
  return `boot-${machine}-${at}Z.${extension}`
}

function namePart(text: string): string {
  return text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 64)
}
