import { UserError } from '../lib/fail.mjs'
import { ensureSystemRoot } from '../lib/machines/system-root.mjs'

/**
 * A small Debian for machines that boot over the network, built once.
 * @param {'virtual' | 'full'} kind its kernel's drivers: for virtual machines, or for real ones
 */
export async function debianVdisk(kind) {
  const root = await ensureSystemRoot(kind)
  if ('missing' in root) throw new UserError(`a Debian for machines cannot be made here: ${root.missing}.`)
  return {
    name: kind === 'full' ? 'Debian' : 'Debian for virtual machines',
    disk: root.image,
    kernel: root.vmlinuz,
    initrd: root.initrd,
    // systemd's starts are shown on the console; the kernel's own messages would slow a serial console down.
    commandLine: 'quiet systemd.show_status=1',
  }
}
