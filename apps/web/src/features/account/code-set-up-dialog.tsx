'use client'

import { useState } from 'react'
import { encode } from 'uqr'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { InfoDialog } from '../../components/info-dialog'
import { authClient, authProblem, unreachable } from '../session/auth-client'
import { BackupCodes } from './backup-codes'
import { PasswordField } from './password-field'
import { useAsked } from './use-asked'

interface Secret {
  uri: string
  backupCodes: string[]
}

/** The password, then the authenticator and its first code, then the backup codes. */
export function CodeSetUpDialog({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState<Secret | null>(null)
  const [isOn, setOn] = useState(false)
  if (secret === null) return <PasswordStep onSecret={setSecret} onClose={onClose} />
  if (!isOn) return <CodeStep secret={secret} onDone={() => setOn(true)} onClose={onClose} />
  return (
    <InfoDialog title="Two-factor authentication is on" closing="I have saved them" onClose={onClose}>
      <BackupCodes codes={secret.backupCodes} />
    </InfoDialog>
  )
}

function PasswordStep({ onSecret, onClose }: { onSecret: (secret: Secret) => void; onClose: () => void }) {
  const [password, setPassword] = useState('')
  const { failure, isBusy, ask } = useAsked(async () => {
    const { data, error } = await authClient.twoFactor.enable({ password }).catch(unreachable)
    const problem = authProblem(error, 'The password is incorrect.')
    if (data && 'totpURI' in data) onSecret({ uri: data.totpURI, backupCodes: data.backupCodes })
    return problem
  })
  return (
    <FormDialog
      title="Set up two-factor authentication"
      action="Continue"
      busy={isBusy}
      disabled={password === ''}
      failure={failure}
      onSubmit={ask}
      onClose={onClose}
    >
      <PasswordField label="Your password" value={password} onChange={setPassword} autoComplete="current-password" />
    </FormDialog>
  )
}

function CodeStep({ secret, onDone, onClose }: { secret: Secret; onDone: () => void; onClose: () => void }) {
  const [code, setCode] = useState('')
  const { failure, isBusy, ask } = useAsked(async () => {
    const { error } = await authClient.twoFactor.verifyTotp({ code: code.replace(/\s/g, '') }).catch(unreachable)
    const problem = authProblem(error, 'The code is incorrect. Check that your authenticator’s clock is right.')
    if (!problem) onDone()
    return problem
  })
  return (
    <FormDialog
      title="Set up two-factor authentication"
      action="Turn on"
      busy={isBusy}
      disabled={code.trim() === ''}
      failure={failure}
      onSubmit={ask}
      onClose={onClose}
    >
      <div className="flex flex-wrap items-center gap-4">
        <QrCode text={secret.uri} label="QR code for your authenticator" />
        <div className="flex min-w-44 flex-1 flex-col gap-2 text-ink text-sm">
          <p>Scan this QR code with your authenticator app, or enter the key:</p>
          <code className="break-all rounded-md border border-line bg-canvas p-2 text-xs">
            {new URL(secret.uri).searchParams.get('secret')}
          </code>
        </div>
      </div>
      <TextField
        label="Code"
        value={code}
        onChange={setCode}
        maxLength={12}
        hint="The current six digits from your authenticator."
      />
    </FormDialog>
  )
}

/** The text as a QR code: dark on white in every theme, as cameras expect it. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: 2 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('')
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-44 shrink-0 rounded-md border border-line"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
