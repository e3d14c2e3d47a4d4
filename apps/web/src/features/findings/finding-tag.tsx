import { Tag, type Tone } from '../../components/tag'
import { type Finding, stateTexts } from './finding-text'

const tones: Record<Finding['state'], Tone> = {
  open: 'failed',
  acknowledged: 'silent',
  muted: 'plain',
  closed: 'ready',
}

export function FindingTag({ state }: { state: Finding['state'] }) {
  return <Tag tone={tones[state]}>{stateTexts[state]}</Tag>
}
