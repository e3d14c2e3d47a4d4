'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Button, LinkButton, TextLink } from '../../components/button'
import { EmptyState, ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { attributeTexts, filterOfValue, valueText } from './attribute-text'
import { boxText } from './box-text'
import { compareHref } from './compare-inputs'
import { countText } from './count-text'
import {
  type Box,
  bootsHref,
  differencesInput,
  type ExploreFilters,
  type ExploreInput,
  filtersOfBox,
} from './explore-inputs'
import type { Exploration } from './heat-layout'

type Differences = RouterOutputs['explore']['differences']
type Difference = Differences['values'][number]

interface DifferencesPanelProps {
  box: Box
  filters: ExploreFilters
  input: ExploreInput
  span: Pick<Exploration, 'since' | 'until'>
  onZoom: () => void
  onClear: () => void
}

/** What the boots of a box have more often than the others. */
export function DifferencesPanel({ box, filters, input, span, onZoom, onClear }: DifferencesPanelProps) {
  const trpc = useTRPC()
  const query = useQuery(
    // The same span as the map: without it, the API's would end now.
    trpc.explore.differences.queryOptions(differencesInput({ ...input, since: span.since, until: span.until }, box), {
      placeholderData: keepPreviousData,
    }),
  )
  const { data } = query
  return (
    <Panel
      title="What these boots have more often"
      flush
      aside={
        <>
          <Button small look="bare" onClick={onZoom}>
            Zoom to the time
          </Button>
          <Button small look="bare" onClick={onClear}>
            Clear the box
          </Button>
        </>
      }
    >
      {data ? (
        <>
          <div className="flex flex-wrap items-center justify-between gap-3 px-4 py-3">
            <p className="text-ink-soft text-sm">{summaryOf(box, data)}</p>
            <BoxLinks box={box} filters={filters} span={span} />
          </div>
          <DifferencesTable differences={data} hrefOf={(one) => hrefOf(one, { box, filters, span })} />
        </>
      ) : query.error ? (
        <ErrorState
          title="Could not compare the boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Comparing the boots">
          <Skeleton className="m-4 h-32" />
        </LoadingState>
      )}
    </Panel>
  )
}

/** To the boots of the box, and to their comparison with all of the page. */
function BoxLinks({ box, filters, span }: Pick<DifferencesPanelProps, 'box' | 'filters' | 'span'>) {
  const { by: _by, box: _box, sort: _sort, period: _period, slower: _slower, ...all } = filters
  const ofBox = filtersOfBox(box, filters, span)
  const { since, until } = span
  return (
    <div className="flex flex-wrap gap-2">
      <LinkButton href={compareHref({ set: { ...all, ...ofBox }, base: { ...all, since, until } })}>
        Compare with all
      </LinkButton>
      <LinkButton href={bootsHref(filters, span, ofBox)}>View these boots</LinkButton>
    </div>
  )
}

function summaryOf(box: Box, { inside, outside, comparedCount }: Differences): string {
  const boots = countText(inside.bootCount, inside.share)
  return `${boxText(box, boots)}, compared with ${countText(outside.bootCount, outside.share)} others by ${formatCount(comparedCount)} values.`
}

function hrefOf(
  { attribute, value }: Difference,
  { box, filters, span }: Pick<DifferencesPanelProps, 'box' | 'filters' | 'span'>,
) {
  const ofValue = filterOfValue(attribute, value)
  return ofValue && bootsHref(filters, span, { ...filtersOfBox(box, filters, span), ...ofValue })
}

interface DifferencesTableProps {
  differences: Differences
  hrefOf: (difference: Difference) => string | null
}

function DifferencesTable({ differences: { values, inside, outside }, hrefOf }: DifferencesTableProps) {
  if (values.length === 0)
    return (
      <EmptyState title="Nothing differs." text="No value is more frequent among these boots than among the others." />
    )
  return (
    <Table
      label="What these boots have more often"
      rows={values}
      rowKey={({ attribute, value }) => `${attribute} ${value}`}
      columns={[
        {
          title: 'Value',
          wide: true,
          cell: (one) => (
            <span className="flex flex-wrap items-center gap-x-2">
              <span className="text-ink-faint">{attributeTexts[one.attribute].title}</span>
              <span>{valueText(one.attribute, one)}</span>
              {!one.isClear && (
                <Tag title="The interval of the ratio reaches 1: chance explains it, too.">may be chance</Tag>
              )}
            </span>
          ),
        },
        {
          title: 'Of these',
          meaning: 'Boots of the box that have it',
          align: 'right',
          cell: (one) => <Share count={one.insideCount} of={inside} href={hrefOf(one)} />,
        },
        {
          title: 'Of the others',
          align: 'right',
          from: 'sm',
          cell: (one) => <Share count={one.outsideCount} of={outside} href={null} />,
        },
        {
          title: 'Odds',
          meaning:
            'Odds of the value among these boots over those among the others, with a 95 % interval for all values together',
          align: 'right',
          cell: ({ oddsRatio, low, high }) => (
            <span className="whitespace-nowrap">
              {ratioText(oddsRatio)}{' '}
              <span className="text-ink-faint">
                ({ratioText(low)}–{ratioText(high)})
              </span>
            </span>
          ),
        },
      ]}
    />
  )
}

function Share({ count, of, href }: { count: number; of: Differences['inside']; href: string | null }) {
  const percent = of.bootCount === 0 ? 0 : (count / of.bootCount) * 100
  const text = countText(count, of.share)
  return (
    <span className="whitespace-nowrap">
      {percent.toFixed(percent < 10 ? 1 : 0)}
      {'\u00a0% '}
      <span className="text-ink-faint">
        (
        {href ? (
          <TextLink quiet href={href}>
            {text}
          </TextLink>
        ) : (
          text
        )}
        )
      </span>
    </span>
  )
}

function ratioText(ratio: number): string {
  if (ratio >= 1000) return '> 1,000'
  return `${ratio.toLocaleString('en', { maximumSignificantDigits: 2 })}×`
}
