import { Dot, Tag, type Tone } from '../../components/tag'

/** How many of a site's edges are online. */
export function EdgesOnline({ edgeCount, edgesOnline }: { edgeCount: number; edgesOnline: number }) {
  if (edgeCount === 0) return <Tag title="Devices of this site are not served.">no edges</Tag>
  const tone: Tone = edgesOnline === edgeCount ? 'ready' : edgesOnline === 0 ? 'failed' : 'silent'
  return (
    <Tag tone={tone}>
      <Dot tone={tone} />
      {edgesOnline} of {edgeCount} online
    </Tag>
  )
}
