import type { RouterOutputs } from '../../lib/trpc'

type Layer = NonNullable<RouterOutputs['device']['get']['layer']>

/** How what the device has written stands to what it would boot without it. */
export function layerStanding(layer: Pick<Layer, 'class' | 'version' | 'currentNumber' | 'releasesBehind'>): string {
  const { version, currentNumber, releasesBehind } = layer
  const stays =
    layer.class === 'private'
      ? 'It stays with that version until it is reset.'
      : 'It is of use to that version alone: with another one the device does not start, and says so.'
  if (!version || currentNumber === null) return stays
  if (version.number === currentNumber) return `${stays} Production devices boot the same version.`
  const behind = !releasesBehind
    ? ''
    : releasesBehind === 1
      ? ', 1 release later'
      : `, ${releasesBehind} releases later`
  return `${stays} Production devices boot version ${currentNumber}${behind}.`
}
