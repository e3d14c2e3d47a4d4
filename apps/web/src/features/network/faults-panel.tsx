import { TextLink } from '../../components/button'
import { Panel } from '../../components/page'
import { Mono, Tag } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { type NetworkPath, type NetworkReport, type PathFault, pathKey, pathName } from './network-text'

/** What the network's owners can check, with the boots and devices behind it. */
export function FaultsPanel({ report: { paths } }: { report: NetworkReport }) {
  const faulty = paths.filter(({ faults }) => faults.length > 0)
  return (
    <Panel title="What to check" flush>
      {faulty.length === 0 ? (
        <p className="p-4 text-ink-soft text-sm">
          No segment loses, reorders or delays packets beyond what chance explains, and no link is slower than the
          others.
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {faulty.map((path) => (
            <FaultyPath key={pathKey(path)} path={path} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function FaultyPath({ path }: { path: NetworkPath }) {
  return (
    <li className="flex break-inside-avoid flex-col gap-3 px-4 py-3">
      <h3 className="flex flex-wrap items-baseline gap-x-2 font-medium text-ink text-sm">
        <span className="wrap-anywhere">{pathName(path)}</span>
        {path.siteName && <span className="font-normal text-ink-soft">{path.siteName}</span>}
      </h3>
      {path.faults.map((fault) => (
        <Fault key={fault.kind} fault={fault} />
      ))}
    </li>
  )
}

function Fault({ fault }: { fault: PathFault }) {
  const { severity, text, check, devices, deviceCount } = fault
  const more = deviceCount - devices.length
  return (
    <div className="flex flex-col gap-1 text-sm">
      <p className="text-ink">
        {severity === 'notice' && <Tag>Notice</Tag>} {text}
      </p>
      <p className="text-ink-soft">{check}</p>
      <p className="flex flex-wrap gap-x-3 gap-y-1 text-ink-faint text-xs">
        {devices.map(({ id, mac, name }) => (
          <span key={mac}>{id ? <TextLink href={`/devices/${id}`}>{name ?? mac}</TextLink> : <Mono>{mac}</Mono>}</span>
        ))}
        {more > 0 && <span>and {countOf(more, 'more device')}</span>}
        <Boots fault={fault} />
      </p>
    </div>
  )
}

function Boots({ fault: { bootIds, bootCount } }: { fault: PathFault }) {
  return (
    <span className="flex flex-wrap gap-x-2">
      {countOf(bootCount, 'boot')}:
      {bootIds.map((id) => (
        <TextLink key={id} href={`/boots/${id}`}>
          {id.slice(0, 8)}
        </TextLink>
      ))}
    </span>
  )
}
