import type { RouterOutputs } from '../../lib/trpc'

type Layer = NonNullable<RouterOutputs['device']['get']['layer']>

/** How the device's writes relate to the version that it would boot without them. */
export function layerStanding(layer: Pick<Layer, 'class' | 'version' | 'currentNumber' | 'releasesBehind'>): string {
  const { version, currentNumber, releasesBehind } = layer
  const stays =
    layer.class === 'private'
      ? 'It stays on that version until you reset it.'
      : 'It works with that version only. With any other version the device does not boot and reports why.'
  if (!version || currentNumber === null) return stays
  if (version.number === currentNumber) return `${stays} Production devices boot the same version.`
  const behind = !releasesBehind
    ? ''
    : releasesBehind === 1
      ? ', 1 release later'
      : `, ${releasesBehind} releases later`
  return `${stays} Production devices boot version ${currentNumber}${behind}.`
}
