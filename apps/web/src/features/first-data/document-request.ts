/**
 * Tells a page that is opened from one that is followed to inside the dashboard, which Next requests too, but whose
 * data the browser may have, newer. A browser says so over HTTPS and on this machine (Fetch Metadata); else by what it
 * accepts.
 */
export function isDocumentRequest(headers: { get(name: string): string | null }): boolean {
  const destination = headers.get('sec-fetch-dest')
  if (destination !== null) return destination === 'document'
  return headers.get('accept')?.includes('text/html') ?? false
}
