import { TextAreaField } from '../../components/field'

interface PersonalityFieldProps {
  value: string
  onChange: (value: string) => void
}

export function PersonalityField({ value, onChange }: PersonalityFieldProps) {
  return (
    <TextAreaField
      label="Custom attributes"
      value={value}
      onChange={onChange}
      mono
      rows={5}
      hint="One NAME=value per line. Device overrides collection, collection overrides site. Available through the API; edges do not pass them to devices yet."
    />
  )
}
