import type { RouterOutputs } from '../../lib/trpc'

export type WriteCache = NonNullable<RouterOutputs['boot']['get']['writeCache']>

/** Emptied by a restart of the device. */
const volatile: WriteCache['class'][] = ['device_ram', 'device_ram_overflow', 'device_ram_local_disk', 'edge']

const places: Record<WriteCache['class'], string> = {
  device_ram: 'device RAM',
  device_ram_overflow: 'device RAM, then the edge',
  device_ram_local_disk: 'device RAM, then a local disk',
  edge: 'edge disk, discarded at reboot',
  edge_persistent: 'edge disk, persistent',
  private: 'private image',
}

/** The end of a sentence that begins with where writes go. */
export function writeCachePlace({ class: chosen }: Pick<WriteCache, 'class'>): string {
  return places[chosen]
}

/** The same for a class in the audit log; for an unknown one, its name. */
export function writeCachePlaceOf(chosen: string): string {
  return Object.entries(places).find(([known]) => known === chosen)?.[1] ?? chosen
}

/** The meaning of a filling write cache, and the remedy; null below 80 %. */
export function writeCacheMeaning(cache: WriteCache): { sentence: string; meaning: string } | null {
  const { level, state, percent } = cache
  if (state === 'lost')
    return {
      sentence: 'The device’s writes are lost.',
      meaning: `${cache.class === 'device_ram_local_disk' ? 'Its local disk failed' : 'The edge no longer has them'}. The device’s disk is stopped so that it cannot read wrong data. Restart the device.`,
    }
  if (state === 'stopped')
    return {
      sentence: 'The write cache is full. The device’s disk is stopped.',
      meaning: `The vDisk is set to stop the disk when the cache is full. ${isVolatile(cache) ? 'A restart empties the cache and discards its data.' : keptOverRestarts}`,
    }
  if (state === 'read_only')
    return {
      sentence: 'The write cache is full. The device’s disk is read-only.',
      meaning: `The vDisk is set to refuse writes when the cache is full. Earlier writes can still be read. ${whatARestartDoes(cache)}`,
    }
  switch (level) {
    case 'ok':
      return null
    case 'warning':
      return {
        sentence: `The write cache is ${percent} % full.`,
        meaning: `When it is full, the device can write nothing more. ${isVolatile(cache) ? 'A restart empties the cache and discards its data.' : keptOverRestarts}`,
      }
    case 'critical':
      return {
        sentence: `The write cache is nearly full: ${percent} %.`,
        meaning: `The device will soon be unable to write. ${whatARestartDoes(cache)}`,
      }
    case 'full':
      return {
        sentence: 'The write cache is full.',
        meaning: `Writes now fail, and programs that write fail with them. ${whatARestartDoes(cache)}`,
      }
  }
}

const keptOverRestarts = 'A restart does not empty it.'

function isVolatile({ class: chosen }: WriteCache): boolean {
  return volatile.includes(chosen)
}

function whatARestartDoes(cache: WriteCache): string {
  return isVolatile(cache)
    ? 'Save important data elsewhere, then restart the device. A restart empties the cache.'
    : keptOverRestarts
}

/** Where an administrator permanently increases the capacity; null if capacity was not the problem. */
export function writeCacheRemedy({ class: chosen, state }: WriteCache): string | null {
  if (state === 'lost') return null
  const room =
    chosen === 'device_ram'
      ? 'add RAM to the device (bootfarm.overlay= on the kernel command line of its vDisk’s version)'
      : 'raise the write cache limit of its vDisk, which applies from the next boot'
  return `Permanent fix: ${room}, or write less, for example by storing logs and temporary files elsewhere.`
}

/** How long it lasts; null if unknown, or if it is full. */
export function writeCacheForecast({ fullInSeconds }: WriteCache): string | null {
  if (fullInSeconds === null || fullInSeconds === 0) return null
  const minutes = Math.round(fullInSeconds / 60)
  if (minutes < 1) return 'Full in less than a minute at the current rate.'
  if (minutes < 120) return `Full in ${minutes} min at the current rate.`
  const hours = Math.round(minutes / 60)
  if (hours < 48) return `Full in ${hours} h at the current rate.`
  return `Full in ${Math.round(hours / 24)} days at the current rate.`
}
