'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Panel } from '../../components/panel'
import { Tag } from '../../components/tag'
import type { Account } from './account'
import { NewBackupCodesDialog, TurnCodeOffDialog } from './code-dialogs'
import { CodeSetUpDialog } from './code-set-up-dialog'

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
