import { Tag, type Tone } from '../../components/tag'
import type { Version } from './version-types'

type Access = NonNullable<Version['access']>

const looks: Record<Access, { tone: Tone; meaning: string }> = {
  maintenance: { tone: 'silent', meaning: 'One device writes it; nobody else boots it.' },
  test: {
    tone: 'live',
    meaning: 'Sealed: test devices boot the newest in test that is newer than the default.',
  },
  pending: { tone: 'live', meaning: 'Becomes the default at its instant; test devices boot it until then.' },
  default: { tone: 'ready', meaning: 'What production devices boot, unless there is an override.' },
  override: { tone: 'failed', meaning: 'What production devices boot until the override is taken back.' },
}

/** How people see a version; one that was released before has no word. */
export function AccessTag({ version }: { version: Version }) {
  if (version.isSealing)
    return (
      <Tag tone="silent" title="What was written is being made a version.">
        being sealed
      </Tag>
    )
  if (version.access)
    return (
      <Tag tone={looks[version.access].tone} title={looks[version.access].meaning}>
        {version.access}
      </Tag>
    )
  return version.sealedAt === null ? (
    <Tag tone="silent" title="An edge’s store makes it; nobody boots it yet.">
      being made
    </Tag>
  ) : null
}
