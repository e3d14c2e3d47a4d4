import Link from 'next/link'
import type { ReactNode } from 'react'
import { type ButtonLook, buttonClasses } from './button'

interface LinkButtonProps {
  href: string
  look?: ButtonLook
  children: ReactNode
}

/** A link that looks like a button: it leads to another page. */
export function LinkButton({ href, look = 'quiet', children }: LinkButtonProps) {
  return (
    <Link href={href} className={buttonClasses(look)}>
      {children}
    </Link>
  )
}
