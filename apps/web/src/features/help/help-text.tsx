import type { MarkedToken, Token, Tokens } from 'marked'
import { createElement, Fragment, type ReactNode } from 'react'
import { PageLink } from '../../components/page-link'
import { type HelpBlock, helpHref } from './help-doc'

/** Draws Markdown by elements of React: HTML in it stays text, and no link leads anywhere but to pages. */
export function HelpText({ path, blocks }: { path: string; blocks: HelpBlock[] }) {
  return (
    <div className="flex max-w-[46rem] flex-col gap-4 text-base text-ink-soft leading-relaxed">
      {blocks.map(({ token, anchor }, index) =>
        token.type === 'heading' && anchor !== null ? (
          <Heading key={anchor} path={path} token={token} anchor={anchor} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no identity, and none is ever taken out
          <Fragment key={index}>{block(path, token)}</Fragment>
        ),
      )}
    </div>
  )
}

function Heading({ path, token, anchor }: { path: string; token: Tokens.Heading; anchor: string }) {
  const isSection = token.depth === 2
  const look = isSection ? 'mt-4 border-line border-t pt-5 text-lg' : 'mt-1 text-base'
  return createElement(
    isSection ? 'h2' : 'h3',
    { id: anchor, className: `group scroll-mt-16 font-semibold text-ink ${look}` },
    inlines(path, token.tokens),
    ' ',
    <a
      href={`#${anchor}`}
      aria-label={`Link to “${token.text}”`}
      className="text-ink-faint opacity-0 focus:opacity-100 group-hover:opacity-100"
    >
      #
    </a>,
  )
}

function block(path: string, token: MarkedToken): ReactNode {
  switch (token.type) {
    case 'paragraph':
      return <p>{inlines(path, token.tokens)}</p>
    case 'text':
      return token.tokens ? inlines(path, token.tokens) : token.text
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <pre tabIndex={0} className="overflow-x-auto rounded-md border border-line bg-sunken px-3 py-2.5 text-xs">
          <code className="font-mono text-ink">{token.text}</code>
        </pre>
      )
    case 'list':
      return <List path={path} token={token} />
    case 'table':
      return <HelpTable path={path} token={token} />
    case 'blockquote':
      return <blockquote className="border-line-strong border-l-2 pl-3">{blocks(path, token.tokens)}</blockquote>
    case 'hr':
      return <hr />
    case 'space':
    case 'def':
      return null
    default:
      return <p>{token.raw}</p>
  }
}

function List({ path, token }: { path: string; token: Tokens.List }) {
  const items = token.items.map((item, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: items have no identity, and none is ever taken out
    <li key={index} className="pl-1">
      {blocks(path, item.tokens)}
    </li>
  ))
  const start = typeof token.start === 'number' ? token.start : 1
  return token.ordered ? (
    <ol start={start} className="flex list-decimal flex-col gap-1.5 pl-6">
      {items}
    </ol>
  ) : (
    <ul className="flex list-disc flex-col gap-1.5 pl-5 marker:text-ink-faint">{items}</ul>
  )
}

function HelpTable({ path, token }: { path: string; token: Tokens.Table }) {
  const cells = (row: Tokens.TableCell[], Cell: 'th' | 'td') =>
    row.map(({ tokens }, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: cells have no identity, and none is ever taken out
      <Cell key={index} className="border-line border-b px-3 py-2 text-left align-top font-normal first:text-ink">
        {inlines(path, tokens)}
      </Cell>
    ))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div tabIndex={0} className="overflow-x-auto rounded-md border border-line bg-surface text-sm">
      <table className="w-full border-collapse">
        <thead className="bg-sunken text-ink-faint text-xs">
          <tr>{cells(token.header, 'th')}</tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity, and none is ever taken out
            <tr key={index}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function blocks(path: string, tokens: Token[]): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no identity, and none is ever taken out
    <Fragment key={index}>{block(path, token as MarkedToken)}</Fragment>
  ))
}

function inlines(path: string, tokens: Token[]): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: words have no identity, and none is ever taken out
    <Fragment key={index}>{inline(path, token as MarkedToken)}</Fragment>
  ))
}

function inline(path: string, token: MarkedToken): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong className="font-semibold text-ink">{inlines(path, token.tokens)}</strong>
    case 'em':
      return <em>{inlines(path, token.tokens)}</em>
    case 'codespan':
      return <code className="break-words rounded bg-sunken px-1 py-0.5 font-mono text-ink text-xs">{token.text}</code>
    case 'link':
      return <HelpAnchor href={helpHref(path, token.href)}>{inlines(path, token.tokens)}</HelpAnchor>
    case 'text':
      return token.tokens ? inlines(path, token.tokens) : token.text
    case 'escape':
    case 'image':
      return token.text
    case 'br':
      return <br />
    default:
      return token.raw
  }
}

const linkLook = 'text-ink underline underline-offset-4'

function HelpAnchor({ href, children }: { href: string | null; children: ReactNode }) {
  if (href === null) return <span>{children}</span>
  if (href.startsWith('/'))
    return (
      <PageLink href={href} className={linkLook}>
        {children}
      </PageLink>
    )
  return (
    <a href={href} rel="noopener noreferrer" className={linkLook}>
      {children}
    </a>
  )
}
