import { Button } from '../../components/button'

/** What the object has now, where the error says that somebody changed it meanwhile. */
export function staleRevision(error: unknown): number | null {
  const data = typeof error === 'object' && error !== null ? Reflect.get(error, 'data') : undefined
  const revision = typeof data === 'object' && data !== null ? Reflect.get(data, 'revision') : undefined
  return typeof revision === 'number' ? revision : null
}

interface StaleChoiceProps {
  error: unknown
  /** Shows what there is now in place of what was typed. */
  onLoad: () => void
  /** Saves what was typed over what the others changed. */
  onOverwrite: (revision: number) => void
}

/** Two ways out of a change that came too late. Nothing where the error is another one. */
export function StaleChoice({ error, onLoad, onOverwrite }: StaleChoiceProps) {
  const revision = staleRevision(error)
  if (revision === null) return null
  return (
    <div className="flex flex-wrap gap-2">
      <Button onClick={onLoad}>Load latest version</Button>
      <Button onClick={() => onOverwrite(revision)}>Overwrite with my changes</Button>
    </div>
  )
}
