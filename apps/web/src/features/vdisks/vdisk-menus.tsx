import Link from 'next/link'
import { Panel } from '../../components/panel'
import type { RouterOutputs } from '../../lib/trpc'

type VdiskDetail = RouterOutputs['vdisk']['get']

/** Which boot menus start it, and so why it cannot be removed; nothing where none does. */
export function VdiskMenus({ menus }: { menus: VdiskDetail['menus'] }) {
  if (menus.length === 0) return null
  return (
    <Panel title="Boot menus">
      <ul className="flex flex-col gap-1.5 text-sm">
        {menus.map(({ id, name, versionNumbers }) => (
          <li key={id}>
            <Link
              prefetch={false}
              href={`/boot-menus/${id}`}
              className="rounded font-medium text-ink underline-offset-4 hover:underline"
            >
              {name}
            </Link>
            <span className="text-ink-soft">: {versionNumbers.map(versionText).join(', ')}</span>
          </li>
        ))}
      </ul>
      <p className="mt-3 text-ink-soft text-xs">
        A version in a boot menu cannot be deleted. Remove its menu entry first.
      </p>
    </Panel>
  )
}

function versionText(number: number | null): string {
  return number === null ? 'latest version' : `version ${number}`
}
