'use client'

import { useQueries } from '@tanstack/react-query'
import { SelectField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type Listed, type RouterInputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { deviceTypeOptions, deviceTypes } from './device-type'

type ChangeMany = RouterInputs['device']['changeMany']
type ListedVdisk = Pick<Listed<'vdisk'>, 'name' | 'farmName' | 'newestVersion'>

const asTheyAre = { value: '', label: 'No change' }

/** Settings for many devices; an empty text leaves each unchanged. */
interface ManyChoices {
  /** An id, or `collection`. */
  vdisk: string
  /** A set's name after `set `, or `inherited`. */
  programs: string
  /** An id, `collection` or `none`. */
  menu: string
  type: string
}

export const noChoices: ManyChoices = { vdisk: '', programs: '', menu: '', type: '' }

interface ManyFieldsProps {
  /** The sites of the devices that are shown. */
  siteIds: string[]
  choices: ManyChoices
  onChoose: (choices: ManyChoices) => void
}

export const enabledOptions = [
  { value: 'yes', label: 'yes' },
  { value: 'no', label: 'No (not served)' },
]

export function ManyFields({ siteIds, choices, onChoose }: ManyFieldsProps) {
  const trpc = useTRPC()
  const vdisks = usePicker('vdisk', {})
  const menus = usePicker('bootMenu', {})
  const sets = useQueries({
    queries: siteIds.map((siteId) => trpc.site.bootProgramSets.queryOptions({ siteId })),
    combine: (results) => [...new Set(results.flatMap(({ data }) => (data?.sets ?? []).map(({ name }) => name)))],
  })
  const choose = (choice: Partial<ManyChoices>) => onChoose({ ...choices, ...choice })
  return (
    <>
      <ObjectPicker
        label="vDisk"
        picker={vdisks}
        value={choices.vdisk}
        first={[asTheyAre, { value: 'collection', label: 'Inherit from collection' }]}
        labelOf={vdiskLabel}
        onChange={(vdisk) => choose({ vdisk })}
      />
      <SelectField
        label="Device type"
        value={choices.type}
        options={[asTheyAre, ...deviceTypeOptions]}
        onChange={(type) => choose({ type })}
        hint="Selects the version of the vDisk. Test devices boot the latest test version unless a newer one was promoted."
      />
      <SelectField
        label="Boot programs"
        value={choices.programs}
        options={[
          asTheyAre,
          { value: 'inherited', label: 'Inherit from collection or site' },
          ...sets.sort().map((name) => ({ value: `set ${name}`, label: name })),
        ]}
        onChange={(programs) => choose({ programs })}
        hint="Sets that the edges of these sites have."
      />
      <ObjectPicker
        label="Boot menu"
        picker={menus}
        value={choices.menu}
        first={[
          asTheyAre,
          { value: 'collection', label: 'Inherit from collection' },
          { value: 'none', label: 'No menu' },
        ]}
        labelOf={({ name, farmName }) => `${name}, ${farmName}`}
        onChange={(menu) => choose({ menu })}
      />
    </>
  )
}

/** The devices may belong to any farm, so the label names the vDisk's. */
export function vdiskLabel({ name, farmName, newestVersion }: ListedVdisk): string {
  return `${name}, ${farmName}${newestVersion ? '' : ' (no version yet)'}`
}

/** Returns the choices in the form that the API accepts. */
export function manyInput({ vdisk, programs, menu, type }: ManyChoices): Partial<ChangeMany> {
  const deviceType = deviceTypes.find((one) => one === type)
  return {
    ...(vdisk && { vdiskId: vdisk === 'collection' ? null : vdisk }),
    ...(programs && { bootProgramSet: programs === 'inherited' ? null : programs.slice('set '.length) }),
    ...(deviceType && { deviceType }),
    ...(menu && { menu: menuOf(menu) }),
  }
}

function menuOf(menu: string): NonNullable<ChangeMany['menu']> {
  return menu === 'collection' || menu === 'none' ? { choice: menu } : { choice: 'own', menuId: menu }
}
