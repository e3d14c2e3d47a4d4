'use client'

import { Button, TextLink } from '../../components/button'
import { Panel, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import type { BootFilters } from '../boots/boot-filters'
import { type AttributeName, attributeTexts, filterOfValue, valueText } from './attribute-text'
import { countText } from './count-text'
import { bootsHref, type ExploreFilters } from './explore-inputs'
import type { Exploration } from './heat-layout'

type Group = Exploration['groups'][number]

interface GroupsPanelProps {
  exploration: Exploration
  by: AttributeName
  filters: ExploreFilters
  /** Shows the boots of one group alone. */
  onOnly: (filters: BootFilters) => void
}

/** Figures of each value of an attribute; each number leads to its boots. */
export function GroupsPanel(props: GroupsPanelProps) {
  const { groups, otherGroups } = props.exploration
  const title = attributeTexts[props.by].title
  const inWords = title.toLowerCase()
  const shown = `the ${groups.length} largest of ${formatCount(groups.length + otherGroups)}`
  return (
    <Panel title={`By ${inWords}`} flush aside={otherGroups > 0 && <span>{shown}</span>}>
      <Table
        label={`Boots by ${inWords}`}
        rows={groups}
        rowKey={({ value }) => String(value)}
        columns={[
          { title, wide: true, cell: (group) => <GroupName by={props.by} group={group} onOnly={props.onOnly} /> },
          ...numberColumns(props),
        ]}
      />
    </Panel>
  )
}

function numberColumns({ exploration: { sample, since, until }, by, filters }: GroupsPanelProps): Column<Group>[] {
  const link = (group: Group, { text, more = {} }: { text: string; more?: BootFilters }) => {
    const ofGroup = filterOfValue(by, group.value)
    if (!ofGroup) return text
    return (
      <TextLink quiet href={bootsHref(filters, { since, until }, { ...ofGroup, ...more })}>
        {text}
      </TextLink>
    )
  }
  const countColumn = (
    title: string,
    { of, ...rest }: { of: (group: Group) => number; meaning?: string; more?: BootFilters },
  ) => ({
    title,
    align: 'right' as const,
    ...(rest.meaning && { meaning: rest.meaning }),
    cell: (group: Group) => link(group, { text: countText(of(group), sample.share), more: rest.more ?? {} }),
  })
  const timeColumn = (title: string, of: (group: Group) => number | null) => ({
    title,
    align: 'right' as const,
    cell: (group: Group) => {
      const us = of(group)
      if (us === null) return <Unknown label="no ready boots" />
      return link(group, { text: formatDuration(us), more: { outcome: 'ready', durationMin: String(us) } })
    },
  })
  return [
    countColumn('Boots', { of: ({ bootCount }) => bootCount }),
    countColumn('Failed', {
      of: ({ failedCount }) => failedCount,
      meaning: 'Failed or timed out',
      more: { outcome: 'unsuccessful' },
    }),
    timeColumn('p50', ({ p50Us }) => p50Us),
    timeColumn('p95', ({ p95Us }) => p95Us),
    timeColumn('p99', ({ p99Us }) => p99Us),
  ]
}

function GroupName({ by, group, onOnly }: Pick<GroupsPanelProps, 'by' | 'onOnly'> & { group: Group }) {
  const text = valueText(by, group)
  const only = filterOfValue(by, group.value)
  return (
    <span className="flex min-w-0 items-center justify-between gap-3">
      <span className="truncate">{text}</span>
      {only && (
        <Button small look="bare" aria-label={`Only ${text}`} onClick={() => onOnly(only)}>
          Only
        </Button>
      )}
    </span>
  )
}
