import Link from 'next/link'
import { Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import { Table } from '../../components/table'
import { barScaleUs } from '../boots/boot-bar'
import { bootColumns } from '../boots/boot-columns'
import type { BootSummary } from '../boots/boot-types'

export function LatestBoots({ boots }: { boots: BootSummary[] }) {
  return (
    <Panel
      title="Latest boots"
      flush
      aside={
        <Link href="/boots" className="rounded underline-offset-4 hover:underline">
          All boots
        </Link>
      }
    >
      {boots.length === 0 ? (
        <EmptyState title="No boots yet." text="A boot appears here with its first packet." />
      ) : (
        <Table label="Latest boots" columns={bootColumns(barScaleUs(boots))} rows={boots} rowKey={(boot) => boot.id} />
      )}
    </Panel>
  )
}
