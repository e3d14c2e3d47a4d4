import { TextField } from '../../components/field'

interface PasswordFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
  autoComplete: 'current-password' | 'new-password'
  hint?: string | undefined
}

const passwordLengthMax = 128

export function PasswordField(props: PasswordFieldProps) {
  return <TextField {...props} type="password" maxLength={passwordLengthMax} />
}
