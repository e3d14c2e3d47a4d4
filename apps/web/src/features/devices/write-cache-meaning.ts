import type { RouterOutputs } from '../../lib/trpc'

export type WriteCache = NonNullable<RouterOutputs['boot']['get']['writeCache']>

/** Emptied by a restart of the device. */
const volatile: WriteCache['class'][] = ['device_ram', 'device_ram_overflow', 'device_ram_local_disk', 'edge']

const places: Record<WriteCache['class'], string> = {
  device_ram: 'the device’s own RAM',
  device_ram_overflow: 'the device’s own RAM, and its edge for what does not fit',
  device_ram_local_disk: 'the device’s own RAM, and a disk of its own for what does not fit',
  edge: 'its edge, until the device or the edge starts again',
  edge_persistent: 'its edge’s disk, kept over restarts',
  private: 'an image of its own at its edge',
}

/** The end of a sentence that begins with where writes go. */
export function writeCachePlace({ class: chosen }: Pick<WriteCache, 'class'>): string {
  return places[chosen]
}

/** The same of a class as the audit log has it; of one that nobody knows, its name. */
export function writeCachePlaceOf(chosen: string): string {
  return Object.entries(places).find(([known]) => known === chosen)?.[1] ?? chosen
}

/** What a fuller and fuller write cache means, and what helps; null below 80 %. */
export function writeCacheMeaning(cache: WriteCache): { sentence: string; meaning: string } | null {
  const { level, state, percent } = cache
  if (state === 'lost')
    return {
      sentence: 'What this device has written is lost.',
      meaning: `${
        cache.class === 'device_ram_local_disk' ? 'Its own disk has failed' : 'Its edge has it no more'
      }: the disk of the device stands still, so that nothing wrong is read. Start it again.`,
    }
  if (state === 'stopped')
    return {
      sentence: 'The write cache is full: the device has been stopped.',
      meaning: `Its disk stands still, as is chosen for its vDisk. ${
        isVolatile(cache) ? 'A restart empties the cache; what was written is lost then.' : keptOverRestarts
      }`,
    }
  if (state === 'read_only')
    return {
      sentence: 'The write cache is full: the device runs, and writes nothing any more.',
      meaning: `So is chosen for its vDisk. What it wrote before can be read. ${whatARestartDoes(cache)}`,
    }
  switch (level) {
    case 'ok':
      return null
    case 'warning':
      return {
        sentence: `The write cache is ${percent} % full.`,
        meaning: `When it is full, nothing more can be written on this device. ${
          isVolatile(cache) ? 'A restart empties it; what was written is lost then.' : keptOverRestarts
        }`,
      }
    case 'critical':
      return {
        sentence: `The write cache is nearly full: ${percent} %.`,
        meaning: `Soon nothing more can be written on this device. ${whatARestartDoes(cache)}`,
      }
    case 'full':
      return {
        sentence: 'The write cache is full.',
        meaning: `What the device writes now fails, and its programs with it. ${whatARestartDoes(cache)}`,
      }
  }
}

const keptOverRestarts = 'A restart does not empty it.'

function isVolatile({ class: chosen }: WriteCache): boolean {
  return volatile.includes(chosen)
}

function whatARestartDoes(cache: WriteCache): string {
  return isVolatile(cache)
    ? 'Save elsewhere what is needed, then restart it: a restart empties the cache.'
    : keptOverRestarts
}

/** Where an administrator gives more room for good; null where room is not what was wanting. */
export function writeCacheRemedy({ class: chosen, state }: WriteCache): string | null {
  if (state === 'lost') return null
  const room =
    chosen === 'device_ram'
      ? 'give it more RAM (bootfarm.overlay= on the command line of its vDisk’s version)'
      : 'give the write cache of its vDisk more room, with which it goes on from its next boot'
  return `For good: ${room}, or write less: logs and temporary files elsewhere.`
}

/** How long it lasts; null where nobody knows, or it is full. */
export function writeCacheForecast({ fullInSeconds }: WriteCache): string | null {
  if (fullInSeconds === null || fullInSeconds === 0) return null
  const minutes = Math.round(fullInSeconds / 60)
  if (minutes < 1) return 'As it fills now, it is full within a minute.'
  if (minutes < 120) return `As it fills now, it is full in ${minutes} min.`
  const hours = Math.round(minutes / 60)
  if (hours < 48) return `As it fills now, it is full in ${hours} h.`
  return `As it fills now, it is full in ${Math.round(hours / 24)} days.`
}
