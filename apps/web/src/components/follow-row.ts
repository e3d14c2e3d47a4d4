import type { MouseEvent } from 'react'

/** What answers a click itself. */
const controls = 'a, button, input, select, textarea, label, summary, [role="button"], [role="menuitem"]'

/**
 * Opens what the row's first cell links to, for a click anywhere in the row: in a new tab with Ctrl, ⌘ or the middle
 * button, as a link does. Clicks on other controls, and the end of a selection of text, stay what they are. The link
 * remains what keyboards and screen readers use.
 */
export function followRow(event: MouseEvent<HTMLTableRowElement>): void {
  const { currentTarget: row, target } = event
  // A menu or dialog of the row is elsewhere in the document, but its clicks arrive here as well.
  if (event.defaultPrevented || !(target instanceof Element) || !row.contains(target)) return
  if (target.closest(controls) || event.altKey || event.detail > 1 || event.button > 1) return
  if (window.getSelection()?.isCollapsed === false) return
  const link = row.querySelector<HTMLAnchorElement>(':scope > th a[href]')
  if (!link) return
  const inNewTab = event.ctrlKey || event.metaKey || event.shiftKey || event.button === 1
  if (inNewTab) window.open(link.href, '_blank', 'noopener')
  else link.click()
}
