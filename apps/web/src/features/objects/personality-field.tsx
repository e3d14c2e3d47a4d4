import { TextAreaField } from '../../components/field'

interface PersonalityFieldProps {
  value: string
  onChange: (value: string) => void
}

export function PersonalityField({ value, onChange }: PersonalityFieldProps) {
  return (
    <TextAreaField
      label="Names and values"
      value={value}
      onChange={onChange}
      mono
      rows={5}
      hint="One NAME=value a line. A device has its site’s, its collection’s in place of those, and its own in place of both. They are kept for the API; edges do not hand them to devices yet."
    />
  )
}
