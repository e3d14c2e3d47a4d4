'use client'

import { useState } from 'react'
import { TextField } from '../../components/field'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { type HelpHit, type HelpTitles, searchHelp } from './search-help'

const folders = [
  { folder: 'guides/', title: 'Guides' },
  { folder: 'reference/', title: 'Reference' },
] as const

/** All pages of the documentation, and a search over their titles and sections. */
export function HelpIndex({ docs }: { docs: HelpTitles[] }) {
  const [search, setSearch] = useState('')
  return (
    <Page>
      <PageHeader title="Help" summary="The documentation of this release." />
      <div className="max-w-md">
        <TextField
          label="Search titles"
          value={search}
          onChange={setSearch}
          placeholder="why a boot failed, enrolment, import"
        />
      </div>
      {search.trim() === '' ? <AllPages docs={docs} /> : <Hits hits={searchHelp(docs, search)} />}
    </Page>
  )
}

function AllPages({ docs }: { docs: HelpTitles[] }) {
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      {folders.map(({ folder, title }) => (
        <Panel key={folder} title={title}>
          <ul className="flex flex-col gap-2 text-sm">
            {docs
              .filter(({ path }) => path.startsWith(folder))
              .map((doc) => (
                <li key={doc.path}>
                  <PageLink href={`/help/${doc.path}`} className="text-ink underline underline-offset-4">
                    {doc.title}
                  </PageLink>
                </li>
              ))}
          </ul>
        </Panel>
      ))}
    </div>
  )
}

function Hits({ hits }: { hits: HelpHit[] }) {
  if (hits.length === 0)
    return <EmptyState title="No title has these words." text="Enter fewer words, or the beginning of one." />
  return (
    <Panel title="Found">
      <ul aria-label="Found titles" className="flex flex-col gap-2 text-sm">
        {hits.map(({ href, title, page }) => (
          <li key={href}>
            <PageLink href={href} className="text-ink underline underline-offset-4">
              {title}
            </PageLink>
            {page && <span className="text-ink-faint"> in {page}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  )
}
