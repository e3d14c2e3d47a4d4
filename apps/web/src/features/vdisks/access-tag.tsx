import { Tag, type Tone } from '../../components/tag'
import type { Version } from './version-types'

type Access = NonNullable<Version['access']>

const looks: Record<Access, { tone: Tone; meaning: string }> = {
  maintenance: { tone: 'silent', meaning: 'One device writes this version. No other device boots it.' },
  test: {
    tone: 'live',
    meaning: 'Sealed. Test devices boot the latest test version that is newer than the default.',
  },
  pending: { tone: 'live', meaning: 'Becomes the default at its release time. Test devices boot it until then.' },
  default: { tone: 'ready', meaning: 'Production devices boot this version unless an override is set.' },
  override: { tone: 'failed', meaning: 'Production devices boot this version until the override is cleared.' },
}

/** How people see a version; one that was released before has no word. */
export function AccessTag({ version }: { version: Version }) {
  if (version.isSealing)
    return (
      <Tag tone="silent" title="The writes are being turned into a version.">
        sealing
      </Tag>
    )
  if (version.access)
    return (
      <Tag tone={looks[version.access].tone} title={looks[version.access].meaning}>
        {version.access}
      </Tag>
    )
  return version.sealedAt === null ? (
    <Tag tone="silent" title="An edge’s store is creating this version. No device boots it yet.">
      being created
    </Tag>
  ) : null
}
