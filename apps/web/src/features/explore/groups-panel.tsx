'use client'

import { Button, TextLink } from '../../components/button'
import { Panel, Unknown } from '../../components/page'
import { Table } from '../../components/table'
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
export function GroupsPanel({ exploration, by, filters, onOnly }: GroupsPanelProps) {
  const { groups, otherGroups, sample, since, until } = exploration
  const link = (group: Group, { text, more = {} }: { text: string; more?: BootFilters }) => {
    const ofGroup = filterOfValue(by, group.value)
    return ofGroup ? (
      <TextLink quiet href={bootsHref(filters, { since, until }, { ...ofGroup, ...more })}>
        {text}
      </TextLink>
    ) : (
      text
    )
  }
  const timeColumn = (title: string, of: (group: Group) => number | null) => ({
    title,
    align: 'right' as const,
    cell: (group: Group) => {
      const us = of(group)
      if (us === null) return <Unknown label="no ready boots" />
      return link(group, { text: formatDuration(us), more: { outcome: 'ready', durationMin: String(us) } })
    },
  })
  return (
    <Panel
      title={`By ${attributeTexts[by].title.toLowerCase()}`}
      flush
      aside={
        otherGroups > 0 && (
          <span>
            the {groups.length} largest of {formatCount(groups.length + otherGroups)}
          </span>
        )
      }
    >
      <Table
        label={`Boots by ${attributeTexts[by].title.toLowerCase()}`}
        rows={groups}
        rowKey={({ value }) => String(value)}
        columns={[
          {
            title: attributeTexts[by].title,
            wide: true,
            cell: (group) => <GroupName by={by} group={group} onOnly={onOnly} />,
          },
          {
            title: 'Boots',
            align: 'right',
            cell: (group) => link(group, { text: countText(group.bootCount, sample.share) }),
          },
          {
            title: 'Failed',
            meaning: 'Failed or timed out',
            align: 'right',
            cell: (group) =>
              link(group, { text: countText(group.failedCount, sample.share), more: { outcome: 'unsuccessful' } }),
          },
          timeColumn('p50', ({ p50Us }) => p50Us),
          timeColumn('p95', ({ p95Us }) => p95Us),
          timeColumn('p99', ({ p99Us }) => p99Us),
        ]}
      />
    </Panel>
  )
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
