import type { ComponentType } from 'react'

/** Makes a route of a page component whose only input is in the path. */
export function routePage<Params extends object>(Body: ComponentType<Params>) {
  return async function Page({ params }: { params: Promise<Params> }) {
    const values = await params
    return <Body {...values} />
  }
}
