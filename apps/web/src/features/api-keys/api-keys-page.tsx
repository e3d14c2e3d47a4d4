'use client'

import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { useMay } from '../session/use-may'
import { ApiKeyList } from './api-key-list'
import { CreateKeyDialog } from './create-key-dialog'
import { NewKeyPanel } from './new-key-panel'

export function ApiKeysPage() {
  const mayChange = useMay('api_key.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const create = mayChange && (
    <Button look="primary" onClick={() => setCreating(true)}>
      Create API key
    </Button>
  )
  return (
    <Page>
      <PageHeader
        title="API keys"
        summary={
          <>
            Credentials for scripts. A key of yours ends with your membership; a{' '}
            <Link href="/service-accounts" className="underline underline-offset-4">
              service account
            </Link>{' '}
            keeps its keys.{' '}
            <a href="/api/docs" className="underline underline-offset-4">
              API reference
            </a>
          </>
        }
        actions={create}
      />
      <NewKeyPanel secret={secret} />
      <div className="rounded-lg border border-line bg-surface">
        <ApiKeyList
          label="API keys"
          empty={<EmptyState title="No API keys yet." text="An API key gives a script the permissions of a role." />}
          onSecret={setSecret}
        />
      </div>
      {isCreating && (
        <CreateKeyDialog
          onCreated={(made) => {
            setSecret(made)
            setCreating(false)
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  )
}
