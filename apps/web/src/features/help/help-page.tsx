import { Page, PageHeader } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { PageName } from '../shell/object-page'
import type { HelpDoc } from './help-doc'
import { HelpText } from './help-text'

/** One page of the documentation, with its sections beside it. */
export function HelpPage({ doc }: { doc: HelpDoc }) {
  const sections = doc.sections.filter(({ depth }) => depth === 2)
  return (
    <Page>
      <PageName name={doc.title} />
      <PageHeader title={doc.title} summary={<PageLink href="/help">All help</PageLink>} />
      <div className="grid items-start gap-8 lg:grid-cols-[minmax(0,1fr)_15rem]">
        <article className="min-w-0 lg:order-first">
          <HelpText path={doc.path} blocks={doc.blocks} />
        </article>
        {sections.length > 1 && (
          <nav aria-label="On this page" className="order-first text-sm lg:sticky lg:top-16 lg:order-last">
            <p className="mb-2 font-medium text-ink">On this page</p>
            <ul className="flex flex-col gap-1.5">
              {sections.map(({ title, anchor }) => (
                <li key={anchor}>
                  <a href={`#${anchor}`} className="text-ink-soft hover:text-ink hover:underline">
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        )}
      </div>
    </Page>
  )
}
