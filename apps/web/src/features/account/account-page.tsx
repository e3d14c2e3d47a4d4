'use client'

import { useQuery } from '@tanstack/react-query'
import { Page, PageHeader } from '../../components/page-header'
import { ErrorState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { CodePanel } from './code-panel'
import { MembershipsPanel } from './memberships-panel'
import { NamePanel } from './name-panel'
import { PasswordPanel } from './password-panel'
import { SessionsPanel } from './sessions-panel'

/** What belongs to the person and to no organization: name, password, code, sessions, memberships. */
export function AccountPage() {
  const { data: account, error, refetch } = useQuery(useTRPC().session.account.queryOptions())
  return (
    <Page>
      <PageHeader title="Account" summary="Your account is the same in all your organizations." />
      {error && <ErrorState title="Could not load your account." text={readableError(error)} onRetry={refetch} />}
      {!error && !account && (
        <LoadingState label="Loading your account">
          <Skeleton className="h-64" />
        </LoadingState>
      )}
      {account && (
        <>
          <div className="grid items-start gap-5 lg:grid-cols-2">
            <NamePanel account={account} />
            <CodePanel account={account} />
          </div>
          {account.hasPassword && <PasswordPanel />}
          <SessionsPanel />
          <MembershipsPanel />
        </>
      )}
    </Page>
  )
}
