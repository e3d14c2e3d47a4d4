'use client'

import { usePathname, useRouter, useSearchParams } from 'next/navigation'
import { useEffect } from 'react'
import { signInPath } from './sign-in-path'

/** Renders nothing: the page was not for a signed-out viewer, whom it leads to sign-in and back. */
export function GoToSignIn() {
  const router = useRouter()
  const pathname = usePathname()
  const query = useSearchParams().toString()
  useEffect(() => {
    router.replace(signInPath(query === '' ? pathname : `${pathname}?${query}`))
  }, [router, pathname, query])
  return null
}
