import { SelectField } from '../../components/field'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'

type DeviceType = RouterOutputs['device']['get']['deviceType']

/** Explains which version each type boots: docs/guides/versions.md. */
const meanings: Record<DeviceType, string> = {
  production: 'boots the vDisk’s override version, or its default version',
  test: 'boots the latest test version that is newer than the default, or what production devices boot',
  maintenance: 'writes the maintenance version if it is selected for that, and boots as a test device otherwise',
}

/** The values of the URL's filter. */
export const deviceTypes = ['production', 'test', 'maintenance'] as const
export const deviceTypeOptions = deviceTypes.map((value) => ({ value, label: value }))

interface DeviceTypeFieldProps {
  value: DeviceType
  onChange: (value: DeviceType) => void
}

/** Which version of its vDisk a device gets. */
export function DeviceTypeField({ value, onChange }: DeviceTypeFieldProps) {
  return (
    <SelectField
      label="Type"
      value={value}
      options={deviceTypeOptions}
      onChange={(chosen) => onChange(deviceTypes.find((type) => type === chosen) ?? 'production')}
      hint={`A ${value} device ${meanings[value]}.`}
    />
  )
}

/** Beside a device's name; production, the usual type, is not shown. */
export function DeviceTypeTag({ type }: { type: DeviceType }) {
  if (type === 'production') return null
  return (
    <Tag tone={type === 'maintenance' ? 'silent' : 'live'} title={`This device ${meanings[type]}.`}>
      {type}
    </Tag>
  )
}

export function deviceTypeText(type: DeviceType): string {
  return `${type}: ${meanings[type]}`
}
