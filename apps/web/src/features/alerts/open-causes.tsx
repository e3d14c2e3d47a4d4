'use client'

import { useQuery } from '@tanstack/react-query'
import { TextLink } from '../../components/button'
import { Panel } from '../../components/page'
import { Table } from '../../components/table'
import { countOf, formatCount } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { alertRefreshMs } from './alert-refresh'
import { placesText } from './alert-text'

/** Causes that boots of several places fail of; nothing if there are none, since each alert says its own. */
export function OpenCauses() {
  const query = useQuery(useTRPC().alert.openCauses.queryOptions(undefined, { refetchInterval: alertRefreshMs }))
  const causes = query.data?.causes.filter(({ places }) => places.length > 1) ?? []
  if (causes.length === 0) return null
  return (
    <Panel title="Open in several places" flush>
      <Table
        label="Causes in several places"
        rows={causes}
        rowKey={({ cause }) => cause}
        columns={[
          {
            title: 'Cause',
            wide: true,
            cell: (cause) => (
              <div className="min-w-48 whitespace-normal py-1.5">
                <TextLink href={cause.boots}>{cause.sentence}</TextLink>
                <p className="text-2xs text-ink-soft">{placesText(cause)}</p>
              </div>
            ),
          },
          { title: 'Places', align: 'right', cell: ({ places }) => countOf(places.length, 'place') },
          { title: 'Boots', align: 'right', cell: ({ bootCount }) => formatCount(bootCount) },
        ]}
      />
    </Panel>
  )
}
