'use client'

import { useQuery } from '@tanstack/react-query'
import { Notice, SelectField } from '../../components/field'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'

type ProgramSet = RouterOutputs['site']['bootProgramSets']['sets'][number]

interface BootProgramChoiceProps {
  label: string
  siteId: string
  /** The chosen set; null where the choice is left to what stands above. */
  value: string | null
  /** The meaning of null. */
  inherited: string
  /** The value that applies if nothing is chosen. */
  inheritedSet: string | null
  mayChange: boolean
  onChoose: (set: string | null) => void
}

/** Chooses among the sets that the site's edges report, and warns about problems of the effective one. */
export function BootProgramChoice({
  label,
  siteId,
  value,
  inherited,
  inheritedSet,
  mayChange,
  onChoose,
}: BootProgramChoiceProps) {
  const query = useQuery(useTRPC().site.bootProgramSets.queryOptions({ siteId }))
  const sets = query.data?.sets ?? []
  const isGone = query.data && value !== null && !sets.some(({ name }) => name === value)
  const counts = sets.find(({ name }) => name === (value ?? inheritedSet))
  return (
    <div className="flex flex-col gap-2">
      <SelectField
        label={label}
        value={value ?? ''}
        options={[
          { value: '', label: inherited },
          ...(isGone || (value !== null && !query.data) ? [{ value: value ?? '', label: value ?? '' }] : []),
          ...sets.map((set) => ({ value: set.name, label: `${set.name} (${contents(set)})` })),
        ]}
        onChange={(set) => onChoose(set === '' ? null : set)}
        disabled={!mayChange}
        hint={
          query.data &&
          sets.length === 0 &&
          'No edge of this site reports boot programs. To import them, run bootfarm-edge boot-files.'
        }
      />
      {isGone && <Notice tone="silent">No edge of this site has “{value}”. Devices that use it cannot boot.</Notice>}
      {counts && <SetNotices set={counts} />}
    </div>
  )
}

function SetNotices({ set }: { set: ProgramSet }) {
  return (
    <>
      {set.missingAt.length > 0 && (
        <Notice tone="silent">
          {set.missingAt.map(({ edgeName }) => edgeName).join(', ')} does not have “{set.name}”. Devices cannot boot
          there.
        </Notice>
      )}
      {set.hasGrub && (
        <Notice tone="live">
          Debian’s signed GRUB ignores proxyDHCP. Make the edge the network’s DHCP server, or set the DHCP server’s
          next-server to the edge.
        </Notice>
      )}
    </>
  )
}

/** `iPXE for BIOS and x86-64`. */
function contents({ programs }: ProgramSet): string {
  const kinds = [...new Set(programs.map(({ kind }) => kind))].join(', ')
  const archs = [...new Set(programs.flatMap(({ arch }) => (arch === 'any' ? [] : architectureText[arch])))]
  return archs.length === 0 ? kinds : `${kinds} for ${archs.join(', ')}`
}

export const architectureText = {
  bios: 'BIOS',
  x64_uefi: 'x86-64 UEFI',
  arm64_uefi: 'arm64 UEFI',
  any: 'any',
} as const
