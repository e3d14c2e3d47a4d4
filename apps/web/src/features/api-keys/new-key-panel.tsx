import { Panel } from '../../components/page'
import { ShownSecret } from '../../components/shown-secret'

/** The secret of an API key that was just created or rotated; nothing without one. */
export function NewKeyPanel({ secret }: { secret: string | null }) {
  if (secret === null) return null
  return (
    <Panel title="New API key">
      <ShownSecret
        label="Secret of the new API key"
        secret={secret}
        hint="Copy the secret now. It is shown only once and is not stored."
      />
    </Panel>
  )
}
