'use client'

import { type DehydratedState, hydrate, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useIsFirstPaint } from '../../lib/first-paint'
import { inBrowserTime } from './in-browser-time'

interface FirstDataProps {
  /** Null: the page requests all of it. */
  data: DehydratedState | null
  children: ReactNode
}

/**
 * Gives the page what the server has read for it. Only while the page is being opened: Next keeps the server's answer
 * for when a person comes back to the page, and then the browser has newer data.
 */
export function FirstData({ data, children }: FirstDataProps) {
  const queryClient = useQueryClient()
  const isFirst = useIsFirstPaint()
  useState(() => {
    if (data && isFirst) hydrate(queryClient, typeof window === 'undefined' ? data : inBrowserTime(data, Date.now()))
  })
  return children
}
