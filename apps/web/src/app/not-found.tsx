import Link from 'next/link'
import { EmptyState } from '../components/page'

export default function NotFound() {
  return (
    <main className="grid min-h-dvh place-items-center">
      <title>Page not found · Bootfarm</title>
      <div>
        <h1 className="sr-only">Page not found</h1>
        <EmptyState
          title="This page does not exist."
          text="Check the address for typing errors. The object may also have been deleted."
          action={
            <Link href="/" className="underline underline-offset-4">
              Go to the overview
            </Link>
          }
        />
      </div>
    </main>
  )
}
