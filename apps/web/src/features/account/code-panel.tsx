'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { encode } from 'uqr'
import { Button } from '../../components/button'
import { CopyLine } from '../../components/copy-line'
import { FormDialog, InfoDialog } from '../../components/dialog'
import { Notice, TextField } from '../../components/field'
import { Panel } from '../../components/page'
import { Tag } from '../../components/tag'
import { askAuth, authProblem } from '../session/ask-auth'
import { type Account, PasswordField, useAsked } from './account-form'

type Open = 'set-up' | 'off' | 'backup' | null

/** The second factor: a code of an authenticator beside the password. */
export function CodePanel({ account }: { account: Account }) {
  const queries = useQueryClient()
  const [open, setOpen] = useState<Open>(null)
  const close = () => {
    setOpen(null)
    void queries.invalidateQueries()
  }
  return (
    <Panel title="Two-factor authentication" aside={account.hasTotp ? <Tag tone="ready">On</Tag> : <Tag>Off</Tag>}>
      <div className="flex flex-col items-start gap-4">
        <p className="text-ink-soft text-sm">{textOf(account)}</p>
        {account.hasPassword && (
          <div className="flex flex-wrap gap-2">
            {account.hasTotp ? (
              <>
                <Button onClick={() => setOpen('backup')}>Generate backup codes</Button>
                <Button onClick={() => setOpen('off')}>Turn off</Button>
              </>
            ) : (
              <Button look="primary" onClick={() => setOpen('set-up')}>
                Set up
              </Button>
            )}
          </div>
        )}
      </div>
      {open === 'set-up' && <CodeSetUpDialog onClose={close} />}
      {open === 'off' && <TurnCodeOffDialog onClose={close} />}
      {open === 'backup' && <NewBackupCodesDialog onClose={close} />}
    </Panel>
  )
}

function textOf({ hasTotp, hasPassword }: Account): string {
  if (!hasPassword)
    return 'You sign in through your organization’s identity provider, which handles two-factor authentication.'
  return hasTotp
    ? 'After your password, enter six digits from your authenticator or a backup code.'
    : 'Protects your account even if your password leaks.'
}

interface PasswordDialogProps {
  title: string
  action: string
  text: string
  /** The answer of a request that takes the password: its error, or none. */
  request: (password: string) => Promise<{ error: Parameters<typeof authProblem>[0] }>
  onClose: () => void
}

/** Requires more than an open session. */
function PasswordDialog({ title, action, text, request, onClose }: PasswordDialogProps) {
  const [password, setPassword] = useState('')
  const { failure, isBusy, ask } = useAsked(async () => {
    const { error } = await request(password)
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

function TurnCodeOffDialog({ onClose }: { onClose: () => void }) {
  return (
    <PasswordDialog
      title="Turn off two-factor authentication?"
      action="Turn off"
      text="You then sign in with your password alone. Your backup codes stop working."
      request={async (password) => {
        const answer = await askAuth('two-factor/disable', { password })
        if (!answer.error) onClose()
        return answer
      }}
      onClose={onClose}
    />
  )
}

function NewBackupCodesDialog({ onClose }: { onClose: () => void }) {
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
        const answer = await askAuth('two-factor/generate-backup-codes', { password })
        if (answer.data) setCodes(answer.data.backupCodes)
        return answer
      }}
      onClose={onClose}
    />
  )
}

interface Secret {
  uri: string
  backupCodes: string[]
}

/** The password, then the authenticator and its first code, then the backup codes. */
function CodeSetUpDialog({ onClose }: { onClose: () => void }) {
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
    const { data, error } = await askAuth('two-factor/enable', { password })
    const problem = authProblem(error, 'The password is incorrect.')
    if (data) onSecret({ uri: data.totpURI, backupCodes: data.backupCodes })
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
    const { error } = await askAuth('two-factor/verify-totp', { code: code.replace(/\s/g, '') })
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

/** Shown once; each of them replaces a code for one sign-in. */
function BackupCodes({ codes }: { codes: string[] }) {
  return (
    <>
      <Notice tone="live">
        Store these backup codes where you can reach them without your authenticator. They are shown only once. Each
        code works once.
      </Notice>
      <CopyLine label="Backup codes" text={codes.join(' ')} />
    </>
  )
}
