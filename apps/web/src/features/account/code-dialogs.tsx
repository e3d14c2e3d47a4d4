'use client'

import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { InfoDialog } from '../../components/info-dialog'
import { authClient, authProblem, unreachable } from '../session/auth-client'
import { BackupCodes } from './backup-codes'
import { PasswordField } from './password-field'
import { useAsked } from './use-asked'

interface PasswordDialogProps {
  title: string
  action: string
  text: string
  /** The answer of a request that takes the password: its error, or none. */
  request: (password: string) => Promise<{ error: Parameters<typeof authProblem>[0] }>
  onClose: () => void
}

/** What is done for nobody who only sits before an open session. */
function PasswordDialog({ title, action, text, request, onClose }: PasswordDialogProps) {
  const [password, setPassword] = useState('')
  const { failure, isBusy, ask } = useAsked(async () => {
    const { error } = await request(password).catch(unreachable)
    return authProblem(error, 'The password is incorrect.')
  })
  return (
    <FormDialog
      title={title}
      action={action}
      busy={isBusy}
      disabled={password === ''}
      failure={failure}
      onSubmit={ask}
      onClose={onClose}
    >
      <p className="text-ink text-sm">{text}</p>
      <PasswordField label="Your password" value={password} onChange={setPassword} autoComplete="current-password" />
    </FormDialog>
  )
}

export function TurnCodeOffDialog({ onClose }: { onClose: () => void }) {
  return (
    <PasswordDialog
      title="Turn off two-factor authentication?"
      action="Turn off"
      text="You then sign in with your password alone. Your backup codes stop working."
      request={async (password) => {
        const answer = await authClient.twoFactor.disable({ password })
        if (!answer.error) onClose()
        return answer
      }}
      onClose={onClose}
    />
  )
}

export function NewBackupCodesDialog({ onClose }: { onClose: () => void }) {
  const [codes, setCodes] = useState<string[] | null>(null)
  if (codes)
    return (
      <InfoDialog title="Your new backup codes" closing="I have saved them" onClose={onClose}>
        <BackupCodes codes={codes} />
      </InfoDialog>
    )
  return (
    <PasswordDialog
      title="New backup codes"
      action="Generate codes"
      text="Your previous backup codes stop working."
      request={async (password) => {
        const answer = await authClient.twoFactor.generateBackupCodes({ password })
        if (answer.data) setCodes(answer.data.backupCodes)
        return answer
      }}
      onClose={onClose}
    />
  )
}
