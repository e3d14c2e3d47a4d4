'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import { ListPage } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatBytes, formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, useTRPC } from '../../lib/trpc'
import { useNamedList } from '../../lib/use-named-list'
import { NewVdisk } from './vdisk-actions'

type VdiskSummary = Listed<'vdisk'>

const columns: Column<VdiskSummary>[] = [
  {
    title: 'Name',
    sort: 'name',
    wide: true,
    cell: (vdisk) => <ObjectLink href={`/vdisks/${vdisk.id}`}>{vdisk.name}</ObjectLink>,
  },
  {
    title: 'Default version',
    meaning: 'The version that production devices boot.',
    align: 'right',
    cell: ({ bootedVersion }) => bootedVersion?.number ?? <Unknown label="none" />,
  },
  {
    title: 'Latest version',
    from: 'sm',
    align: 'right',
    cell: ({ newestVersion }) => newestVersion?.number ?? <Unknown label="none" />,
  },
  {
    title: 'Size',
    align: 'right',
    cell: ({ newestVersion }) => (newestVersion ? formatBytes(newestVersion.sizeBytes) : <Unknown />),
  },
  { title: 'Versions', align: 'right', from: 'sm', cell: (vdisk) => formatCount(vdisk.versionCount) },
  {
    title: 'Created',
    sort: 'createdAt',
    align: 'right',
    from: 'md',
    cell: (vdisk) => <Instant at={vdisk.createdAt} />,
  },
]

export function VdisksPage() {
  const trpc = useTRPC()
  const list = useNamedList()
  const query = useInfiniteQuery(
    trpc.vdisk.list.infiniteQueryOptions(list.input, { ...nextPage, placeholderData: keepPreviousData }),
  )
  return (
    <ListPage
      title="vDisks"
      summary="Disk images that many devices boot from."
      actions={<NewVdisk />}
      query={query}
      columns={columns}
      list={list}
      empty={{
        title: 'No vDisks yet.',
        text: 'A vDisk is a disk image with versions. Devices boot the version promoted last.',
      }}
    />
  )
}
