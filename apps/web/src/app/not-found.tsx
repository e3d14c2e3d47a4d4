import Link from 'next/link'
import { EmptyState } from '../components/states'

export default function NotFound() {
  return (
    <main className="grid min-h-dvh place-items-center">
      <title>Not found · Bootfarm</title>
      <div>
        <h1 className="sr-only">Not found</h1>
        <EmptyState
          title="There is no such page."
          text="The address may be mistyped, or the thing it showed is gone."
          action={
            <Link href="/" className="underline underline-offset-4">
              To the overview
            </Link>
          }
        />
      </div>
    </main>
  )
}
